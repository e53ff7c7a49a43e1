"""CuPy at work for us: on one GPU, with memory of ours, while a call runs."""

import contextlib
from threading import get_ident

import numpy as np

from ndx._core import NDArray
from ndx._cuda import capture
from ndx._cuda.bridge import Bridge, device_index
from ndx._cuda.staging import Staging
from ndx._lib.device import CPU, device_of
from ndx.backends import _cupy

__all__ = ["Session", "common_device", "session_of"]

_sessions = {}


class Session:
    """One GPU: how arrays get to CuPy, and CuPy to memory.

    Parameters
    ----------
    index : int
        The number of the GPU.
    """

    def __init__(self, index):
        cupy = _cupy.check_device(index)
        self.index = index
        self.cuda = cupy.cuda
        self.runtime = cupy.cuda.runtime
        self.ndarray = cupy.ndarray
        self.device = cupy.cuda.Device(index)
        self.bridge = Bridge(cupy, index)
        self.staging = Staging(self.runtime)

    @contextlib.contextmanager
    def at_work(self):
        """Let CuPy compute on this GPU, and take its memory from us.

        CuPy's allocator is the thread's. No other task runs on it meanwhile: nothing
        that computes awaits.
        """
        refusals = self.bridge.refusals
        with self.device, self.cuda.using_allocator(self.bridge.allocate):
            try:
                yield
            except MemoryError as error:
                # Of what the allocator raised, Thrust leaves no more.
                reason = refusals.get(get_ident(), error)
                if reason is error:
                    raise
                try:
                    raise reason from None
                finally:
                    # Else it and this frame would keep each other.
                    del reason
            finally:
                if refusals:
                    refusals.pop(get_ident(), None)

    def stream(self):
        """Return the handle of CuPy's current stream."""
        return self.cuda.get_current_stream(self.index).ptr

    def unwrap(self, x):
        """Return what CuPy is given for an argument of ours."""
        index = device_index(x)
        if index is not None:
            array = self.bridge.to_cupy(x)
            notes = capture.current()
            if notes is not None:
                notes.take(x, array)
            return array
        if type(x) is tuple:
            return tuple([self.unwrap(item) for item in x])
        if type(x) is list:
            return [self.unwrap(item) for item in x]
        return x

    def wrap(self, result):
        """Return what CuPy computed as arrays of ours."""
        if isinstance(result, self.ndarray):
            return self.bridge.from_cupy(result)
        if isinstance(result, tuple):
            items = [self.wrap(item) for item in result]
            return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
        if isinstance(result, list):
            return tuple([self.wrap(item) for item in result])
        return result

    def compute(self, function, *args, **kwargs):
        """Return what a function of CuPy's computes of our arrays."""
        with self.at_work():
            result = function(
                *[self.unwrap(x) for x in args],
                **{key: self.unwrap(x) for key, x in kwargs.items()},
            )
            return self.wrap(result)


def session_of(index):
    """Return the session of a GPU."""
    key = index, id(_cupy.load())
    if key not in _sessions:
        _sessions[key] = Session(index)
    return _sessions[key]


def common_device(name, *values):
    """Return the session of the one GPU on which all arrays among the arguments are.

    Raises
    ------
    ValueError
        If some are elsewhere: on the CPU, or on another GPU.
    """
    found = set()
    for value in values:
        _collect(value, found)
    if len(found) == 1:
        (index,) = found
        if index is not None:
            return session_of(index)
    where = sorted(str(CPU if i is None else device_of(i + 1)) for i in found)
    msg = (
        f"{name}: the arrays are on different devices ({', '.join(where)}), and none "
        f"is moved by itself: bring them together by x.to_device({where[-1]!r})"
    )
    raise ValueError(msg)


def _collect(value, found):
    """Add where the arrays in an argument are: the number of a GPU, or None."""
    if isinstance(value, NDArray):
        found.add(device_index(value))
    elif isinstance(value, np.ndarray):
        found.add(None)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found)
