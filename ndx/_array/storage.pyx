"""The storage of an array: a dtype and a layout over a shared block.

Views share their base's block. Code that accesses the data checks the block's
generation first. If Python could run meanwhile, it goes through `_array.pinning`.
"""

cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from ndx._blocks.block cimport (
    IN_OBJECTS, Block, Clock, Export, block_blank, block_decref, block_incref,
    block_is_closed, block_is_live, block_is_lost, block_is_read_by_device,
    block_is_usable, block_is_used, block_leave, block_lose, block_of_cell,
    block_origin, block_part, block_pin, block_unpin, block_wait_for_device, block_want,
    block_wrap, export_free, export_new,
)
from ndx._context.context cimport adopt_block, allocate_block, allocate_on
from ndx._files.mapping cimport MappedFile, is_lost, mapping_name
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX128, FLOAT64, INT64, KIND_INT, KIND_UINT, NDTYPES, code_or_none,
    dtype_object, has_arithmetic, itemsize_of, kind_of, typenum_of,
)
from ndx._lib.free_threading cimport (
    NDX_FREE_THREADED, ndx_load_byte, ndx_set_address,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, byte_bounds, check_axes, check_reach, count_elements,
    fill_c_strides, is_c_contiguous, is_f_contiguous, ndx_multiply, order_axes,
    shape_tuple,
)
from ndx.backends.base cimport CELL

from errno import EIO

from ndx._lib import caches
from ndx._lib.device import device_of
from ndx._lib.errors import (
    MappedFileError, ReadOnlyError, StaleArrayError, closed_array_text,
    stale_array_text,
)
from ndx._lib.failing_expression import what_was_done

cnp.import_array()

cdef extern from "Python.h":
    bint PyMemoryView_Check(object o) noexcept
    PyObject *PyMemoryView_GET_BASE(object o) noexcept
    void PyObject_GC_UnTrack(PyObject *op) noexcept
    void PyObject_GC_Track(PyObject *op) noexcept
    void PyObject_ClearWeakRefs(PyObject *op) noexcept

cdef extern from "numpy/arrayobject.h":
    PyTypeObject PyArray_Type
    object make_numpy "PyArray_New" (
        PyTypeObject *cls, int ndim, const Py_ssize_t *shape, int typenum,
        const Py_ssize_t *strides, void *data, int itemsize, int flags, PyObject *obj)

cdef extern from *:
    """
    #define NDX_SET_BASE(x, value) ((x)->base = (value))
    #define NDX_WEAKREFS(x) ((x)->__weakref__)
    """
    void NDX_SET_BASE(BaseArray x, PyObject *value) noexcept
    PyObject *NDX_WEAKREFS(BaseArray x) noexcept

cdef extern from "ndx/internal/living.h":
    unsigned int ndx_maker() noexcept
    void ndx_living_add(void *array, unsigned int *place) noexcept
    void ndx_living_remove(unsigned int *place, Py_ssize_t offset) noexcept

cdef extern from "ndx/internal/checked.h" nogil:
    void ndx_require(bint condition, const char *what)

cdef extern from "ndx/_array/objects.h":
    object ndx_object_new(PyTypeObject *cls, size_t size)
    void ndx_object_free(PyObject *object) noexcept
    ctypedef void (*Dealloc "destructor")(PyObject *) noexcept
    bint ndx_is_plain_type(PyTypeObject *cls, size_t size) noexcept
    int NDX_IDLE_OBJECTS, ndx_idle_count
    void ndx_drop_idle_objects() noexcept
    void ndx_set_fast_objects(PyTypeObject *cls, size_t size, bint fast) noexcept
    void ndx_set_up_type(PyTypeObject *cls, size_t size, Dealloc dealloc,
                         const char *name) noexcept

