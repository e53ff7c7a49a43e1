"""NumPy's functions with their results in our memory (NEP 49), and plain NumPy.

While a function runs through `call_numpy`, NumPy allocates the data of every new array
from our backend. The handler is immortal, and the header of each range names the
backend that takes it back. So arrays that outlive the call, NumPy's caches included,
stay valid. The handler never allocates from a workspace's arena. After the call, the
result is moved into the arena. If it does not fit, it becomes a spilled block of the
workspace: stamped with its generation, and freed with it.

References
----------
NEP 49, data allocation strategies: https://numpy.org/neps/nep-0049
"""

cimport numpy as cnp
from cpython.buffer cimport PyObject_CheckBuffer
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy, strncpy

from ndx._array.pinning cimport Operands, begin_all, end_all, put
from ndx._array.storage cimport (
    BaseArray, ExportGuard, adopt_numpy, announce_array, bare_array,
    find_block_loss, from_kept, from_numpy, new_empty, require_intact_file,
    require_live, set_base, set_layout,
)
from ndx._blocks.block cimport (
    Block, BlockParent, allocate_memory, block_incref, block_part,
)
from ndx._compute.copies cimport copy
from ndx._compute.costs cimport LARGE
from ndx._context.context cimport (
    PlainNumpy, arena_of, plain_numpy, spill_backend, top_context,
)
from ndx._files.mapping cimport MappedFile, any_lost, find_mapping
from ndx._lib.dtypes cimport code_or_none, itemsize_of
from ndx._lib.guards cimport guards
from ndx._lib.layout cimport Strided, byte_bounds
from ndx._lib.numpy_allocator cimport set_handlers
from ndx._lib.numpy_private cimport restore, silence
from ndx._lib.tracing cimport trace, untrace, untrace_numpy
from ndx._lib.unraisable cimport Refusals, is_of_allocator, log_event, raise_later
from ndx._recording.recorder cimport range_adopted, range_freed, record_range
from ndx.backends.base cimport ALIGNMENT, Backend, Memory
from ndx.backends.pooled cimport PooledBackend

from ndx._lib.numpy_private import part
from ndx._lib.trees import leaves

DummyArray = part("strides")

cnp.import_array()

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    object call_with_keywords "PyObject_Call" (
        object function, object args, PyObject *kwargs)

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyDataMemAllocator:
        void *ctx
        void *(*malloc)(void *ctx, size_t size) noexcept
        void *(*calloc)(void *ctx, size_t count, size_t size) noexcept
        void *(*realloc)(void *ctx, void *ptr, size_t size) noexcept
        void (*free)(void *ctx, void *ptr, size_t size) noexcept
    ctypedef struct PyDataMem_Handler:
        char name[127]
        uint8_t version
        PyDataMemAllocator allocator
    object PyDataMem_SetHandler(object handler)
    # NULL: NumPy's own.
    object reset_numpy_handler "PyDataMem_SetHandler" (PyObject *handler)
    PyObject *PyArray_HANDLER(cnp.ndarray array) noexcept

# In the ALIGNMENT bytes before the data. If the data is in a file, whose pages may be
# lost, or is guarded, the header is allocated separately.
cdef struct Header:
    Memory memory
    PyObject *backend        # strong
    size_t nbytes            # of the data; NumPy's own figure is only a hint
    uint64_t serial          # of its birth in recordings; 0: not recorded


# Data address -> address of a header that was allocated separately. Never freed:
# arrays may outlive this module at exit.
cdef PyObject *exposed = NULL    # or `table`
cdef dict table = {}
Py_INCREF(table)


# Bytes before the data, for the header: a guard is to lie next to the data.
cdef size_t HEAD = 0 if guards.mode else ALIGNMENT


cdef Header *header_of(void *ptr) noexcept:
    """Return the header of a range."""
    if exposed != NULL and (HEAD == 0 or find_mapping(ptr, NULL)):
        return <Header *><uintptr_t>(<dict>exposed)[<uintptr_t>ptr]
    return <Header *>(<char *>ptr - ALIGNMENT)


