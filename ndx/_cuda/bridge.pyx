"""Conversion between arrays of ndx and of CuPy, over the same memory, without copies.

CuPy's view of an array keeps the bytes in place, as every export does. CuPy allocates
its results in memory of ndx, so that the bridge only has to describe them.
"""

cimport cython

import sys

from cpython.object cimport PyObject

from ndx._arenas.arena cimport Arena, RetiredChunk
from ndx._arenas.mirror cimport MirrorArena
from ndx._array.interchange cimport from_dlpack_capsule
from ndx._array.storage cimport (
    BaseArray, ExportGuard, announce_array, bare_array, guard_export, is_array,
    new_array as make_array, new_detached, require_usable, require_writeable, set_base,
    set_layout,
)
from ndx._blocks.block cimport (
    OWN_RANGE, Block, BlockParent, block_decref, block_has_range, block_incref,
    block_memory, block_pin, block_serial, block_set_device, block_set_device_reads,
    block_unpin, block_wrap, export_new,
)
from ndx._compute.copies cimport can_store
from ndx._context.context cimport allocate_on, current_arena
from ndx._lib.dtypes cimport (
    KIND_INT, KIND_UINT, code_or_none, dtype_code, dtype_object, itemsize_of,
    kind_of,
)
from ndx._lib.layout cimport MAXDIMS, parse_shape, shape_tuple
from ndx._lib.sizing cimport LINE, ndx_round_down
from ndx._lib.unraisable cimport Refusals
from ndx.backends._pool.index cimport PoolBlock
from ndx.backends.base cimport Backend, Memory
from ndx.backends.cuda cimport CudaBackend
from ndx.backends.pinned cimport PinnedBackend

from ndx._cuda.capture_state import current
from ndx._lib.device import number_of
from ndx.backends._gpus import KIND
from ndx.backends.cuda import replaying_stream

__all__ = [
    "Bridge", "address_of", "block_of", "check_writeable", "device_index",
    "from_capsule", "hold", "index_of", "inplace_fits", "is_contiguous", "is_pinned",
    "lend", "mapped", "mirror_array", "new_array", "note_copy_from_mirror",
    "range_of", "send_pinned", "span_of", "stage_in_mirror", "use_on",
]

cdef int FIRST = KIND.first      # the number of the first GPU as a device


def device_index(x):
    """Return the number of the GPU that an array is on; None for other values."""
    if not is_array(x) or not (<BaseArray>x).block.device:
        return None
    return (<BaseArray>x).block.device - FIRST


class Lent:
    """Keeps another library's memory alive until all streams that used it are done.

    The owner of the memory knows only the stream for which it was exported.

    Parameters
    ----------
    owner : object
        Keeps the memory alive.
    stream : cupy.cuda.Stream
        The stream for which the memory was exported.
    wait_for : callable
        Called with a handle: makes `stream` wait for the work of that stream.
    """

    def __init__(self, owner, stream, wait_for):
        self.owner = owner
        self.stream = stream
        self.wait_for = wait_for
        self.used = {}  # handle -> CuPy's stream, kept alive; None: a foreign one

    def use_on(self, handle, stream=None):
        """Record that a stream uses the memory."""
        if handle != self.stream.ptr and self.used.get(handle) is None:
            self.used[handle] = stream

    def __del__(self, is_finalizing=sys.is_finalizing):
        # The module may be empty at exit.
        if not is_finalizing():
            for handle in vars(self).get("used", ()):  # none before `__init__`
                self.wait_for(handle)


def lend(BaseArray x not None, stream, wait_for):
    """Let an array release foreign memory only when all streams are done with it."""
    x.base = Lent(x.base, stream, wait_for)


def from_capsule(capsule):
    """Return an array over the memory of a DLPack capsule, which is consumed."""
    return from_dlpack_capsule(capsule)


def is_contiguous(BaseArray x not None):
    """Whether the elements lie in C order, without gaps."""
    return x.c_contiguous


def address_of(BaseArray x not None):
    """Return the address of the first element, on its device; the caller holds it."""
    require_usable(x)
    return <size_t>(x.block.ptr + x.offset)


def hold(BaseArray x not None):
    """Return an object that keeps an array in place while it lives."""
    return guard_export(x)


def span_of(BaseArray x not None):
    """Return the address and the bytes from an array's first byte to its last one."""
    cdef size_t low = address_of(x), high = low
    cdef Py_ssize_t reach
    cdef int axis
    if not x.size:
        return low, 0
    for axis in range(x.ndim):
        reach = (x.shape[axis] - 1) * x.strides[axis]
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high + itemsize_of[x.dtype] - low


