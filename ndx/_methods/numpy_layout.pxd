from ndx._array.storage cimport BaseArray

cdef bint has_axes(BaseArray x, object axis) noexcept
cdef bint takes_along(BaseArray x, object indices, object axis) noexcept
cdef bint stays_plain(BaseArray x, object dtype) except -1
cdef object axes_of(tuple axes)
cdef object lengths_of(tuple shape)
cdef tuple ones_of(BaseArray x)
cdef int change_in_place(BaseArray x) except -1
cdef BaseArray ordered_copy(BaseArray x, object order)
cdef bint repeats_plainly(BaseArray x, object repeats, object axis) noexcept
cdef bint is_array_class(object kind) except -1
cdef object view_of_class(object view, object kind)
cdef bytes pickle_of(BaseArray x)
cdef BaseArray reverse_axes(BaseArray x)
cdef BaseArray swap_last(BaseArray x)
cdef bint is_axis(BaseArray x, object axis) except -1
cdef BaseArray swap_axes(BaseArray x, object axis, object other)
cdef bint searches_plainly(BaseArray x, object values, object side) except -1
cdef object searched(BaseArray x, object values, bint right)
cdef BaseArray swapped(BaseArray x, int axis, int other)
cdef BaseArray flipped(BaseArray x, const bint *chosen)
cdef BaseArray slab(BaseArray x, int axis, Py_ssize_t start, Py_ssize_t stop)
cdef BaseArray with_new_axes(BaseArray x, int before, int after)
cdef bint is_matrix(BaseArray x) noexcept
cdef BaseArray diagonal_view(BaseArray x, Py_ssize_t skipped)
cdef BaseArray readonly_diagonal(BaseArray x)
cdef bint is_contiguous(BaseArray x) noexcept
cdef bytes bytes_of(BaseArray x)
cdef BaseArray flat_view(BaseArray x)
cdef bint sorts_plainly(BaseArray x, object axis, object kind, object order,
                        object stable) noexcept
cdef BaseArray plain_cast(BaseArray x, object dtype, bint copy)
cdef object plain_product(BaseArray x, object other)
cdef object plain_round(BaseArray x, object decimals)
cdef int reshaped(BaseArray x, object shape, Py_ssize_t *out) except -1
cdef BaseArray reshape_view(BaseArray x, int ndim, const Py_ssize_t *shape)
cdef int set_shape(BaseArray x, object shape) except -1
cdef int replace_layout(BaseArray x, BaseArray other, str instead,
                        Py_ssize_t references=*) except -1
cdef int resize(BaseArray x, BaseArray zeros) except -1
