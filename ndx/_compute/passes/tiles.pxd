from ndx._lib.layout cimport MAXDIMS, Walk

# The axes of a walk, cut into tiles of one shape. The last ones may be smaller.
cdef struct Grid:
    int ndim
    Py_ssize_t shape[MAXDIMS]
    Py_ssize_t tile[MAXDIMS]
    Py_ssize_t counts[MAXDIMS]       # tiles along each axis
    Py_ssize_t total                 # tiles

cdef Py_ssize_t walk_size(const Walk *walk) noexcept nogil
cdef Py_ssize_t element_bytes(const Walk *walk, const Py_ssize_t *itemsizes) \
    noexcept nogil
cdef void cut(Grid *grid, const Walk *walk, const Py_ssize_t *itemsizes,
              Py_ssize_t nbytes, int reduced, Py_ssize_t least) noexcept nogil
cdef void find_place(const Grid *grid, Py_ssize_t index, Py_ssize_t *place) \
    noexcept nogil
cdef void tile_walk(const Grid *grid, const Py_ssize_t *place, const Walk *walk,
                    Walk *out) noexcept nogil
cdef Py_ssize_t span(const Walk *walk, int op, Py_ssize_t itemsize,
                     Py_ssize_t *low) noexcept nogil

# The memory of an operand in a walk, as runs of contiguous bytes.
cdef struct Runs:
    Py_ssize_t length                # bytes of each run
    Py_ssize_t low                   # offset of the lowest run from the first element
    int ndim
    Py_ssize_t shape[MAXDIMS]
    Py_ssize_t strides[MAXDIMS]
    Py_ssize_t count

cdef void find_runs(Runs *runs, const Walk *walk, int op, Py_ssize_t itemsize) \
    noexcept nogil
cdef Py_ssize_t run_start(const Runs *runs, Py_ssize_t index) noexcept nogil