cdef Header *new_header(char *ptr) except NULL:
    """Return memory for the header of a new range."""
    global exposed
    cdef Header *header
    if HEAD and not find_mapping(ptr, NULL):
        return <Header *>(ptr - ALIGNMENT)
    exposed = <PyObject *>table
    header = <Header *>PyMem_RawMalloc(sizeof(Header))
    if header == NULL:
        raise MemoryError("no memory for the description of a range")
    try:
        (<dict>exposed)[<uintptr_t>ptr] = <uintptr_t>header
    except BaseException:
        PyMem_RawFree(header)
        raise
    return header


cdef void forget_header(void *ptr, Header *header) noexcept:
    if header != <Header *>(<char *>ptr - ALIGNMENT):
        del (<dict>exposed)[<uintptr_t>ptr]
        PyMem_RawFree(header)


# Refusals within `call_numpy`, which raises them instead of NumPy's errors.
cdef Refusals refusals = Refusals()


cdef void *handler_take(void *plain, size_t nbytes, bint zero) noexcept:
    """Return a new range of the current backend or, if `plain`, of NumPy's scope."""
    cdef PlainNumpy scope = None
    cdef Backend backend
    cdef void *ptr
    if plain == NULL:
        backend = spill_backend()
    else:
        scope = plain_numpy()
        if scope is None:
            # The scope has ended, but the handler could not be reset then.
            reset_numpy_handler(NULL)
        backend = spill_backend() if scope is None else scope.backend
    try:
        ptr = take(backend, nbytes, zero)
    except BaseException as raised:
        note_refusal(scope, raised)
        return NULL
    # NumPy has gone on without what was refused before.
    (refusals if scope is None else scope.refusals).drop()
    return ptr


cdef void *take(Backend backend, size_t nbytes, bint zero) except? NULL:
    """Return a new range for NumPy, with a header before it; raise if it fails."""
    cdef Memory memory
    cdef Header *header
    cdef Backend server
    if nbytes > <size_t>PY_SSIZE_T_MAX - HEAD:
        raise MemoryError(f"{nbytes} bytes are beyond the address space")
    server = allocate_memory(backend, None, max(1, nbytes + HEAD), zero, &memory)
    # NumPy tells tracemalloc of its arrays itself.
    untrace(memory.ptr)
    try:
        header = new_header(memory.ptr + HEAD)
    except BaseException:
        server.release(&memory)
        raise
    header.memory = memory
    header.nbytes = nbytes
    Py_INCREF(server)
    header.backend = <PyObject *>server
    header.serial = record_range(memory.ptr + HEAD, nbytes, server)
    return memory.ptr + HEAD


cdef void *handler_malloc(void *ctx, size_t size) noexcept with gil:
    return handler_take(ctx, size, False)


cdef void *handler_calloc(void *ctx, size_t count, size_t size) noexcept with gil:
    if size and count > <size_t>PY_SSIZE_T_MAX // size:
        return NULL
    return handler_take(ctx, count * size, True)


cdef void *handler_realloc(void *ctx, void *ptr, size_t size) noexcept with gil:
    """Move a range to a larger or smaller one of the same backend."""
    cdef Header *header
    cdef void *moved
    if ptr == NULL:
        return handler_take(ctx, size, False)
    header = header_of(ptr)
    try:
        moved = take(<Backend>header.backend, size, False)
    except BaseException as raised:
        # No memory for a smaller copy: the range keeps its size.
        if size <= header.nbytes:
            return ptr
        note_refusal(None if ctx == NULL else plain_numpy(), raised)
        return NULL
    memcpy(moved, ptr, min(header.nbytes, size))
    handler_free(ctx, ptr, 0)
    return moved


cdef void note_refusal(PlainNumpy scope, object error) noexcept:
    """Keep the error of a refused allocation, for the caller that raises it."""
    if scope is None:
        refusals.keep(error)
        return
    log_event("NumPy gets no memory: %s", (error,))
    # NumPy raises a MemoryError, to which this one becomes the cause.
    if not raise_later(error):
        scope.refusals.keep(error)


cdef void handler_free(void *ctx, void *ptr, size_t size) noexcept with gil:
    cdef Header *header
    cdef PyObject *backend
    cdef Memory memory
    cdef uint64_t serial
    if ptr == NULL:
        return
    header = header_of(ptr)
    backend = header.backend
    memory = header.memory
    serial = header.serial
    forget_header(ptr, header)
    untrace(memory.ptr)
    if ctx != NULL and isinstance(<object>backend, PooledBackend):
        (<PooledBackend>backend).release_plain(&memory)
    else:
        (<Backend>backend).release(&memory)
    Py_DECREF(<object>backend)
    if serial:
        range_freed(serial)


