from ndx._array.storage cimport BaseArray

cdef object to_dlpack(BaseArray x, bint versioned, bint copied, bint any_strides)
cdef BaseArray from_dlpack_capsule(object capsule)
cdef tuple dlpack_device(BaseArray x)