def range_of(BaseArray x not None):
    """Return what keeps an array in place, and the start of its range of CUDA's.

    The start is 0 if the range is not one that other processes can open.
    """
    cdef ExportGuard guard = guard_export(x)
    cdef Block *block = x.block
    cdef PyObject *parent = block.parent
    cdef void *cookie = block.cookie
    backend = None
    if block.holding == OWN_RANGE:
        backend = <object>block.backend
    elif parent != NULL and isinstance(<object>parent, (Arena, RetiredChunk)):
        backend = (<BlockParent>parent).owning_backend()
        cookie = (<Arena>parent).chunk.cookie if isinstance(
            <object>parent, Arena) else (<RetiredChunk>parent).memory.cookie
    if not isinstance(backend, CudaBackend) \
            or not (<CudaBackend>backend).source.shareable:
        return guard, 0
    return guard, <size_t>(<PoolBlock *>cookie).segment.ptr


def index_of(device):
    """Return the number of the GPU with a name."""
    return number_of(device) - FIRST


cpdef object mapped(object value, object function):
    """Return a value with a function applied to the items of tuples, lists, dicts.

    In C: each call and replay comes this way, and `_lib.trees.map_tree` takes longer.
    """
    if isinstance(value, tuple):
        items = [function(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [function(item) for item in value]
    if isinstance(value, dict):
        return {key: function(item) for key, item in value.items()}
    return value


def block_of(BaseArray x not None):
    """Return an id of the block of an array, valid as long as the block lives."""
    return <size_t>x.block


def check_writeable(BaseArray x not None):
    """Raise ReadOnlyError if an array is read-only."""
    require_writeable(x)


def new_array(int index, shape, dtype, *, bint zero=False, bint detached=False):
    """Return a new array on a GPU, in its current workspace or, detached, in none."""
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int ndim = parse_shape(shape, lengths)
    cdef int code = dtype_code(dtype)
    if detached:
        return new_detached(index + FIRST, code, ndim, lengths, NULL, zero, None)
    return make_array(index + FIRST, code, ndim, lengths, NULL, zero)


def inplace_fits(result, into):
    """Whether a result of a dtype can be stored in place in an array of another."""
    cdef int found = dtype_code(result), wanted = dtype_code(into)
    return can_store(found, wanted) and not (
        kind_of[found] == KIND_INT and kind_of[wanted] == KIND_UINT)


def use_on(BaseArray x not None, size_t handle, stream=None):
    """Record that a stream will use an array: its memory is not reused before that.

    Parameters
    ----------
    x : NDArray
    handle : int
        The handle of the stream.
    stream : cupy.cuda.Stream, optional
        The stream itself, if it is the current one; it is kept alive.
    """
    cdef Block *block = x.block
    cdef Memory memory
    if is_lent(x):
        x.base.use_on(handle, stream)
    elif stream is not None:
        use_block_here(block)
    # Arrays without elements have a backend, but no memory.
    elif block_has_range(block):
        memory = block_memory(block)
        (<Backend>block.backend).use_on(&memory, handle)
    elif block.parent != NULL and isinstance(<object>block.parent, Arena):
        (<Arena>block.parent).use_on(handle)


cdef bint is_lent(BaseArray x) noexcept:
    return <PyObject *>x.base != NULL and type(x.base) is Lent


def is_pinned(x):
    """Whether a CPU's array has page-locked memory of its own, in C order."""
    cdef Block *block
    if not is_array(x) or not (<BaseArray>x).c_contiguous:
        return False
    block = (<BaseArray>x).block
    return block.holding == OWN_RANGE and block.clock == NULL and \
        isinstance(<object>block.backend, PinnedBackend)


def send_pinned(BaseArray x not None, copy, size_t stream):
    """Start the copy of an array in page-locked memory; return whether it is tracked.

    If it is, the CPU waits for the copy when it uses the array again.

    Parameters
    ----------
    x : NDArray
        An array for which `is_pinned` is true.
    copy : callable
        Called with the address of the first element; starts the copy.
    stream : int
        The current GPU's stream that copies.
    """
    cdef Block *block = x.block
    cdef Memory memory
    require_usable(x)
    block_pin(block)
    try:
        copy(<size_t>(block.ptr + x.offset))
    finally:
        # Done after Ctrl-C, too: the copy may have started.
        memory = block_memory(block)
        (<Backend>block.backend).use_on(&memory, stream)
        block_unpin(block)
    return block_set_device_reads(block)


cdef MirrorArena mirror_of(BaseArray x):
    """Return the mirror of the arena in which an array lies; None without one.

    Only the arena that serves the device's new arrays here counts.
    """
    cdef Arena arena
    cdef Block *block = x.block
    if not block.device or block.parent == NULL or block.clock == NULL \
            or not isinstance(<object>block.parent, Arena):
        return None
    arena = <Arena>block.parent
    if arena.mirror is None or not arena.holds(block) or not x.c_contiguous or \
            current_arena(block.device) is not arena:
        return None
    return arena.mirror


def mirror_array(BaseArray x not None):
    """Return an array of the CPU over the mirror of `x`, with nothing copied yet.

    None if `x` has no mirror, or its place there is in use.
    """
    cdef MirrorArena mirror = mirror_of(x)
    cdef BaseArray result
    cdef size_t low
    cdef int axis
    if mirror is None or not x.size:
        return None
    require_usable(x)
    low = offset_of(x)
    result = bare_array(x.ndim)
    result.block = mirror.serve(low, low + nbytes_of(x))
    if result.block == NULL:
        return None
    result.offset = low - ndx_round_down(low, LINE)
    result.dtype = x.dtype
    for axis in range(x.ndim):
        result.shape[axis] = x.shape[axis]
        result.strides[axis] = x.strides[axis]
    set_layout(result)
    announce_array(result)
    return result


def stage_in_mirror(BaseArray x not None):
    """Return the address in the mirror for a copy to `x`; 0: there is none to use."""
    cdef MirrorArena mirror = mirror_of(x)
    cdef size_t low
    if mirror is None:
        return 0
    low = offset_of(x)
    return <size_t>mirror.stage(low, low + nbytes_of(x))


def note_copy_from_mirror(BaseArray x not None, size_t stream):
    """Note that a stream was given the copy from that place in the mirror."""
    cdef MirrorArena mirror = mirror_of(x)
    cdef size_t low = offset_of(x)
    mirror.note_copy(low, low + nbytes_of(x), stream)


cdef size_t offset_of(BaseArray x) noexcept:
    """Return the offset of an array's first element in the chunk of its arena."""
    return x.block.ptr + x.offset - (<Arena>x.block.parent).chunk.ptr


cdef size_t nbytes_of(BaseArray x) noexcept:
    return x.size * itemsize_of[x.dtype]


@cython.binding(False)
@cython.embedsignature(True)
cdef class Bridge:
    """Takes arrays to CuPy and back, on one GPU.

    Parameters
    ----------
    cupy : module
        CuPy, or what stands in for it.
    index : int
        The number of the GPU.
    """

    cdef object array                # cupy.ndarray
    cdef object memory               # of CuPy, with a place for our guard
    cdef object pointer              # cupy.cuda.MemoryPointer
    cdef object stream_of            # cupy.cuda.get_current_stream
    cdef object device               # cupy.cuda.Device
    cdef object using_allocator      # cupy.cuda.using_allocator
    cdef readonly int index
    cdef Refusals refusals           # of `allocate`

    def __cinit__(self, cupy, int index):
        self.array = cupy.ndarray
        self.memory = type(
            "Memory", (cupy.cuda.UnownedMemory,), {"__slots__": ("guard",)})
        self.pointer = cupy.cuda.MemoryPointer
        self.stream_of = cupy.cuda.get_current_stream
        self.device = cupy.cuda.Device(index)
        self.using_allocator = cupy.cuda.using_allocator
        self.index = index
        self.refusals = Refusals()

    def at_work(self):
        """Return a context manager: CuPy computes on this GPU, in ndx's memory."""
        return AtWork(self)

    def compute(self, function, args, kwargs):
        """Call a function of CuPy with arrays of ndx; return its result as one."""
        with AtWork(self):
            found = self.wrap(function(*self.unwrap(args), **self.unwrap(kwargs)))
            return tuple(found) if isinstance(found, list) else found

    def unwrap(self, x):
        """Return an argument with CuPy's arrays in place of ndx's."""
        if is_array(x) and (<BaseArray>x).block.device:
            array = self.to_cupy(x)
            notes = current()
            if notes is not None:
                notes.take(x, array)
            return array
        return mapped(x, self.unwrap)

    def wrap(self, result):
        """Return a result of CuPy with ndx's arrays in place of CuPy's."""
        if isinstance(result, self.array):
            return self.from_cupy(result)
        return mapped(result, self.wrap)

    def to_cupy(self, BaseArray x not None):
        """Return CuPy's array over the memory of `x`, which it keeps in place."""
        cdef ExportGuard guard
        guard = guard_export(x)
        # Now it does not move: its evictor sees the export, or this use.
        require_usable(x)
        self.use_here(x)
        pointer = self.point(guard, <size_t>x.block.ptr, x.block.nbytes, x.offset)
        shape = shape_tuple(x.ndim, x.shape)
        if x.c_contiguous:
            return self.array(shape, dtype_object(x.dtype), pointer)
        return self.array(shape, dtype_object(x.dtype), pointer,
                          shape_tuple(x.ndim, x.strides))

    def use_here(self, BaseArray x not None):
        """Record that CuPy's current stream will use an array, after all others."""
        use_block_here(x.block)
        if is_lent(x):
            stream = replaying_stream(self.stream_of(self.index))
            x.base.use_on(stream.ptr, stream)

    def from_cupy(self, array):
        """Return an array over the memory of CuPy's, which may be foreign."""
        cdef BaseArray x
        cdef int dtype = code_or_none(array.dtype), axis
        cdef bint born
        if dtype < 0:
            raise TypeError(f"{array.dtype} is not a dtype of the array API")
        x = bare_array(array.ndim)
        x.dtype = <unsigned char>dtype
        for axis, length in enumerate(array.shape):
            x.shape[axis] = length
        for axis, step in enumerate(array.strides):
            x.strides[axis] = step
        set_layout(x)
        pointer = array.data
        memory = pointer.mem
        owner = getattr(memory, "guard", None)
        if type(owner) is ExportGuard:
            born = share(x, (<ExportGuard>owner).export.block, pointer.ptr)
            if (<ExportGuard>owner).base is not None:
                set_base(x, (<ExportGuard>owner).base)
            if born:
                announce_array(x)
        else:
            x.block = block_wrap(<char *><size_t>memory.ptr, memory.size, False, None)
            block_set_device(x.block, self.index + FIRST)
            x.offset = <size_t>pointer.ptr - <size_t>memory.ptr
            set_base(x, array)
        return x

    def allocate(self, size_t nbytes):
        """Be CuPy's allocator during a call: return memory of ndx.

        An exception is also kept in `refusals`: if Thrust calls the allocator from
        C++, CuPy raises a bare MemoryError in its place, and loses other exceptions.
        """
        cdef ExportGuard guard = ExportGuard.__new__(ExportGuard)
        cdef Block *block
        try:
            block = allocate_on(self.index + FIRST, nbytes, False, False, None, 0)
        except Exception as error:
            self.refusals.keep(error)
            if isinstance(error, MemoryError):
                raise
            raise MemoryError(str(error)) from error
        try:
            guard.export = export_new(block, 0, nbytes)
        finally:
            # The export has a reference of its own.
            block_decref(block)
        return self.point(guard, <size_t>block.ptr, nbytes, 0)

    cdef object point(self, ExportGuard guard, size_t address, size_t nbytes,
                      Py_ssize_t offset):
        """Return CuPy's pointer to memory that an object holds."""
        memory = self.memory(address, nbytes, None, self.index)
        memory.guard = guard
        return self.pointer(memory, offset)


@cython.binding(False)
@cython.embedsignature(True)
cdef class AtWork:
    """Context manager: CuPy computes on one GPU, and allocates in ndx's memory.

    CuPy's allocator belongs to the thread. No other task of the thread runs meanwhile,
    because computations never await.
    """

    cdef Bridge bridge
    cdef object allocating

    def __cinit__(self, Bridge bridge not None):
        self.bridge = bridge

    def __enter__(self):
        self.bridge.device.__enter__()
        try:
            self.allocating = self.bridge.using_allocator(self.bridge.allocate)
            self.allocating.__enter__()
        except BaseException:
            self.bridge.device.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, error, trace):
        try:
            self.allocating.__exit__(None, None, None)
        finally:
            self.bridge.device.__exit__(None, None, None)
        reason = self.bridge.refusals.take()
        # Thrust replaces the allocator's exception by a bare MemoryError.
        if reason is not None and reason is not error and \
                isinstance(error, MemoryError):
            raise reason from None
        return False


cdef bint share(BaseArray x, Block *block, size_t address) noexcept:
    """Make an array share a block; return whether it is the first one."""
    block_incref(block)
    x.block = block
    x.offset = address - <size_t>block.ptr if x.size else 0
    return block_serial(block) == 0 and block.refs == 2


cdef int use_block_here(Block *block) except -1:
    """Record the stream on which a block is about to be used."""
    cdef Backend backend
    cdef Memory memory
    if block_has_range(block):
        backend = <Backend>block.backend
        memory = block_memory(block)
        backend.use_on(&memory, backend.current_stream())
    elif block.parent != NULL and isinstance(<object>block.parent, Arena):
        backend = (<Arena>block.parent).backend
        (<Arena>block.parent).use_on(backend.current_stream())
    return 0
