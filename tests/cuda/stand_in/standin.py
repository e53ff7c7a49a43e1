"""What ndx uses of CuPy, without a GPU: devices, their memory, streams and graphs.

`arrays` has the arrays and functions, computed by NumPy.

Device memory is host memory under false addresses: whoever reads it without asking, as
a kernel would, gets a segmentation fault. What CuPy refuses (NumPy's arrays as
operands, casts that it does not make) is refused here. Streams are queues of work that
is done when the test says so, or is waited for; copies of page-locked memory are made
as late as that (`host_memory`).
"""

import contextlib
import ctypes
import sys
import threading
import time
import types
import warnings

from .async_pool import AsyncRuntime
from .host_memory import FALSE, CUDARuntimeError, HostRuntime, Queues
from .other_memory import OtherRuntime, in_file

DEVICE_MEMORY = 1 << 28


class Machine(Queues):
    """The GPUs: their memory, and what they were asked to do."""

    def __init__(self, count=2, total=DEVICE_MEMORY):
        super().__init__()
        self.count = count
        self.total = total
        self.held = [0] * count
        self.ranges = {}  # false address -> (device, buffer)
        self.calls = []  # (name, ...)
        self.local = threading.local()
        self.last_handle = 1000
        self.default_mallocs = 0
        self.pageable = False  # whether kernels reach all memory of the process
        self.has_pools = True  # whether the driver has pools of its own
        self.has_managed = True  # whether it has managed memory
        self.moves_pages = True  # of managed memory, one by one
        # (GPU, another): who can have access to whose memory, and who has.
        self.can_reach = {(i, j) for i in range(count) for j in range(count) if i != j}
        self.reaches = set()
        self.opened = {}  # false address -> handle of another process's memory
        self.shared_events = {}
        self.maps_memory = True  # at addresses that were reserved (`driver`)
        self.address_space = 1 << 40
        self.pages = {}  # false address of a reserved range -> its mapped pages
        self.managed = {}  # false address -> where its pages are, and should be

    @property
    def device(self):
        return getattr(self.local, "device", 0)

    def managed_range(self, address, nbytes=0):
        """Return what is known of the managed range of bytes; None: there is none."""
        for start, found in self.managed.items():
            if start <= address and address + nbytes <= start + len(found["view"]):
                return found
        return None

    def reservation(self, address, nbytes=0):
        """Return the start of the reserved range of addresses; None: it is none."""
        for start in self.pages:
            if start <= address < start + len(self.ranges[start][1]) - nbytes + 1:
                return start
        return None

    def pages_of(self, start, address, nbytes):
        """Return the mapped pages under addresses; None if one has no memory."""
        found = []
        end = address + max(nbytes, 1)
        while address < end:
            for at, page in self.pages[start].items():
                if at <= address < at + page["size"]:
                    found.append(page)
                    address = at + page["size"]
                    break
            else:
                return None
        return found

    def handle(self):
        self.last_handle += 1
        return self.last_handle


machine = Machine()


def real(address, nbytes=0):
    """Return where the bytes of an address that a kernel can use really are."""
    if range_of(address, nbytes) is not None:
        owner = runtime._device_of(address)
        if owner != machine.device and not machine.managed_range(address) and (
            machine.device, owner) not in machine.reaches:  # fmt: skip
            raise CUDARuntimeError(700)
        return address - FALSE
    if machine.host_range(address, nbytes) or (machine.pageable and address < FALSE):
        return address
    raise CUDARuntimeError(700)  # cudaErrorIllegalAddress


def range_of(address, nbytes=0):
    """Return the device memory that bytes lie in; None: they lie in none."""
    for start, (_, buffer) in machine.ranges.items():
        if start <= address and address + nbytes <= start + len(buffer):
            if start in machine.pages:
                pages = machine.pages_of(start, address, nbytes)
                if pages is None or any(each["access"] is None for each in pages):
                    return None
            return buffer
    return None


# ---------------------------------------------------------------- cupy.cuda.runtime


class Runtime(OtherRuntime, HostRuntime, AsyncRuntime, types.ModuleType):
    CUDARuntimeError = CUDARuntimeError
    _machine = machine
    _real = staticmethod(real)
    _range_of = staticmethod(range_of)

    def _device_of(self, address):
        for start, (device, buffer) in machine.ranges.items():
            if start <= address < start + len(buffer):
                if start in machine.pages:
                    return machine.pages_of(start, address, 1)[0]["device"]
                return device
        raise CUDARuntimeError(1)  # cudaErrorInvalidValue

    def getDeviceCount(self):
        return machine.count

    def deviceGetAttribute(self, attrib, device):
        known = {
            83: machine.has_managed,  # cudaDevAttrManagedMemory
            88: machine.pageable,  # cudaDevAttrPageableMemoryAccess
            89: machine.moves_pages,  # cudaDevAttrConcurrentManagedAccess
            115: machine.has_pools,  # cudaDevAttrMemoryPoolsSupported
        }
        return int(known[attrib])

    def getDeviceProperties(self, index):
        return {"name": b"NumPy, in a GPU's place", "major": 8, "minor": 0}

    def getDevice(self):
        return machine.device

    def memGetInfo(self):
        return machine.total - machine.held[machine.device], machine.total

    def malloc(self, nbytes):
        if nbytes > machine.total - machine.held[machine.device]:
            raise CUDARuntimeError(2)
        machine.held[machine.device] += nbytes
        start, view = in_file(nbytes)
        machine.ranges[start + FALSE] = machine.device, view
        machine.calls.append(("malloc", nbytes))
        return start + FALSE

    def free(self, address):
        machine.finish_all()
        device, buffer = machine.ranges.pop(address)
        if machine.managed.pop(address, None) is None:
            machine.held[device] -= len(buffer)
        machine.calls.append(("free", len(buffer)))

    def memsetAsync(self, address, value, nbytes, stream):
        start = real(address, nbytes)
        machine.check_stream(stream)
        machine.perform(lambda: ctypes.memset(start, value, nbytes), stream)


