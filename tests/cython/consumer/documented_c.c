/* The example of docs/c_api.md, and the module around it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "ndx/ndx.h"

static PyObject *total(PyObject *module, PyObject *array) {
    ndx_array_view view;
    double sum = 0;
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
    return PyFloat_FromDouble(sum);
}

static PyMethodDef methods[] = {
    {"total", total, METH_O, "Return the sum of a contiguous float64 array."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "documented_c", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_documented_c(void) { return PyModule_Create(&module); }
