from ndx._array.storage cimport BaseArray
from ndx._compute.copies cimport can_store, store_constant
from ndx._lib.dtypes cimport scalar_dtype

cdef object converted(object scalar, int dtype)


cdef inline int store_value(object scalar, int dtype, char *out) except -1:
    """Write a Python scalar as an element of `dtype` at `out` (16 bytes), if it fits.

    Raises
    ------
    TypeError
        If an imaginary part would be lost.
    ValueError, OverflowError
        If the dtype is one of integers that lacks the value.
    """
    if not can_store(scalar_dtype(dtype, scalar), dtype):
        scalar = converted(scalar, dtype)
    return store_constant(scalar, dtype, out)


# Python's ints below it are int64, and float64 has each.
cdef object MOST_INT

# NumPy's functions that store values.
cdef dict STORING

cdef bint is_integer(int dtype) noexcept
cdef bint fits_weakly(object x, int dtype) noexcept
cdef BaseArray number_with(object scalar, int dtype)
cdef bint may_not_fit(int dtype, int into) noexcept
cdef int dtype_of(object x) noexcept
cdef object numpy_scalar(BaseArray x)
cdef object number_of(object value)
cdef object integers_of(object items, int dtype)
cdef BaseArray source_for(BaseArray x, object value, char *stored)
cdef object numpy_source(BaseArray source, BaseArray x, char *stored)
cdef int copy_broadcast(BaseArray target, BaseArray source) except -1
cdef tuple checked_arguments(object function, tuple args, dict kwargs)
cdef bint stores_objects(object function, tuple args, dict kwargs) except -1
cdef int check_operand(object x, object value) except -1
cdef object made_by(object x)
cdef object numpy_array(object x)