runtime = Runtime("cupy.cuda.runtime")


# ---------------------------------------------------------------- cupy.cuda


class Device:
    def __init__(self, index=None):
        self.id = machine.device if index is None else getattr(index, "id", index)
        self.before = []

    def __enter__(self):
        self.before.append(machine.device)
        machine.local.device = self.id
        return self

    def __exit__(self, *exc_info):
        machine.local.device = self.before.pop()

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    __hash__ = None


class Graph:
    def __init__(self, work):
        self.work = work

    def launch(self, stream=None):
        stream = (stream or get_current_stream()).ptr
        for each in self.work:
            machine.perform(each, stream)


class _BaseStream:
    def __init__(self, ptr, device_id):
        self.ptr, self.device_id = ptr, device_id

    def __eq__(self, other):
        return isinstance(other, _BaseStream) and self.ptr == other.ptr

    def __hash__(self):
        return self.ptr

    def __enter__(self):
        if self.device_id not in (-1, machine.device):
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id}) does not "
                f"match with the current device ({machine.device})"
            )
        device = machine.device
        _stacks()[device].append(self)
        machine.local.entered.append(device)
        return self

    def __exit__(self, *exc_info):
        _stacks()[machine.local.entered.pop()].pop()

    def __cuda_stream__(self):
        return 0, self.ptr

    def synchronize(self):
        runtime.streamSynchronize(self.ptr)

    def begin_capture(self, mode=None):
        if self.ptr in (0, 1):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        machine.captures[self.ptr] = []

    def end_capture(self):
        work = machine.captures.pop(self.ptr)
        if work is None:
            raise CUDARuntimeError(901)  # cudaErrorStreamCaptureInvalidated
        return Graph(work)


class Stream(_BaseStream):
    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self._foreign_stream_ref = None
        if null or ptds:
            super().__init__(0 if null else 2, -1)
        else:
            super().__init__(runtime.streamCreate(), machine.device)

    def __del__(self):
        if self._foreign_stream_ref is None and self.ptr > 2:
            runtime.streamDestroy(self.ptr)

    @classmethod
    def from_external(cls, obj):
        try:
            version, handle = obj.__cuda_stream__()
        except AttributeError as error:
            raise TypeError(
                f"Object of type {type(obj).__name__} does not implement the CUDA "
                "stream protocol (__cuda_stream__ method)"
            ) from error
        if not isinstance(version, int) or not isinstance(handle, int):
            raise TypeError("__cuda_stream__() must return (int, int)")
        stream = cls.__new__(cls)
        _BaseStream.__init__(stream, handle, -1)
        stream._foreign_stream_ref = obj
        return stream


class ExternalStream(_BaseStream):
    def __init__(self, ptr, device_id=-1):
        warnings.warn(
            "ExternalStream is deprecated. Use Stream.from_external() instead to "
            "interoperate with external streams that implement the CUDA stream "
            "protocol.",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(ptr, device_id)


Stream.null = Stream(null=True)


def _stacks():
    """Return this thread's streams: a stack for each GPU."""
    if not hasattr(machine.local, "stacks"):
        machine.local.stacks = [[Stream.null] for _ in range(machine.count)]
        machine.local.entered = []
    return machine.local.stacks


def get_current_stream(device_id=-1):
    return _stacks()[machine.device if device_id == -1 else device_id][-1]


class UnownedMemory:
    def __init__(self, ptr, size, owner, device_id=-1):
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)


class _DefaultMemory:
    """Of CuPy's own pool: none of ours."""

    def __init__(self, size):
        machine.default_mallocs += 1
        self.ptr, self.size, self.device_id = runtime.malloc(size), size, machine.device

    def __del__(self):
        runtime.free(self.ptr)


def _allocate(nbytes):
    allocator = getattr(machine.local, "allocator", None)
    if allocator is None:
        return MemoryPointer(_DefaultMemory(nbytes), 0)
    return allocator(nbytes)


def thrust_memory(nbytes):
    """Allocate as Thrust does, by C++: the allocator's own error is lost."""
    try:
        return _allocate(nbytes)
    except MemoryError:
        pass
    except Exception as error:
        sys.unraisablehook(types.SimpleNamespace(
            exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__,
            err_msg=None, object="cupy.cuda.thrust.cupy_malloc",
        ))  # fmt: skip
    raise MemoryError("std::bad_alloc")


@contextlib.contextmanager
def using_allocator(allocator=None):
    before = getattr(machine.local, "allocator", None)
    machine.local.allocator = allocator
    try:
        yield
    finally:
        machine.local.allocator = before


class MemoryPool:
    def malloc(self, nbytes):
        return MemoryPointer(_DefaultMemory(nbytes), 0)


class Event:
    def record(self):
        self.time = time.perf_counter()

    def synchronize(self):
        pass


def get_elapsed_time(start, stop):
    return 1000 * (stop.time - start.time)


cuda = types.ModuleType("cupy.cuda")
for item in (
    Device, Event, ExternalStream, MemoryPointer, MemoryPool, Stream, UnownedMemory,
    get_current_stream, get_elapsed_time, using_allocator,
):  # fmt: skip
    setattr(cuda, item.__name__, item)
cuda.runtime = runtime
cuda.nvrtc = types.SimpleNamespace(getVersion=lambda: (13, 0))