cdef extern from "ndx/_array/number_types.h":
    ctypedef struct Numbers "ndx_number_functions":
        NumberHash hash
        NumberMaker make
        NumberAttribute attribute
        PyObject *(*blank)(PyTypeObject *cls) except NULL
        const int *reporting

    Numbers ndx_numbers
    PyTypeObject ndx_number_types[]
    int ndx_make_number_type(int dtype, PyTypeObject *array_type, const char *name,
                             const char *doc, PyTypeObject *also, object scalar_class,
                             bint is_index) except -1

cdef extern from "ndx/_array/number_arithmetic.h":
    PyTypeObject *ndx_array_type
    PyTypeObject *ndx_double_type
    PyTypeObject *ndx_int_type
    PyTypeObject *ndx_bool_type
    PyObject *ndx_truths[2]
    ctypedef struct NarrowType "ndx_narrow_type_info":
        char kind
        char itemsize
    NarrowType ndx_narrow_types[]
    void ndx_set_arithmetic(PyTypeObject *cls) noexcept

cdef extern from "Python.h":
    PyTypeObject PyFloat_Type
    PyTypeObject PyComplex_Type

cdef extern from "ndx/internal/arithmetic.h":
    Py_ssize_t ndx_multiply_most(Py_ssize_t a, Py_ssize_t b) nogil

cdef enum:
    # From this size on `check_room` asks the system.
    MANY_BYTES = 1 << 28

cdef extern from "ndx/internal/free_threading.h" nogil:
    Announce ndx_get_announce "ndx_get"(Announce *hook)
    void ndx_set_announce "ndx_set"(Announce *hook, Announce value)

# Hook for recordings: called with each new array that has its own block; or NULL.
cdef Announce announce
announce = NULL

array_type = NULL
cdef object kept_array_type = None
cdef list kept_names = []

# The block of all numbers, whose elements lie in their objects: it does not count them.
cdef Block *number_block = block_blank()
number_block.ptr = NULL
number_block.holding = IN_OBJECTS
number_block.readonly = True         # so that no flag makes a number writeable


cdef int set_array_type(type cls, const char *name) except -1:
    """Make a subclass of BaseArray the type of all new arrays; called once.

    `name` is its public name, which tracebacks and `help` show.
    """
    global array_type, kept_array_type
    kept_array_type = cls
    array_type = <PyTypeObject *>cls
    ndx_set_up_type(array_type, sizeof(BaseArray), array_dealloc, name)
    return 0


cdef PyObject *blank_number(PyTypeObject *cls) except NULL:
    """Return a new number, given its type: for C code."""
    number = new_number(<int>(cls - ndx_number_types))
    Py_INCREF(number)
    return <PyObject *>number


cdef tuple make_number_types(NumberHash hash, NumberMaker make,
                             NumberAttribute attribute, const int *reporting):
    """Make the types of numbers, by dtype; called once, after `set_array_type`."""
    cdef int dtype
    cdef PyTypeObject *also
    cdef BaseArray truth
    global ndx_array_type, ndx_double_type, ndx_int_type, ndx_bool_type
    ndx_numbers.hash = hash
    ndx_numbers.make = make
    ndx_numbers.attribute = attribute
    ndx_numbers.blank = blank_number
    ndx_numbers.reporting = reporting
    ndx_array_type = array_type
    ndx_double_type = &ndx_number_types[<int>FLOAT64]
    ndx_int_type = &ndx_number_types[<int>INT64]
    ndx_bool_type = &ndx_number_types[<int>BOOL]
    for dtype in range(NDTYPES):
        described = dtype_object(dtype)
        name = f"ndx._core.{described.name.capitalize()}".encode()
        doc = f"A number of dtype {described.name}: an array without axes that is " \
            f"immutable and hashable.".encode()
        kept_names.extend((name, doc))
        also = &PyFloat_Type if dtype == FLOAT64 else \
            &PyComplex_Type if dtype == COMPLEX128 else NULL
        ndx_make_number_type(dtype, array_type, name, doc, also, described.type,
                             kind_of[dtype] in (KIND_INT, KIND_UINT))
        ndx_set_arithmetic(&ndx_number_types[dtype])
        if described.kind in "iuf" and itemsize_of[dtype] <= 4 \
                and has_arithmetic(dtype):
            ndx_narrow_types[dtype].kind = <char>ord(described.kind)
            ndx_narrow_types[dtype].itemsize = <char>itemsize_of[dtype]
    for dtype in range(2):
        truth = new_number(BOOL)
        (<unsigned char *>truth.dims)[0] = dtype
        Py_INCREF(truth)
        ndx_truths[dtype] = <PyObject *>truth
    return tuple([<object>(<PyObject *>&ndx_number_types[dtype])
                  for dtype in range(NDTYPES)])


