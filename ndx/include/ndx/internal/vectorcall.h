/* Vectorcall (PEP 590) for Cython classes: instances are called like functions. */
#ifndef NDX_VECTORCALL_H
#define NDX_VECTORCALL_H

#include <Python.h>

/* `vectorcallfunc`, without the const that Cython does not support. */
typedef PyObject *(*ndx_vectorcall)(PyObject *, PyObject **, size_t, PyObject *);

static inline Py_ssize_t ndx_count(size_t nargsf) { return PyVectorcall_NARGS(nargsf); }

/* The fallback for callables without a vectorcall function. */
static PyObject *ndx_slow_call(PyObject *callable, PyObject *const *args, size_t nargsf,
                               PyObject *names) {
    return PyObject_Vectorcall(callable, args, nargsf, names);
}

static inline ndx_vectorcall ndx_vectorcall_of(PyObject *callable) {
    vectorcallfunc found = PyVectorcall_Function(callable);
    return (ndx_vectorcall)(found != NULL ? found : ndx_slow_call);
}

/* Enable vectorcall for a class whose instances have the function at an offset. */
static inline int ndx_set_vectorcall(PyObject *cls, Py_ssize_t offset) {
    PyTypeObject *type = (PyTypeObject *)cls;
    type->tp_vectorcall_offset = offset;
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    type->tp_call = PyVectorcall_Call;
    PyType_Modified(type);
    return 0;
}

#endif
