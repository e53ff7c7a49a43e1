"""What ndx uses of CuPy, computed by NumPy: so that all but the GPU itself is tested.

Device memory is host memory under false addresses: whoever reads it without asking, as
a kernel would, gets a segmentation fault. What CuPy refuses (NumPy's arrays as
operands, casts that it does not make) is refused here. Streams are queues of work that
is done when the test says so, or is waited for; copies of page-locked memory are made
as late as that (`host_memory`).
"""

import contextlib
import ctypes
import functools
import threading
import time
import types
import warnings

import numpy as np

from .async_pool import AsyncRuntime
from .host_memory import FALSE, CUDARuntimeError, HostRuntime, Queues
from .names import AS_NUMPY, FFT, FUNCTIONS, LINALG

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

    @property
    def device(self):
        return getattr(self.local, "device", 0)

    def handle(self):
        self.last_handle += 1
        return self.last_handle


machine = Machine()


def real(address, nbytes=0):
    """Return where the bytes of an address that a kernel can use really are."""
    if range_of(address, nbytes) is not None:
        return address - FALSE
    if machine.host_range(address, nbytes):
        return address
    raise CUDARuntimeError(700)  # cudaErrorIllegalAddress


def range_of(address, nbytes=0):
    """Return the device memory that bytes lie in; None: they lie in none."""
    for start, (_, buffer) in machine.ranges.items():
        if start <= address and address + nbytes <= start + len(buffer):
            return buffer
    return None


# ---------------------------------------------------------------- cupy.cuda.runtime


class Runtime(HostRuntime, AsyncRuntime, types.ModuleType):
    CUDARuntimeError = CUDARuntimeError
    _machine = machine
    _real = staticmethod(real)
    _range_of = staticmethod(range_of)

    def getDeviceCount(self):
        return machine.count

    def getDeviceProperties(self, index):
        return {"name": b"NumPy, in a GPU's place"}

    def getDevice(self):
        return machine.device

    def memGetInfo(self):
        return machine.total - machine.held[machine.device], machine.total

    def malloc(self, nbytes):
        if nbytes > machine.total - machine.held[machine.device]:
            raise CUDARuntimeError(2)
        machine.held[machine.device] += nbytes
        buffer = (ctypes.c_char * (nbytes + 512))()
        ctypes.memset(buffer, 0xA5, nbytes + 512)
        start = -(-ctypes.addressof(buffer) // 512) * 512
        view = (ctypes.c_char * nbytes).from_address(start)
        view.owner = buffer
        machine.ranges[start + FALSE] = machine.device, view
        machine.calls.append(("malloc", nbytes))
        return start + FALSE

    def free(self, address):
        machine.finish_all()
        device, buffer = machine.ranges.pop(address)
        machine.held[device] -= len(buffer)
        machine.calls.append(("free", len(buffer)))

    def memsetAsync(self, address, value, nbytes, stream):
        machine.submit(stream)
        ctypes.memset(real(address, nbytes), value, nbytes)

    def memcpyPeer(self, target, _to, source, _from, nbytes):
        machine.finish_all()
        ctypes.memmove(real(target, nbytes), real(source, nbytes), nbytes)


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


class Stream:
    def __init__(self, ptr=None):
        self.ptr = machine.handle() if ptr is None else ptr

    def __enter__(self):
        self.before = getattr(machine.local, "stream", None)
        machine.local.stream = self

    def __exit__(self, *exc_info):
        machine.local.stream = self.before

    def synchronize(self):
        runtime.streamSynchronize(self.ptr)


null_stream = Stream(0)


def get_current_stream(index=None):
    return getattr(machine.local, "stream", None) or null_stream


class UnownedMemory:
    def __init__(self, ptr, size, owner, device_id=-1):
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset


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
    Device, Event, MemoryPointer, MemoryPool, Stream, UnownedMemory, get_current_stream,
    get_elapsed_time, using_allocator,
):  # fmt: skip
    setattr(cuda, item.__name__, item)
cuda.ExternalStream = Stream
cuda.runtime = runtime
cuda.Stream.null = null_stream


# ---------------------------------------------------------------- cupy.ndarray


class ndarray:
    """An array in device memory; what NumPy's does, done there."""

    __array_priority__ = 100

    def __init__(self, shape, dtype=float, memptr=None, strides=None):
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.dtype = np.dtype(dtype)
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape))
        self.nbytes = self.size * self.dtype.itemsize
        self.data = _allocate(self.nbytes) if memptr is None else memptr
        self.strides = tuple(strides or c_strides(self.shape, self.dtype.itemsize))

    @property
    def device(self):
        return Device(self.data.mem.device_id)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __getattr__(self, name):
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        attribute = getattr(host(self), name)
        if not callable(attribute):
            return on_device(attribute, [self])
        return functools.partial(_call, getattr(np.ndarray, name), self)

    def get(self):
        return fetched(self).copy()

    def fill(self, value):
        _check([value])
        machine.submit(get_current_stream().ptr)
        host(self).fill(value)

    def __len__(self):
        return self.shape[0]

    def __bool__(self):
        return bool(fetched(self))

    def __int__(self):
        return int(fetched(self))

    def __float__(self):
        return float(fetched(self))

    def __index__(self):
        return fetched(self).__index__()

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key):
        return _call(np.ndarray.__getitem__, self, key)

    def __setitem__(self, key, value):
        _check([key, value], whole=True)
        machine.submit(get_current_stream().ptr)
        host(self)[unwrapped(key)] = unwrapped(value)

    __hash__ = None