def is_plain_type(type cls):
    """Whether `ndx_object_new` could make objects of a class; for tests."""
    return ndx_is_plain_type(<PyTypeObject *>cls, sizeof(BaseArray))


def make_objects_by_hand(bint fast):
    """Make array objects by `ndx_object_new`, or by Cython's slots; for tests."""
    ndx_set_fast_objects(array_type, sizeof(BaseArray), fast)


def objects_kept():
    return ndx_idle_count, ndx_idle_count * sizeof(BaseArray)


def drop_objects():
    ndx_drop_idle_objects()


caches.register("array objects", NDX_IDLE_OBJECTS, objects_kept, drop_objects)


cdef void set_announce(Announce hook) noexcept:
    """Set the hook that is called with each new array; NULL removes it."""
    global announce
    ndx_set_announce(&announce, hook)


cdef void announce_array(BaseArray x) noexcept:
    """Call the hook for an array whose block was made before it."""
    cdef Announce hook = ndx_get_announce(&announce)
    if hook != NULL:
        hook(x)


# The collector tracks only arrays with a foreign owner (`set_base`). It never clears
# them: the data must live as long as the array. The class has no C methods: Cython's
# constructor would have to set their table, but `bare_array` does not call it.
@cython.no_gc_clear
cdef class BaseArray:
    """Base class of `ndx.NDArray`: its memory and its layout."""

    def __cinit__(self):
        raise TypeError("make an array by ndx.asarray, ndx.zeros, ndx.empty, ...")


cdef void leave_living(PyObject *self) noexcept:
    """Take an array out of the table that other threads may read at any time."""
    ndx_living_remove(&(<BaseArray>self).place,
                      <char *>&(<BaseArray>self).place - <char *>self)
    (<BaseArray>self).place = 0


cdef void enter_living(PyObject *self) noexcept:
    ndx_living_add(self, &(<BaseArray>self).place)


cdef void array_dealloc(PyObject *self) noexcept:
    """Release the block, the export and the owner of an array.

    Each step may run Python: callbacks of weak references, a backend written in Python,
    the owner's finalizer. The array is untracked first, because `gc.get_objects` could
    otherwise take a reference to it, and free it a second time.
    """
    cdef PyObject *base = <PyObject *>(<BaseArray>self).base
    leave_living(self)
    if base != NULL:
        PyObject_GC_UnTrack(self)
    if NDX_WEAKREFS(<BaseArray>self) != NULL:
        PyObject_ClearWeakRefs(self)
    if (<BaseArray>self).own_export != NULL:
        export_free((<BaseArray>self).own_export)
    if (<BaseArray>self).block != number_block and (<BaseArray>self).block != NULL:
        if not NDX_FREE_THREADED and is_in_object(<BaseArray>self):
            block_leave((<BaseArray>self).block, data_of(<BaseArray>self),
                        block_nbytes(<BaseArray>self))
        block_decref((<BaseArray>self).block)
    if (<BaseArray>self).shape != (<BaseArray>self).dims:
        free((<BaseArray>self).shape)
    ndx_object_free(self)
    Py_XDECREF(base)


cdef void set_base(BaseArray x, object base) noexcept:
    """Keep the owner of foreign memory alive; called once, on a new array."""
    Py_INCREF(base)
    NDX_SET_BASE(x, <PyObject *>base)
    PyObject_GC_Track(<PyObject *>x)


