"""Exceptions where none can be raised: in what frees memory, or ends a scope."""

from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable


cdef void report_ignored(object where, object error) noexcept:
    """Give a caught exception to ``sys.unraisablehook``.

    `PyErr_WriteUnraisable` alone takes the exception that is raised at the moment; in
    an ``except`` clause there is none any more.
    """
    PyErr_SetObject(type(error), error)
    PyErr_WriteUnraisable(where)
