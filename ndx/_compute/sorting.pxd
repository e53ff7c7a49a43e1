from ndx._array.storage cimport BaseArray

cdef enum:
    # Limit of axes in NumPy's iterators, which its sorting uses.
    MAX_ITERATED = 32

cdef int sort_in_place(BaseArray x, int axis, bint stable) except -1
cdef BaseArray sorting_indices(BaseArray x, int axis, bint stable)
cdef BaseArray sorting_by_keys(list keys)
cdef object partition(BaseArray x, Py_ssize_t place, bint indices)
cdef BaseArray places_in(BaseArray x, BaseArray values, bint right)

cdef BaseArray ranked(BaseArray x, int axis)

cdef BaseArray search(BaseArray x, BaseArray values, bint right)

cdef bint find_small(BaseArray x, BaseArray found, bint largest) except -1
