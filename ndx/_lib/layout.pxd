cdef enum:
    MAXDIMS = 64
    MAXOPS = 8

# The layout of one operand. It owns nothing.
cdef struct Strided:
    char *data
    int ndim
    int dtype
    Py_ssize_t *shape
    Py_ssize_t *strides      # bytes

# The strides of one of several operands, in bytes.
ctypedef Py_ssize_t StrideRow[MAXDIMS]

# One walk over several operands: axes outermost first, merged where possible.
cdef struct Walk:
    int ndim
    int nops
    Py_ssize_t shape[MAXDIMS]
    StrideRow strides[MAXOPS]

cdef extern from "ndx/internal/arithmetic.h" nogil:
    bint ndx_multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out)
    Py_ssize_t magnitude "ndx_magnitude" (Py_ssize_t step)

cdef Py_ssize_t count_elements(int ndim, const Py_ssize_t *shape,
                               Py_ssize_t itemsize) except -1
cdef int check_axes(Py_ssize_t ndim) except -1
cdef int check_reach(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                     Py_ssize_t itemsize) except -1
cdef void fill_c_strides(int ndim, const Py_ssize_t *shape, Py_ssize_t itemsize,
                         Py_ssize_t *strides) noexcept nogil
cdef bint is_c_contiguous(int ndim, const Py_ssize_t *shape,
                          const Py_ssize_t *strides, Py_ssize_t itemsize) noexcept nogil
cdef bint is_f_contiguous(int ndim, const Py_ssize_t *shape,
                          const Py_ssize_t *strides, Py_ssize_t itemsize) noexcept nogil
cdef void byte_bounds(const Strided *x, Py_ssize_t itemsize,
                      Py_ssize_t *low, Py_ssize_t *high) noexcept nogil
cdef int broadcast_into(int ndim, Py_ssize_t *shape, int other_ndim,
                        const Py_ssize_t *other) noexcept nogil
cdef void broadcast_strides(const Strided *x, int ndim, const Py_ssize_t *shape,
                            Py_ssize_t *strides) noexcept nogil
cdef bint reshape_strides(const Strided *x, Py_ssize_t itemsize, int ndim,
                          const Py_ssize_t *shape, Py_ssize_t *strides) noexcept nogil
cdef void order_axes(int ndim, const Py_ssize_t *shape, int nops,
                     StrideRow *strides, bint agree,
                     int *order) noexcept nogil
cdef void sort_axes(int ndim, Py_ssize_t *shape, int nops,
                    StrideRow *strides) noexcept nogil
cdef int merge_axes(int ndim, Py_ssize_t *shape, int nops,
                    StrideRow *strides) noexcept nogil
cdef void walk_order(Walk *walk) noexcept nogil
cdef void walk_merge(Walk *walk) noexcept nogil
cdef tuple shape_tuple(int ndim, const Py_ssize_t *shape)
cdef int parse_shape(object shape, Py_ssize_t *out) except -1
cdef int normalize_axis(object axis, int ndim) except -1
cdef tuple items_of(object items, str what)
cdef object read_axes(object axis)
cdef object normalize_axes(object axis, int ndim)
cdef Py_ssize_t read_int(object value, str what) except? -1
cdef int parse_axes(object axis, int ndim, bint *chosen) except -1

cdef inline Py_ssize_t stepped(Py_ssize_t stride, Py_ssize_t step) noexcept nogil:
    """Return the stride of every `step`-th element.

    If that overflows, the step leaves at most one element, for which any stride is
    valid.
    """
    cdef Py_ssize_t result = 0
    return stride if ndx_multiply(stride, step, &result) else result