cdef object make_handler(PyDataMem_Handler *handler, const char *name, void *plain):
    """Fill in a handler; return its capsule."""
    strncpy(handler.name, name, 126)
    handler.version = 1
    handler.allocator.ctx = plain
    handler.allocator.malloc = handler_malloc
    handler.allocator.calloc = handler_calloc
    handler.allocator.realloc = handler_realloc
    handler.allocator.free = handler_free
    capsule = PyCapsule_New(handler, "mem_handler", NULL)
    # Arrays may outlive this module at exit: the capsule is never freed.
    Py_INCREF(capsule)
    return capsule


cdef PyDataMem_Handler of_results
cdef PyDataMem_Handler of_plain
cdef object handler_capsule = make_handler(&of_results, b"ndx", NULL)
set_handlers(handler_capsule, make_handler(&of_plain, b"ndx_plain", &of_plain))


# The beginnings of NumPy's messages on impossible sizes.
cdef tuple TOO_BIG = ("array is too big", "Maximum allowed")


cdef object name_of(object function):
    return getattr(function, "__name__", type(function).__name__)


cdef object with_whole_steps(object x):
    """Return an array of NumPy, or a copy; see `_compute.gufuncs`."""
    cdef int axis
    if type(x) is cnp.ndarray:
        for axis in range(cnp.PyArray_NDIM(x)):
            if cnp.PyArray_STRIDE(x, axis) % cnp.PyArray_ITEMSIZE(x):
                return x.copy()
    return x


cdef object call_numpy(object function, tuple args, dict kwargs):
    """Call a function with NumPy's new arrays in our memory and no warnings."""
    return run_numpy(function, args, kwargs, True, True,
                     getattr(function, "__module__", None) == "numpy.linalg")


cdef object run_numpy(object function, tuple args, dict kwargs, bint ours,
                      bint computes, bint by_steps):
    """Call a function of NumPy.

    Parameters
    ----------
    kwargs : dict or None
    ours : bool
        Whether NumPy's new arrays are in our memory.
    computes : bool
        Whether the function computes floating-point numbers: without warnings.
    by_steps : bool
        Whether it is one of `numpy.linalg`, which can't read all arrays.
    """
    error = refusal = before = token = None
    if by_steps:
        args = tuple([with_whole_steps(x) for x in args])
        if kwargs:
            kwargs = {name: with_whole_steps(x) for name, x in kwargs.items()}
    if ours:
        before = PyDataMem_SetHandler(handler_capsule)
    if computes:
        token = silence()
    try:
        result = call_with_keywords(
            function, args, NULL if kwargs is None else <PyObject *>kwargs)
        if any_lost():
            recheck_views((args, kwargs))
        return result
    except MemoryError as raised:
        refusal = refusals.take()
        if not is_of_allocator(raised) or (refusal is None and raised.args):
            raise
        error = refusal
        if error is None:
            error = MemoryError(
                f"{name_of(function)}: NumPy has no memory of its own for what it "
                "computes")
    except ValueError as raised:
        if not str(raised).startswith(TOO_BIG):
            raise
        error = ValueError(
            f"{name_of(function)}: what it computes is beyond the address space (2**63 "
            "bytes)")
    finally:
        refusals.drop()
        if computes:
            restore(token)
        if ours:
            PyDataMem_SetHandler(before)
    # Raised outside of `except`: as its context, NumPy's error would keep NumPy's
    # arrays alive.
    raise error


cdef int recheck_views(object views) except -1:
    """Raise if pages were lost under an array whose view was passed to NumPy."""
    if any_lost():
        for view in leaves(views):
            base = root_of(view)
            if isinstance(base, ExportGuard):
                find_block_loss((<ExportGuard>base).export.block, "operand")
    return 0


