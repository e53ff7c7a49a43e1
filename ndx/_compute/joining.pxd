from ndx._array.storage cimport BaseArray

cdef bint same_lengths(BaseArray a, BaseArray b, int but) noexcept
cdef object shapes_error(str what, list arrays)
cdef BaseArray join(list arrays, int axis, bint new_axis)