# no_gc: not tracked by the collector, like the NumPy arrays that hold a guard.
@cython.no_gc
cdef class ExportGuard:
    """Keeps an export and the owner of foreign memory alive."""

    def __dealloc__(self):
        if self.export != NULL:
            export_free(self.export)


cdef inline BaseArray bare(int ndim):
    """Return an array with room for its layout, and no block yet."""
    cdef BaseArray x = <BaseArray>ndx_object_new(array_type, sizeof(BaseArray))
    x.ndim = <unsigned char>ndim
    x.shape = x.dims
    if ndim > INLINE_DIMS:
        check_axes(ndim)
        # Zeroed: the collector may expose an array before its layout is complete. It
        # then has no elements.
        x.shape = <Py_ssize_t *>calloc(2 * ndim, sizeof(Py_ssize_t))
        if x.shape == NULL:
            x.shape = x.dims
            raise MemoryError("no memory for the shape of an array")
    x.strides = x.shape + ndim
    x.maker = ndx_maker()
    enter_living(<PyObject *>x)
    return x


cdef BaseArray bare_array(int ndim):
    """Return an array with room for its layout, for other modules: `bare` by a call."""
    return bare(ndim)


cdef inline size_t room_of(BaseArray x) noexcept:
    """Return the bytes in the object of a new array that its elements may take."""
    # A recording knows arrays by their blocks.
    if ndx_get_announce(&announce) != NULL or x.ndim > INLINE_DIMS:
        return 0
    return min(<size_t>CELL, (2 * INLINE_DIMS - 2 * x.ndim) * sizeof(Py_ssize_t))


cdef inline void settle(BaseArray x, Block *block) noexcept:
    """Set the block of a new array; find its elements, if they lie in the object."""
    # Another thread may list all arrays.
    ndx_set_address(<const void **>&x.block, block)
    if block.holding == IN_OBJECTS:
        x.offset = <Py_ssize_t>(x.dims + 2 * x.ndim)


cdef Block *cell_of(BaseArray x, PyObject *backend) except NULL:
    """Return a block over a copy of the few elements of an array."""
    return block_of_cell(data_of(x), block_nbytes(x), backend)


cdef Block *take_block(BaseArray x) except NULL:
    """Do as `own_block`, for elements that lie in the object or that were moved."""
    cdef Block *before = x.block
    cdef Block *block
    if ndx_load_byte(&before.holding) != IN_OBJECTS:
        block_want(before)
        return before
    block = cell_of(x, before.backend)
    block.readonly = before.readonly
    with cython.critical_section(x):
        if x.block == before:
            x.offset = 0
            x.block, block = block, before
    # What the array does not have: another thread may have been first.
    if block != number_block:
        block_decref(block)
    return x.block


cdef int set_layout(BaseArray x) except -1:
    """Derive the size and the contiguity from shape and strides."""
    # Counts bytes, too: if they fit, no derived size, stride or offset can overflow.
    cdef Py_ssize_t step = itemsize_of[x.dtype], size = 1
    cdef bint contiguous = True
    cdef int axis
    for axis in range(x.ndim - 1, -1, -1):
        if x.shape[axis] != 1 and x.strides[axis] != step:
            contiguous = False
        if x.shape[axis] <= 0 or ndx_multiply(step, x.shape[axis], &step):
            return set_empty_layout(x)
        size *= x.shape[axis]
    x.size = size
    x.c_contiguous = contiguous
    x.f_contiguous = contiguous if x.ndim < 2 else \
        is_f_contiguous(x.ndim, x.shape, x.strides, itemsize_of[x.dtype])
    return 0


cdef int set_empty_layout(BaseArray x) except -1:
    """Set the layout of an array without elements; ValueError for a wrong shape."""
    cdef Py_ssize_t itemsize = itemsize_of[x.dtype]
    x.size = count_elements(x.ndim, x.shape, itemsize)
    # The strides are unused, but consumers may read them before the size.
    fill_c_strides(x.ndim, x.shape, itemsize, x.strides)
    x.c_contiguous = x.f_contiguous = True
    return 0