cdef BaseArray own_result(object array):
    """Return a NumPy result as an array of ours, without a copy if the data is ours.

    A view of one of our arrays becomes a view of that array. Data that our handler
    allocated is adopted. Anything else is copied.
    """
    cdef BaseArray foreign
    cdef Operands operands
    cdef int dtype = code_or_none(<object>cnp.PyArray_DESCR(array))
    base = root_of(array)
    if isinstance(base, ExportGuard):
        return view_of_block(array, <ExportGuard>base)
    if isinstance(base, cnp.ndarray) \
            and cnp.PyArray_CHKFLAGS(base, cnp.NPY_ARRAY_OWNDATA):
        if PyArray_HANDLER(base) == <PyObject *>handler_capsule:
            if dtype >= 0 and cnp.PyArray_SIZE(array) == 0:
                # What NumPy has for it goes back.
                return new_empty(dtype, cnp.PyArray_NDIM(array),
                                 <Py_ssize_t *>cnp.PyArray_DIMS(array))
            return adopt_result(array, base)
        if dtype >= 0 and cnp.PyArray_ISCARRAY_RO(array) \
                and cnp.PyArray_NBYTES(array) < LARGE:
            foreign = new_empty(dtype, cnp.PyArray_NDIM(array),
                                <Py_ssize_t *>cnp.PyArray_DIMS(array))
            operands.count = 0
            put(&operands, foreign)
            begin_all(&operands)
            memcpy(operands.data[0], cnp.PyArray_DATA(array), cnp.PyArray_NBYTES(array))
            end_all(&operands)
            return foreign
    foreign = from_numpy(array)
    if foreign is None and dtype >= 0:
        # The elements of NumPy's result are not aligned.
        foreign = from_numpy(array.copy())
    if foreign is None:
        raise TypeError(f"{array.dtype} is not a dtype of the array API")
    return copy(foreign)


cdef object own_or_keep(object array, operands, foreign, bint shares):
    """Like `own_result`, for results of any of NumPy's functions.

    Parameters
    ----------
    array : np.ndarray
        The result. It is returned as it is if no NDArray can be it: if its dtype is
        none of the array API, its bytes are in another order, or it shares memory, in
        which its elements are not aligned. A copy would lose what is written to it.
    operands : tree
        The operands of the function, among them views of our arrays.
    foreign : sequence, or None
        The roots of NumPy's own arrays that were operands. Views of them share their
        memory.
    shares : bool
        Whether the result shares memory of others that the function took it from.
    """
    cdef BaseArray x
    if code_or_none(<object>cnp.PyArray_DESCR(array)) < 0:
        return array
    base = root_of(array)
    if isinstance(base, ExportGuard):
        return view_of_aligned(array, <ExportGuard>base)
    if is_one_of(base, foreign):
        x = from_numpy(array)
        # Elements that are not aligned stay NumPy's: writes to a copy would be lost.
        return array if x is None else x
    if not isinstance(base, cnp.ndarray) and cnp.PyArray_SIZE(array):
        # Functions such as `as_strided` hide the base behind an object of their own.
        for view in leaves(operands):
            root = root_of(view)
            if isinstance(root, ExportGuard) and lies_within(array, <ExportGuard>root):
                return view_of_aligned(array, <ExportGuard>root)
    if shares and is_of_others(base):
        if PyObject_CheckBuffer(base) and not isinstance(base, cnp.ndarray):
            # NumPy's `ndarray` keeps the object, but may not lock its memory.
            x = from_kept(array, memoryview(base))
        else:
            x = from_numpy(array)
        return array if x is None else x
    if not cnp.PyArray_ISALIGNED(array):
        # A field of records, which are NumPy's.
        return array
    return own_result(array)


cdef bint is_one_of(object base, foreign) except -1:
    if foreign is None:
        return False
    for each in foreign:
        if base is each:
            return True
    return False


cdef bint is_of_others(object base) except -1:
    """Whether memory belongs to an object that NumPy's result keeps alive.

    Such an object is a buffer, a capsule, or an array that was made of one, as by
    `frombuffer`. The NDArray is to share this memory, as NumPy's result does.
    """
    if not isinstance(base, cnp.ndarray):
        return True
    return cnp.PyArray_CHKFLAGS(base, cnp.NPY_ARRAY_OWNDATA) \
        and PyArray_HANDLER(base) != <PyObject *>handler_capsule


