from cpython.object cimport PyObject, PyTypeObject

from ndx._arenas.arena cimport Arena
from ndx._blocks.block cimport IN_OBJECTS, Block, Export, block_is_live
from ndx._files.mapping cimport any_lost
from ndx._lib.dtypes cimport itemsize_of
from ndx._lib.free_threading cimport ndx_load_byte
from ndx._lib.layout cimport Strided

cdef extern from *:
    """
    /* Only the types of numbers are derived from the array type. */
    #ifndef NDX_IS_ARRAY
    #define NDX_IS_ARRAY(x, type) \
        (Py_TYPE(x) == (PyTypeObject *)(type) || \
         Py_TYPE(x)->tp_base == (PyTypeObject *)(type))
    #endif
    """
    bint NDX_IS_ARRAY(object x, PyTypeObject *cls) noexcept

cdef enum:
    INLINE_DIMS = 4

# `ndx.NDArray`.
cdef PyTypeObject *array_type

# The storage of an array: a layout over a block. `ndx.NDArray` adds the public methods.
cdef class BaseArray:
    # Shape and strides, if they fit; after them the elements of a small array. First:
    # see number_types.h.
    cdef Py_ssize_t dims[2 * INLINE_DIMS]
    cdef Block *block
    cdef Py_ssize_t offset           # bytes from the block's start
    cdef Py_ssize_t size             # elements
    cdef Py_ssize_t *shape
    cdef Py_ssize_t *strides         # bytes
    cdef unsigned char ndim
    cdef unsigned char dtype
    cdef unsigned char number        # immutable and hashable: see `new_number`
    cdef unsigned char c_contiguous
    cdef unsigned char f_contiguous
    cdef unsigned char readonly
    cdef unsigned int place          # in the table of living arrays; 0: in none
    cdef unsigned int maker          # number of what made it; 0: not known
    cdef Export *own_export          # ends with the array; NULL: none
    cdef object base                 # owns foreign memory; else NULL, not None
    cdef object __weakref__

# Keeps an export alive for the objects that refer to the guard.
cdef class ExportGuard:
    cdef Export *export
    cdef object base                 # owns foreign memory; else None

ctypedef Py_hash_t (*NumberHash)(PyObject *number) except? -1
ctypedef PyObject *(*NumberMaker)(int dtype, PyObject *args,
                                  PyObject *kwargs) except NULL
ctypedef PyObject *(*NumberAttribute)(PyObject *number, PyObject *name) except NULL

cdef int set_array_type(type cls, const char *name) except -1
cdef void enter_living(PyObject *self) noexcept
cdef void leave_living(PyObject *self) noexcept
cdef tuple make_number_types(NumberHash hash, NumberMaker make,
                             NumberAttribute attribute, const int *reporting)
ctypedef void (*Announce)(BaseArray x) noexcept

cdef void set_announce(Announce hook) noexcept
cdef void announce_array(BaseArray x) noexcept
cdef BaseArray bare_array(int ndim)
cdef Block *take_block(BaseArray x) except NULL
cdef void set_base(BaseArray x, object base) noexcept
cdef int set_layout(BaseArray x) except -1
cdef int check_room(Py_ssize_t count, Py_ssize_t nbytes, str what) except -1
cdef BaseArray new_array(int device, int dtype, int ndim, const Py_ssize_t *shape,
                         const int *order, bint zero)
cdef BaseArray new_detached(int device, int dtype, int ndim, const Py_ssize_t *shape,
                            const int *order, bint zero, Arena arena)
cdef BaseArray new_empty(int dtype, int ndim, const Py_ssize_t *shape)
cdef BaseArray new_number(int dtype)
cdef BaseArray as_number(BaseArray x)
cdef BaseArray new_like(BaseArray x, int dtype)
cdef BaseArray new_detached_like(BaseArray x, Arena arena)
cdef BaseArray new_view(BaseArray x, int ndim)
cdef BaseArray same_view(BaseArray x)
cdef str array_words(BaseArray x)
cdef int wait_until_live(BaseArray x) except -1
cdef int require_usable_off_host(BaseArray x) except -1
cdef object loss_error(str what, str path)
cdef int find_loss(BaseArray x) except -1
cdef int find_block_loss(Block *block, str what) except -1
cdef Export *export_array(BaseArray x) except NULL
cdef ExportGuard guard_export(BaseArray x)
cdef object numpy_view(BaseArray x)
cdef object transient_view(BaseArray x)
cdef BaseArray from_numpy(object array)
cdef BaseArray from_kept(object array, object keeper)
cdef BaseArray adopt_numpy(object array, object owner)
cdef object require_writeable(BaseArray x)

cdef inline bint is_array(object x) noexcept:
    return NDX_IS_ARRAY(x, array_type)

cdef inline bint holds_number(BaseArray x) noexcept:
    return x.number

cdef inline bint is_in_object(BaseArray x) noexcept:
    """Whether the elements lie in the object: until it shares them (`own_block`)."""
    return ndx_load_byte(&x.block.holding) == IN_OBJECTS

cdef inline Block *own_block(BaseArray x) except NULL:
    """Return the block of an array; elements that lie in the object move to a block.

    Before something shares the memory (a view, an export, an operation that pins it),
    the memory must belong to a block: the object may die first, and shared elements
    must not move. A number also keeps its element, which nothing changes: it must have
    been written.
    """
    if ndx_load_byte(&x.block.holding) < IN_OBJECTS:
        return x.block
    return take_block(x)

cdef inline size_t block_nbytes(BaseArray x) noexcept:
    """Return the bytes of the memory of which an array is all or a part."""
    return x.size * itemsize_of[x.dtype] if is_in_object(x) else x.block.nbytes

cdef inline char *data_of(BaseArray x) noexcept:
    return x.block.ptr + x.offset

cdef inline int require_live(BaseArray x) except -1:
    if not block_is_live(x.block):
        return wait_until_live(x)
    return 0

# Like `require_live`, but accepts arrays on a device: for code that reads only the
# layout, or passes the array to the engine.
cdef inline int require_usable(BaseArray x) except -1:
    if not block_is_live(x.block):
        return require_usable_off_host(x)
    return 0

cdef inline bint has_shape(BaseArray x, int ndim, const Py_ssize_t *shape) noexcept:
    cdef int axis
    if x.ndim != ndim:
        return False
    for axis in range(ndim):
        if x.shape[axis] != shape[axis]:
            return False
    return True

cdef inline int require_intact_file(BaseArray x) except -1:
    """Raise if the file of an operand of the last computation could not be read."""
    if any_lost():
        return find_loss(x)
    return 0

cdef inline void strided(BaseArray x, Strided *out) noexcept:
    out.data = data_of(x)
    out.ndim = x.ndim
    out.dtype = x.dtype
    out.shape = x.shape
    out.strides = x.strides