cdef int check_room(Py_ssize_t count, Py_ssize_t nbytes, str what) except -1:
    """Raise MemoryError if `count` objects of `nbytes` or more can't fit in memory.

    A broadcast view may have far more elements than memory can hold as objects. Making
    them one by one would exhaust the memory of the whole system first.
    """
    cdef Py_ssize_t total = ndx_multiply_most(count, nbytes)
    cdef void *room
    if total < MANY_BYTES:
        return 0
    # `malloc` takes address space only: no page is touched.
    room = PyMem_RawMalloc(total)
    if room == NULL:
        raise MemoryError(
            f"{what}: there is no memory for {count} objects, which take {total} bytes "
            "or more")
    PyMem_RawFree(room)
    return 0


cdef inline BaseArray laid_out(int dtype, int ndim, const Py_ssize_t *shape,
                               const int *order):
    """Return an array without a block, whose layout has no gaps.

    `order` lists the axes, outermost first; NULL is C order.
    """
    cdef BaseArray x = bare(ndim)
    cdef Py_ssize_t step = itemsize_of[dtype], size = 1
    cdef int i, axis, long_axes = 0
    x.dtype = <unsigned char>dtype
    for i in range(ndim - 1, -1, -1):
        axis = i if order == NULL else order[i]
        x.shape[axis] = shape[axis]
        x.strides[axis] = step
        if shape[axis] <= 0 or ndx_multiply(step, shape[axis], &step):
            memcpy(x.shape, shape, ndim * sizeof(Py_ssize_t))
            set_empty_layout(x)
            return x
        size *= shape[axis]
        long_axes += shape[axis] > 1
    x.size = size
    x.c_contiguous = x.f_contiguous = long_axes <= 1
    if order == NULL:
        x.c_contiguous = True
    elif long_axes > 1:
        step = itemsize_of[dtype]
        x.c_contiguous = is_c_contiguous(ndim, x.shape, x.strides, step)
        x.f_contiguous = is_f_contiguous(ndim, x.shape, x.strides, step)
    return x


cdef BaseArray new_array(int device, int dtype, int ndim, const Py_ssize_t *shape,
                         const int *order, bint zero):
    """Return a new array on a device (0: the CPU), in the current context."""
    cdef BaseArray x = laid_out(dtype, ndim, shape, order)
    cdef size_t nbytes = x.size * itemsize_of[dtype]
    settle(x, allocate_block(nbytes, zero, room_of(x)) if device == 0
           else allocate_on(device, nbytes, zero, False, None, 0))
    announce_array(x)
    return x


cdef BaseArray new_empty(int dtype, int ndim, const Py_ssize_t *shape):
    return new_array(0, dtype, ndim, shape, NULL, False)


cdef BaseArray new_detached(int device, int dtype, int ndim, const Py_ssize_t *shape,
                            const int *order, bint zero, Arena arena):
    """Return a new array on a device, in the given arena (open or not) or in none."""
    cdef BaseArray x = laid_out(dtype, ndim, shape, order)
    settle(x, allocate_on(device, x.size * itemsize_of[dtype], zero, True, arena,
                          room_of(x)))
    announce_array(x)
    return x


cdef BaseArray new_number(int dtype):
    """Return a new number; the caller writes its element to `data_of`.

    A number is an array without axes that is independent of workspaces and backends,
    immutable and hashable. Its element lies in the object.
    """
    cdef BaseArray x = <BaseArray>ndx_object_new(
        &ndx_number_types[dtype], sizeof(BaseArray))
    x.shape = x.strides = x.dims
    x.dtype = <unsigned char>dtype
    x.size = 1
    x.c_contiguous = x.f_contiguous = x.readonly = x.number = True
    x.offset = <Py_ssize_t>x.dims
    x.block = number_block
    return x