def c_strides(shape, itemsize):
    steps, step = [], itemsize
    for length in reversed(shape):
        steps.append(step)
        step *= max(length, 1)
    return tuple(reversed(steps))


def _operator(name):
    def operate(self, *others):
        return _call(getattr(np.ndarray, name), self, *others)

    return operate


OPERATORS = """
    add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub rmul
    rtruediv rpow eq ne lt le gt ge neg pos abs invert iadd isub imul itruediv
"""
for _name in OPERATORS.split():
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))


def host(x):
    """Return NumPy's array over device memory: what a kernel sees."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(x.shape, x.strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(x.shape, x.strides, strict=True))
    if x.size == 0:
        return np.empty(x.shape, x.dtype)
    nbytes = high - low + x.dtype.itemsize
    start = real(x.data.ptr + low, nbytes)
    buffer = (ctypes.c_char * nbytes).from_address(start)
    return np.ndarray(x.shape, x.dtype, buffer, -low, x.strides)


def fetched(x):
    """Return the same for the CPU, once the stream is done."""
    machine.finish(get_current_stream().ptr)
    return host(x)


def unwrapped(x):
    if isinstance(x, ndarray):
        return host(x)
    if isinstance(x, (tuple, list)):
        return type(x)([unwrapped(item) for item in x])
    return x


def _check(values, whole=False):
    """Refuse what CuPy does: NumPy's arrays, and what is on another GPU."""
    for value in values:
        if isinstance(value, np.ndarray):
            raise TypeError(f"Unsupported type {type(value)}")
        if isinstance(value, (tuple, list)):
            _check(value)
        if isinstance(value, ndarray) and value.data.mem.device_id != machine.device:
            raise ValueError("Array device must be same as the current device")


def on_device(result, sources):
    """Return what NumPy computed as arrays of the device: views remain views."""
    if isinstance(result, tuple):
        items = [on_device(item, sources) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    if isinstance(result, list):
        return [on_device(item, sources) for item in result]
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not isinstance(result, np.ndarray):
        return result
    address = result.ctypes.data
    for source in sources:
        start = source.data.mem.ptr % FALSE
        if result.size and start <= address < start + source.data.mem.size:
            pointer = MemoryPointer(source.data.mem, address - start)
            return ndarray(result.shape, result.dtype, pointer, result.strides)
    order = "F" if result.flags.f_contiguous and not result.flags.c_contiguous else "C"
    made = ndarray(result.shape, result.dtype)
    if order == "F":
        made.strides = result.strides
    if result.size:
        host(made)[...] = result
    return made


def _arrays_in(values):
    for value in values:
        if isinstance(value, ndarray):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _arrays_in(value)


def _call(function, *args, **kwargs):
    values = [*args, *kwargs.values()]
    _check(values)
    machine.submit(get_current_stream().ptr)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(
            *[unwrapped(x) for x in args],
            **{key: unwrapped(x) for key, x in kwargs.items()},
        )
    if "out" in kwargs:
        return kwargs["out"]
    return on_device(result, list(_arrays_in(values)))


# ---------------------------------------------------------------- the functions


def _function(name, function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return _call(function, *args, **kwargs)

    return call


def asarray(x, dtype=None, **kwargs):
    if isinstance(x, ndarray):
        return x if dtype is None else x.astype(dtype)
    return on_device(np.asarray(x, dtype), [])


def array(x, dtype=None, copy=True, **kwargs):
    return asarray(x, dtype).copy() if copy else asarray(x, dtype)


def module():
    """Return a module that stands in for ``cupy``."""
    made = types.ModuleType("cupy")
    made.__path__ = []
    for name in FUNCTIONS.split():
        setattr(made, name, _function(name, getattr(np, name)))
    for name, names in (("linalg", LINALG), ("fft", FFT)):
        part = types.ModuleType(f"cupy.{name}")
        part.__all__ = names.split()
        part.LinAlgError = np.linalg.LinAlgError
        for each in names.split():
            setattr(part, each, _function(each, getattr(getattr(np, name), each)))
        setattr(made, name, part)
    for name in AS_NUMPY.split():
        setattr(made, name, getattr(np, name))
    made.ndarray, made.asarray, made.array, made.cuda = ndarray, asarray, array, cuda
    return made
