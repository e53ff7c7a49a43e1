from ndx._array.storage cimport BaseArray

cdef object scalar_of(BaseArray x, str what)
cdef object read_scalar(BaseArray x)
cdef object item_of(BaseArray x, tuple args)
cdef list list_of(BaseArray x)
cdef BaseArray readable(BaseArray x)
cdef object text_of(BaseArray x)
cdef object html_of(BaseArray x)
cdef object text_of_dead(BaseArray x)