cdef BaseArray as_number(BaseArray x):
    """Return the number that an array without axes holds; on a device, the array."""
    cdef BaseArray number
    if holds_number(x) or x.ndim or x.block.device:
        return x
    number = new_number(x.dtype)
    if NDX_FREE_THREADED:
        block_pin(x.block)
    try:
        require_live(x)
        memcpy(number.dims, data_of(x), itemsize_of[x.dtype])
    finally:
        if NDX_FREE_THREADED:
            block_unpin(x.block)
    require_intact_file(x)
    return number


cdef BaseArray new_like(BaseArray x, int dtype):
    """Return a new array with the shape, the device and the axis order of `x`."""
    cdef BaseArray result
    cdef Py_ssize_t itemsize = itemsize_of[dtype]
    cdef int axis
    if not x.c_contiguous or x.block.device:
        return new_in_order(x, dtype, False, None)
    # Fast path: reuses the numbers of `x`. It is a tenth of the time of a small sum.
    result = bare(x.ndim)
    result.dtype = <unsigned char>dtype
    result.size = x.size
    for axis in range(x.ndim):
        result.shape[axis] = x.shape[axis]
    if itemsize == itemsize_of[x.dtype]:
        for axis in range(x.ndim):
            result.strides[axis] = x.strides[axis]
    else:
        # Needed without elements, too: a size of 0 does not reveal an overflow.
        count_elements(x.ndim, x.shape, itemsize)
        fill_c_strides(x.ndim, x.shape, itemsize, result.strides)
    result.c_contiguous = True
    result.f_contiguous = x.f_contiguous
    settle(result, allocate_block(x.size * itemsize, False, room_of(result)))
    announce_array(result)
    return result


cdef BaseArray new_detached_like(BaseArray x, Arena arena):
    """Return a new array like `x`, on its device, in an arena; None: in no arena."""
    return new_in_order(x, x.dtype, True, arena)


cdef BaseArray new_in_order(BaseArray x, int dtype, bint detached, Arena arena):
    """Return a new array like `x`, whose axes lie in memory in the order of those."""
    cdef Py_ssize_t strides[1][MAXDIMS]
    cdef int order[MAXDIMS]
    memcpy(strides[0], x.strides, x.ndim * sizeof(Py_ssize_t))
    order_axes(x.ndim, x.shape, 1, strides, True, order)
    if detached:
        return new_detached(x.block.device, dtype, x.ndim, x.shape, order, False, arena)
    return new_array(x.block.device, dtype, x.ndim, x.shape, order, False)


cdef BaseArray new_view(BaseArray x, int ndim):
    """Return an array over the block of `x`; the caller sets its layout."""
    cdef BaseArray view = bare(ndim)
    require_usable(x)
    view.dtype = x.dtype
    if holds_number(x):
        # A view of a number is a copy, as of NumPy's scalars.
        view.block = cell_of(x, NULL)
        return view
    view.readonly = x.readonly
    view.block = own_block(x)
    view.offset = x.offset
    block_incref(view.block)
    if <PyObject *>x.base != NULL:
        set_base(view, x.base)
    return view


