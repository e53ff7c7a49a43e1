from ndx._array.pinning cimport Compute, Operands
from ndx._lib.layout cimport MAXDIMS, MAXOPS, Walk

cdef enum:
    # The address of an operand without memory. Its pointer is moved by one for each
    # element, and so tells a kernel the place of a tile's first element.
    PLACES = 64

# The axes of a walk, cut into tiles of one shape. The last ones may be smaller.
cdef struct Grid:
    int ndim
    Py_ssize_t shape[MAXDIMS]
    Py_ssize_t tile[MAXDIMS]
    Py_ssize_t counts[MAXDIMS]       # tiles along each axis
    Py_ssize_t total                 # tiles
    # Bytes of operand 0 from tile to tile, besides its strides: of partial results.
    Py_ssize_t steps[MAXDIMS]
    int halvings                     # one axis is cut by halving instead
    bint two_parts                   # an element is two numbers

# An operation on the elements of a walk, and how it may be cut into tiles.
cdef struct Job:
    Operands *operands               # those of the walk come first
    const Walk *walk
    Py_ssize_t itemsizes[MAXOPS]     # 0: elements may be read or written anywhere
    Compute kernel                   # computes one tile
    void *arg
    unsigned int written             # bits of the operands that are written
    unsigned int read                # bits of those that are read, too
    int cycles                       # that an element takes, besides the memory's time
    bint keeps_axes                  # tiles have all axes of the walk
    # Not 0: operand 0 has results of the others along axes where it has no stride, and
    # tiles have at least so many elements along these.
    Py_ssize_t least
    bint by_rows                     # tiles are runs of elements in C order,
    Py_ssize_t together              # each of a multiple of so many, but the last ones
    bint in_order                    # by the calling thread, one tile after the other
    bint independent                 # in any order, even if places are written twice
    Grid grid                        # without tiles: cut when the job runs
    char **data                      # set when the job runs
    double time                      # the same: nanoseconds, for one thread

cdef Py_ssize_t walk_size(const Walk *walk) noexcept nogil
cdef Py_ssize_t element_bytes(const Walk *walk, const Py_ssize_t *itemsizes) \
    noexcept nogil
cdef void cut(Grid *grid, const Walk *walk, const Py_ssize_t *itemsizes,
              Py_ssize_t nbytes, int reduced, Py_ssize_t least) noexcept nogil
cdef void cut_rows(Grid *grid, const Walk *walk, Py_ssize_t elements) noexcept nogil
cdef void find_place(const Grid *grid, Py_ssize_t index, Py_ssize_t *place) \
    noexcept nogil
cdef void find_tile(const Grid *grid, Py_ssize_t index, const Walk *walk, char **data,
                    Walk *tile, char **start) noexcept nogil
cdef void run_kernel(const Job *job, char **data, Walk *walk) noexcept nogil
cdef void set_order(Job *job) noexcept
cdef void compute_tile(void *job, Py_ssize_t index) noexcept nogil
cdef Py_ssize_t first_half(Py_ssize_t count, bint two_parts) noexcept nogil
cdef void begin_job(Job *job, Operands *operands, const Walk *walk, Compute kernel,
                    void *arg) noexcept
cdef void count_tiles(Grid *grid) noexcept nogil
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
