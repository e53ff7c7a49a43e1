/* A module for ndx.h in plain C and in C++: the same source for both. */
#include "ndx/ndx.h"

static PyObject *total(PyObject *module, PyObject *array) {
    ndx_array_view view;
    double sum = 0;
    (void)module;
    if (ndx_acquire(array, &view, NDX_C_CONTIGUOUS) < 0) { return NULL; }
    if (view.dtype != NDX_FLOAT64) {
        PyErr_SetString(PyExc_TypeError, "total takes float64");
        ndx_release(&view);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < view.size; ++i) { sum += ((const double *)view.data)[i]; }
    Py_END_ALLOW_THREADS
    ndx_release(&view);
    ndx_release(&view);
    return PyFloat_FromDouble(sum);
}

/* A new array of 0, 1, ... */
static PyObject *counted(PyObject *module, PyObject *length) {
    Py_ssize_t shape[1];
    ndx_array_view view;
    PyObject *array;
    (void)module;
    shape[0] = PyLong_AsSsize_t(length);
    if (shape[0] == -1 && PyErr_Occurred()) { return NULL; }
    array = ndx_empty(1, shape, NDX_INT64);
    if (array == NULL) { return NULL; }
    if (ndx_acquire(array, &view, NDX_WRITABLE) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < view.size; ++i) { ((int64_t *)view.data)[i] = i; }
    ndx_release(&view);
    return array;
}

static PyObject *is_array(PyObject *module, PyObject *object) {
    int found = ndx_is_array(object);
    (void)module;
    return found < 0 ? NULL : PyBool_FromLong(found);
}

/* Raise KeyError, and release what goes with the last reference while it is pending:
 * `maker()` returns an array that nobody else has. */
static PyObject *release_while_raising(PyObject *module, PyObject *maker) {
    ndx_array_view view;
    int failed;
    PyObject *array = PyObject_CallObject(maker, NULL);
    (void)module;
    if (array == NULL) { return NULL; }
    failed = ndx_acquire(array, &view, 0);
    Py_DECREF(array);
    if (failed) { return NULL; }
    PyErr_SetString(PyExc_KeyError, "pending");
    ndx_release(&view);
    return NULL;
}

/* Acquire for good: what a process that just exits leaves behind. */
static ndx_array_view leaked[8];
static int leaks = 0;
static PyObject *leak(PyObject *module, PyObject *array) {
    (void)module;
    if (leaks == 8) { return PyErr_NoMemory(); }
    if (ndx_acquire(array, &leaked[leaks], 0) < 0) { return NULL; }
    ++leaks;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"total", total, METH_O, NULL},
    {"counted", counted, METH_O, NULL},
    {"is_array", is_array, METH_O, NULL},
    {"release_while_raising", release_while_raising, METH_O, NULL},
    {"leak", leak, METH_O, NULL},
    {NULL, NULL, 0, NULL}
};
