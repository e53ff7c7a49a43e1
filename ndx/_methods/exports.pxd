from ndx._array.storage cimport BaseArray

cdef object array_interface(BaseArray x)
cdef object as_numpy(BaseArray x, object dtype, object copy)
cdef object device_interface(BaseArray x)
cdef object torch_function(BaseArray x)
cdef object export_dlpack(BaseArray x, object stream, object max_version,
                          object dl_device, object copy)
