"""Reports of exceptions in code that can't raise: deallocators, the ends of scopes."""

from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable


cdef void report_ignored(object where, object error) noexcept:
    """Give a caught exception to ``sys.unraisablehook``.

    `PyErr_WriteUnraisable` alone reports the pending exception; in an ``except`` clause
    none is pending any more.
    """
    PyErr_SetObject(type(error), error)
    PyErr_WriteUnraisable(where)
