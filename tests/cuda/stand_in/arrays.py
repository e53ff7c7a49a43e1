"""CuPy's arrays and functions, computed by NumPy in the memory of `standin`."""

import ctypes
import functools
import types
import warnings

import numpy as np

from . import differences, fusion
from .host_memory import FALSE
from .names import AS_NUMPY, FFT, FUNCTIONS, LINALG
from .plans import config, planned
from .refusals import refuse, refuse_copy
from .standin import (
    Device,
    MemoryPointer,
    UnownedMemory,
    _allocate,
    cuda,
    get_current_stream,
    machine,
    real,
    thrust_memory,
)


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
        return seen(self).copy()

    def fill(self, value):
        self[...] = value

    def __len__(self):
        return self.shape[0]

    def __bool__(self):
        return bool(seen(self))

    def __int__(self):
        return int(seen(self))

    def __float__(self):
        return float(seen(self))

    def __index__(self):
        return seen(self).__index__()

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key):
        return _call(np.ndarray.__getitem__, self, key)

    def __setitem__(self, key, value):
        _check([key, value], whole=True)
        if isinstance(value, ndarray) and value.dtype == self.dtype:
            found = self[key] if key is not ... else self
            assert not _overlap(found, value), "copied while it is read"
        elif not isinstance(value, ndarray) and value == 0:
            value = 0  # memset, also of -0.0
        target, key, value = host(self), unwrapped(key), unwrapped(value)
        while isinstance(value, np.ndarray) and value.shape[:1] == (1,):
            value = value.reshape(value.shape[1:])

        def work():
            # Kernels don't warn.
            with np.errstate(all="ignore"):
                target[key] = value

        machine.perform(work, get_current_stream().ptr)

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


def seen(x):
    """Return NumPy's array of what the CPU reads, for which it waits."""
    refuse_copy("D2H")
    machine.finish(get_current_stream().ptr)
    return host(x)


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


def unwrapped(x):
    if isinstance(x, ndarray):
        return host(x)
    if isinstance(x, (tuple, list)):
        return type(x)([unwrapped(item) for item in x])
    return x


def _overlap(x, y):
    """Whether two arrays share memory, but are not the same."""
    same = (x.data.ptr, x.shape, x.strides) == (y.data.ptr, y.shape, y.strides)
    return not same and np.may_share_memory(host(x), host(y))


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
    capturing = get_current_stream().ptr in machine.captures

    def moved(leaf):
        if isinstance(leaf, np.generic):
            leaf = np.asarray(leaf)
        if not isinstance(leaf, np.ndarray):
            return leaf
        source = viewed(leaf, sources)
        if source is not None:
            offset = leaf.ctypes.data - source.data.mem.ptr % FALSE
            pointer = MemoryPointer(source.data.mem, offset)
            return ndarray(leaf.shape, leaf.dtype, pointer, leaf.strides)
        made = ndarray(leaf.shape, leaf.dtype)
        if leaf.flags.f_contiguous and not leaf.flags.c_contiguous:
            made.strides = leaf.strides
        if leaf.size and not capturing:
            # What was queued since, for memory that is free no more, comes first.
            machine.flush(get_current_stream().ptr)
            host(made)[...] = leaf
        return made

    return mapped(result, moved)


def viewed(result, sources):
    """Return the array of the device that NumPy's lies in, or None."""
    for source in sources:
        start = source.data.mem.ptr % FALSE
        if result.size and 0 <= result.ctypes.data - start < source.data.mem.size:
            return source
    return None


