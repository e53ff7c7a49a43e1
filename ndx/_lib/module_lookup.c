/* What the C that Cython writes calls in place of PyImport_ImportModule (`setup.py`).
 *
 * A module names each of the others that it has types and functions of. Python's own
 * function looks up the package in front of the dot, too: `ndx` is being imported then,
 * and the lock of that import is taken and released for each of 2,400 names. */
#undef PyImport_ImportModule
#include <Python.h>

PyObject *ndx_import_module(const char *name) {
    PyObject *key = PyUnicode_FromString(name), *module;
    if (key == NULL) { return NULL; }
    module = PyImport_GetModule(key);
    if (module == NULL || module == Py_None) {
        Py_CLEAR(module);
        if (!PyErr_Occurred()) { module = PyImport_Import(key); }
    }
    Py_DECREF(key);
    return module;
}
