from ndx._array.storage cimport BaseArray

cdef bint same_lengths(BaseArray a, BaseArray b, int but) noexcept
cdef object shapes_error(str what, list arrays)
cdef BaseArray join(list arrays, int axis, bint new_axis)

cdef int check_repeats(BaseArray x, object counts) except -1
cdef BaseArray repeated(BaseArray x, Py_ssize_t count, int axis)
cdef BaseArray repeated_each(BaseArray x, BaseArray counts, int axis)

cpdef object rolled(object x, object shift, object axis)
cpdef object tiled(object x, object repetitions)
