from ndx._array.storage cimport BaseArray

cdef BaseArray detached(BaseArray x)
cdef BaseArray leveraged(BaseArray x)
cdef BaseArray leveraged_to(BaseArray x, object workspace, object missing)
cdef BaseArray migrated(BaseArray x, object missing)
cdef object moved_to_device(BaseArray x, object device, object stream)