def mapped(value, function):
    """Return a value with a function of each leaf of its tuples and lists."""
    if isinstance(value, tuple):
        items = [mapped(item, function) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [mapped(item, function) for item in value]
    return function(value)


def leaves(value):
    """Return the leaves of a value in a list."""
    found = []
    mapped(value, found.append)
    return found


def bare(value):
    """Return a value whose arrays keep no memory alive: addresses, as a graph has."""

    def without_owner(x):
        if not isinstance(x, ndarray):
            return x
        memory = UnownedMemory(x.data.mem.ptr, x.data.mem.size, None)
        pointer = MemoryPointer(memory, x.data.ptr - memory.ptr)
        return ndarray(x.shape, x.dtype, pointer, x.strides)

    return mapped(value, without_owner)


def _arrays_in(values):
    return [x for x in leaves(tuple(values)) if isinstance(x, ndarray)]


def _quietly(function, args, kwargs):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(
            *[unwrapped(x) for x in args],
            **{key: unwrapped(x) for key, x in kwargs.items()},
        )


def _call(function, *args, **kwargs):
    made = _computed(function, args, kwargs)
    if getattr(function, "__name__", "") in SORTING:
        # After the results, for as long as they are sorted.
        temporaries = [thrust_memory(x.nbytes) for x in _arrays_in(args)]
        del temporaries
    return made


def _computed(function, args, kwargs):
    values = [*args, *kwargs.values()]
    _check(values)
    stream = get_current_stream().ptr
    if stream in machine.captures:
        return _capture(function, args, kwargs, stream)
    machine.submit(stream)
    result = _quietly(function, args, kwargs)
    if kwargs.get("out") is not None:
        return kwargs["out"]
    return on_device(result, _arrays_in(values))


def _capture(function, args, kwargs, stream):
    """Return where the results will be; a launched graph computes them."""
    refuse(getattr(function, "__name__", ""), args, kwargs)
    sources = _arrays_in([*args, *kwargs.values()])
    before = [host(x).copy() for x in sources]
    # Of which only shapes and dtypes are taken.
    result = _quietly(function, args, kwargs)
    found = kwargs.get("out")
    if found is None:
        found = on_device(result, sources)
    for x, values in zip(sources, before, strict=True):
        host(x)[...] = values
    targets, sources = bare(leaves(found)), bare(sources)
    args, kwargs = bare(args), {key: bare(x) for key, x in kwargs.items()}

    def work():
        values = leaves(_quietly(function, args, kwargs))
        for target, value in zip(targets, values, strict=True):
            if (
                isinstance(target, ndarray)
                and viewed(np.asarray(value), sources) is None
            ):
                host(target)[...] = value

    machine.perform(work, stream)
    return found


BOOL = np.dtype(bool)
SORTING = {"sort", "argsort"}
UFUNCS = {"add", "multiply", "maximum"}


# ---------------------------------------------------------------- the functions


def _function(name, function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        if name == "where" and fusion.is_fusing():
            return fusion.traced(function, args, kwargs)
        return _call(function, *args, **kwargs)

    return call


class ufunc:
    """A ufunc of CuPy; `reduce` is there where CuPy's has it."""

    def __init__(self, name, function):
        functools.update_wrapper(self, function)
        self.function = function
        if name in UFUNCS:
            self.reduce = functools.partial(_call, getattr(np, name).reduce)

    def __call__(self, *args, **kwargs):
        if fusion.is_fusing():
            return fusion.traced(self.function, args, kwargs)
        return _call(self.function, *args, **kwargs)


def _transform(name, function):
    use, transform = planned(name, function)

    @functools.wraps(function)
    def call(x, *args, **kwargs):
        return _call(transform, x, *args, plan=use(x, args, kwargs), **kwargs)

    return call


def fuse(kernel_name):
    """Return a decorator: a function of arrays becomes one kernel."""

    def decorated(function):
        def fused(*args):
            _check(args)
            assert any(isinstance(x, ndarray) for x in args)
            assert all(isinstance(x, (ndarray, np.generic)) for x in args)
            stream = get_current_stream().ptr
            machine.calls.append(("kernel", kernel_name, len(args)))
            given = bare(args) if stream in machine.captures else args

            def work():
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fusion.run(function, [unwrapped(x) for x in given])

            machine.perform(work, stream)

        return fused

    return decorated


def asarray(x, dtype=None, **kwargs):
    if isinstance(x, ndarray):
        return x if dtype is None else x.astype(dtype)
    refuse_copy("H2D")
    return on_device(np.asarray(x, dtype), [])


def array(x, dtype=None, copy=True, **kwargs):
    return asarray(x, dtype).copy() if copy else asarray(x, dtype)


def module():
    """Return a module that stands in for ``cupy``."""
    made = types.ModuleType("cupy")
    made.__path__ = []
    for name in FUNCTIONS.split():
        found = differences.FUNCTIONS.get(name) or getattr(np, name)
        kind = ufunc if isinstance(getattr(np, name), np.ufunc) else _function
        setattr(made, name, kind(name, found))
    for name, names, others in (
        ("linalg", LINALG, differences.LINALG),
        ("fft", FFT, differences.FFT),
    ):
        part = types.ModuleType(f"cupy.{name}")
        part.__all__ = names.split()
        part.LinAlgError = np.linalg.LinAlgError
        for each in names.split():
            function = others.get(each) or getattr(getattr(np, name), each)
            if name == "fft" and not each.endswith(("freq", "shift")):
                setattr(part, each, _transform(each, function))
            else:
                setattr(part, each, _function(each, function))
        setattr(made, name, part)
    for name in AS_NUMPY.split():
        setattr(made, name, getattr(np, name))
    made.fft.config = config
    made.ndarray, made.asarray, made.array, made.cuda = ndarray, asarray, array, cuda
    made.ufunc, made.fuse = ufunc, fuse
    return made