cdef void reach_of(ExportGuard guard, Py_ssize_t *low, Py_ssize_t *high) noexcept:
    """Set the bytes of a block that an operand and its views may touch.

    The block of foreign memory counts only the bytes of elements, and starts at the
    first. Memory with gaps or negative strides reaches beyond it.
    """
    low[0] = min(0, <Py_ssize_t>guard.export.low)
    high[0] = max(<Py_ssize_t>guard.export.block.nbytes, <Py_ssize_t>guard.export.high)


cdef bint lies_within(object array, ExportGuard guard) noexcept:
    """Whether an array's first element lies within the memory of an operand."""
    cdef Py_ssize_t low = 0, high = 0
    cdef Py_ssize_t at = <char *>cnp.PyArray_DATA(array) - guard.export.block.ptr
    reach_of(guard, &low, &high)
    return low <= at and at < high


cdef object view_of_aligned(object array, ExportGuard guard):
    """Return a view of one of our arrays; NumPy's if its elements are not aligned."""
    if not cnp.PyArray_ISALIGNED(array):
        return array
    return view_of_block(array, guard)


cdef BaseArray adopt_result(object array, object base):
    """Return an array over data that our handler allocated for `base`.

    In a workspace, return a copy in the arena, if it fits.
    """
    cdef BaseArray x
    cdef Header *header = header_of(cnp.PyArray_DATA(base))
    if not cnp.PyArray_ISCONTIGUOUS(array) and not cnp.PyArray_ISFORTRAN(array) \
            and arena_of(top_context()) is not None:
        # A non-contiguous part of NumPy's result: copy it without the rest.
        x = from_numpy(array)
        if x is not None:
            return copy(x)
    x = adopt_numpy(array, base)
    if x.block.memory_owner == NULL:
        announce_array(x)
        require_intact_file(x)
    elif header.serial:
        range_adopted(header.serial, x)
        # From now on, the block logs the end of the range.
        header.serial = 0
    if x.block.memory_owner != NULL:
        untrace_numpy(cnp.PyArray_DATA(base))
        trace(header.memory.ptr, header.memory.nbytes)
    return x


cdef object root_of(object array):
    """Return the object at the end of a NumPy array's chain of bases."""
    cdef PyObject *base
    while True:
        if isinstance(array, cnp.ndarray):
            base = cnp.PyArray_BASE(<cnp.ndarray>array)
            if base == NULL:
                return array
            array = <object>base
        elif type(array) is DummyArray and array.base is not None:
            array = array.base
        else:
            return array


cdef BaseArray view_of_block(object array, ExportGuard guard):
    cdef BaseArray view = from_numpy(array)
    cdef BaseArray result
    cdef Strided layout
    cdef Py_ssize_t low = 0, high = 0, first = 0, end = 0
    cdef int axis
    if view is None:
        raise TypeError(f"{array.dtype} is not a dtype of the array API")
    result = bare_array(view.ndim)
    result.dtype = view.dtype
    for axis in range(view.ndim):
        result.shape[axis] = view.shape[axis]
        result.strides[axis] = view.strides[axis]
    result.readonly = view.readonly
    result.offset = <char *>cnp.PyArray_DATA(array) - guard.export.block.ptr
    layout.data = NULL
    layout.ndim = result.ndim
    layout.shape = result.shape
    layout.strides = result.strides
    byte_bounds(&layout, itemsize_of[result.dtype], &low, &high)
    low += result.offset
    high += result.offset
    reach_of(guard, &first, &end)
    if low != high and (low < first or high > end):
        raise ValueError(
            f"a view of shape {array.shape} and strides {array.strides} reaches beyond "
            f"the memory of its array, {end - first} bytes")
    block_incref(guard.export.block)
    result.block = guard.export.block
    set_layout(result)
    if guard.base is not None:
        set_base(result, guard.base)
    require_live(result)
    return result


cdef object backend_of_block(const Block *block):
    """Return the backend of a block's memory; None if it is a file's, or was freed.

    Memory that NumPy has allocated from a backend is in its header.
    """
    cdef Header *header
    found = block_part(block, &block.backend)
    if found is not None:
        return found
    memory_owner = block_part(block, &block.memory_owner)
    if isinstance(memory_owner, MappedFile):
        return None
    if memory_owner is not None:
        header = header_of(cnp.PyArray_DATA(root_of(memory_owner)))
        return <Backend>header.backend
    parent = block_part(block, &block.parent)
    return None if parent is None else (<BlockParent>parent).owning_backend()