cdef BaseArray same_view(BaseArray x):
    """Return a view of all of `x`."""
    cdef BaseArray view = new_view(x, x.ndim)
    memcpy(view.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    memcpy(view.strides, x.strides, x.ndim * sizeof(Py_ssize_t))
    view.size = x.size
    view.c_contiguous = x.c_contiguous
    view.f_contiguous = x.f_contiguous
    return view


cdef int wait_until_live(BaseArray x) except -1:
    """Wait until no device reads the array; StaleArrayError if it is still unusable."""
    while not block_is_live(x.block):
        if block_is_read_by_device(x.block):
            block_wait_for_device(x.block)
        elif x.block.device or not block_is_usable(x.block):
            raise stale_error(x)
    return 0


cdef int require_usable_off_host(BaseArray x) except -1:
    """Raise StaleArrayError if `x` is stale or closed; arrays on a device pass."""
    if not block_is_usable(x.block):
        raise stale_error(x)
    return 0


cdef str array_words(BaseArray x):
    return f"array of shape {shape_tuple(x.ndim, x.shape)} and dtype " \
        f"{dtype_object(x.dtype)}"


cdef object stale_error(BaseArray x):
    """Return the error that names the array, its origin, and the remedies."""
    cdef Block *block = x.block
    cdef Clock clock
    what = array_words(x)
    if block_is_usable(block):
        return TypeError(
            f"the {what} is on {str(device_of(block.device))!r}, whose memory the CPU "
            "can't read; x.to_device('cpu') returns a copy that it can")
    if block_is_lost(block):
        return loss_error(what, mapping_name(block.ptr))
    operation, operand = what_was_done(x)
    known = {"shape": shape_tuple(x.ndim, x.shape), "dtype": str(dtype_object(x.dtype)),
             "operation": operation, "operand": operand}
    if block_is_closed(block):
        return StaleArrayError(closed_array_text(what, operation, operand), **known)
    clock = <Clock>block.clock
    cdef PyObject *line = block_origin(block)
    origin = None if line == NULL else <object>line
    known.update(workspace=clock.name, generation=block.generation, current=clock.now)
    return StaleArrayError(
        stale_array_text(what, operation, operand, clock.name, block.generation,
                         clock.now, clock.open, origin), **known)


cdef int find_loss(BaseArray x) except -1:
    return find_block_loss(x.block, array_words(x))


cdef int find_block_loss(Block *block, str what) except -1:
    """Raise if pages of a block were lost; then every later use raises, too."""
    if not is_lost(block.ptr, block.nbytes):
        return 0
    block_lose(block)
    raise loss_error(what, mapping_name(block.ptr))


cdef object loss_error(str what, str path):
    return MappedFileError(
        EIO, f"the {what} can't be read from its file: another process cut that short, "
        "or the disk failed or is full, so what was computed with it is wrong. What "
        "was written to it, but not to the disk, is lost; make the array again, or "
        "open the file when it is whole", path)


cdef object require_writeable(BaseArray x):
    if holds_number(x):
        raise TypeError(
            f"a number (here one of dtype {dtype_object(x.dtype)}), an element or what "
            "is computed of elements, can't be changed: write into its array, x[k] = "
            "value, or make an array of it by ndx.asarray(number)")
    if x.readonly:
        memory_owner = block_part(x.block, &x.block.memory_owner)
        if x.block.readonly and isinstance(memory_owner, MappedFile):
            raise ReadOnlyError(
                f"the {array_words(x)} is read-only: its file "
                f"{(<MappedFile>memory_owner).path!r} is open with mode 'r'; open it "
                "with ndx.open(path, 'r+') to change the file, with 'c' to change it "
                "in memory alone, or write into a copy: ndx.asarray(x, copy=True)")
        raise ReadOnlyError(
            f"the array of shape {shape_tuple(x.ndim, x.shape)} and dtype "
            f"{dtype_object(x.dtype)} is read-only (a broadcast view, or memory that "
            "was handed over as read-only); write into a copy: ndx.asarray(x, "
            "copy=True)")
    return None


cdef Export *export_array(BaseArray x) except NULL:
    """Record that foreign code may read the bytes under `x`."""
    cdef Strided layout
    cdef Py_ssize_t low = 0, high = 0
    require_usable(x)
    if block_is_read_by_device(x.block):
        wait_until_live(x)
    own_block(x)
    strided(x, &layout)
    byte_bounds(&layout, itemsize_of[x.dtype], &low, &high)
    if low == high:
        # The offset of an array without elements may lie beyond the block.
        low = high = 0
    else:
        low += x.offset
        high += x.offset
    if not NDX_FREE_THREADED:
        return export_new(x.block, low, high)
    # A scope that another thread ends now sees the pin, or is seen.
    block_pin(x.block)
    try:
        require_usable(x)
        return export_new(x.block, low, high)
    finally:
        block_unpin(x.block)


cdef ExportGuard guard_export(BaseArray x):
    """Return an object that keeps the bytes under `x` in place while it lives."""
    cdef ExportGuard guard = ExportGuard.__new__(ExportGuard)
    guard.export = export_array(x)
    if <PyObject *>x.base != NULL:
        guard.base = x.base
    return guard


cdef object numpy_view(BaseArray x):
    """Return a NumPy array over the memory of `x`, which it pins."""
    require_live(x)
    cdef ExportGuard guard = guard_export(x)
    view = transient_view(x)
    cnp.set_array_base(view, guard)
    return view


cdef object transient_view(BaseArray x):
    """Return a NumPy array over `x`; `x` must stay held while the result lives."""
    ndx_require(NDX_FREE_THREADED or block_is_used(x.block),
                "an array that NumPy sees is not held")
    return make_numpy(
        &PyArray_Type, x.ndim, x.shape, typenum_of[x.dtype], x.strides, data_of(x), 0,
        0 if x.readonly else cnp.NPY_ARRAY_WRITEABLE, NULL)


cdef BaseArray lay_out(cnp.ndarray source):
    """Return an array with a NumPy array's layout, and no block; None: unsupported."""
    # Not `source.dtype`, by which a subclass may say something else.
    cdef int dtype = code_or_none(<object>cnp.PyArray_DESCR(source)), axis
    cdef BaseArray x
    if dtype < 0 or not cnp.PyArray_ISALIGNED(source) or source.ndim > MAXDIMS:
        return None
    x = bare(source.ndim)
    x.dtype = <unsigned char>dtype
    for axis in range(source.ndim):
        x.shape[axis] = source.shape[axis]
        x.strides[axis] = source.strides[axis]
    set_layout(x)
    check_reach(x.ndim, x.shape, x.strides, itemsize_of[dtype])
    return x


cdef BaseArray from_numpy(object array):
    """Return an array over the memory of a NumPy array, and keep that alive.

    Returns None if the dtype is not supported or not in native byte order, or the
    elements are not aligned: the caller decides whether to copy.
    """
    return from_kept(array, keeper_of(array))


cdef BaseArray from_kept(object array, object keeper):
    """Return an array over the memory of a NumPy array, which `keeper` keeps alive.

    Like `from_numpy`, with an owner that may differ from the NumPy array.
    """
    cdef cnp.ndarray source = array
    cdef BaseArray x = lay_out(source)
    if x is None:
        return None
    x.readonly = not cnp.PyArray_ISWRITEABLE(source)
    x.block = block_wrap(<char *>cnp.PyArray_DATA(source), cnp.PyArray_NBYTES(source),
                         x.readonly, None)
    set_base(x, keeper)
    return x


cdef object keeper_of(object array):
    """Return the object that keeps the memory of a NumPy array alive.

    That is the array itself; or, if it is a view of one of ours over foreign memory,
    the owner of that memory. Otherwise each trip of an array to NumPy and back would
    add a link to a chain of owners.
    """
    cdef ExportGuard guard
    cdef PyObject *at = <PyObject *>array
    while at != NULL and isinstance(<object>at, cnp.ndarray):
        at = cnp.PyArray_BASE(<cnp.ndarray>at)
    if at != NULL and PyMemoryView_Check(<object>at):
        at = PyMemoryView_GET_BASE(<object>at)
        if at != NULL and is_array(<object>at) and \
                <PyObject *>(<BaseArray>at).base != NULL:
            return (<BaseArray>at).base
    elif at != NULL and isinstance(<object>at, ExportGuard):
        guard = <ExportGuard>at
        if guard.base is not None:
            return guard.base
    return array


cdef BaseArray adopt_numpy(object array, object owner):
    """Return an array over a NumPy result whose data came from ndx's allocator.

    `owner` is the result, or the array that it is a view of, which frees the data.
    The array carries the generation of the current workspace, as every new array.
    """
    cdef cnp.ndarray source = array
    cdef BaseArray x = lay_out(source)
    if x is None:
        raise TypeError(f"{source.dtype} is not a dtype of the array API")
    x.block = adopt_block(<char *>cnp.PyArray_DATA(source),
                          cnp.PyArray_NBYTES(source), owner)
    return x
