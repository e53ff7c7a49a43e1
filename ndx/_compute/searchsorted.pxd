from ndx._array.storage cimport BaseArray

cdef BaseArray search(BaseArray x, BaseArray values, bint right)
