from ndx._array.storage cimport BaseArray

cdef BaseArray along_axis(str name, BaseArray x, object n, object axis, object norm)
cdef BaseArray along_axes(str name, BaseArray x, object s, object axes, object norm)
