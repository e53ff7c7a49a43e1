"""Tests for NumPy's scalars, in C.

They ask for the type of an object alone. `isinstance` also asks for `__class__`, which
may run code of the user.
"""

cimport numpy as cnp

cnp.import_array()

cdef extern from *:
    """
    #define NDX_IS_SCALAR(x) PyArray_IsScalar(x, Generic)
    #define NDX_IS_BOOL(x) PyArray_IsScalar(x, Bool)
    """
    bint NDX_IS_SCALAR(object x) noexcept
    bint NDX_IS_BOOL(object x) noexcept


cdef bint is_numpy_scalar(object x) noexcept:
    return NDX_IS_SCALAR(x)


cdef bint is_numpy_bool(object x) noexcept:
    return NDX_IS_BOOL(x)


cdef bint is_refused_array(object error) except -1:
    """Whether NumPy has refused what an object's `__array__` returned: an NDArray."""
    return str(error).startswith("object __array__ method not producing an array")
