from ndx._array.storage cimport BaseArray

cpdef object clip_between(object x, object low, object high, object out)
