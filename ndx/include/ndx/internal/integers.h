/* Python's ints as C's. */
#ifndef NDX_INTEGERS_H
#define NDX_INTEGERS_H

#include <Python.h>

/* PyLong_AsLongLongAndOverflow of an int or a bool. Most indices and lengths have one
 * digit, which is read without a call. */
static inline long long ndx_int_value(PyObject *x, int *overflow) {
#if PY_VERSION_HEX >= 0x030C0000
    if (PyUnstable_Long_IsCompact((PyLongObject *)x)) {
        *overflow = 0;
        return PyUnstable_Long_CompactValue((PyLongObject *)x);
    }
#else
    if (Py_SIZE(x) >= -1 && Py_SIZE(x) <= 1) {
        *overflow = 0;
        return (long long)Py_SIZE(x) * ((PyLongObject *)x)->ob_digit[0];
    }
#endif
    return PyLong_AsLongLongAndOverflow(x, overflow);
}

#endif
