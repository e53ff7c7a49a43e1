"""What kind of NumPy's scalars an object is, without a look at its `__class__`.

That may be code of the user's: `isinstance` runs it.
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
