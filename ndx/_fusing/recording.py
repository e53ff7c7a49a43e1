"""Recording: a function is called with tracers, and its steps become a program."""

import threading
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ndx._api.public_function import set_interceptor
from ndx._core import NDArray
from ndx._fusing.calls import call_of_ndx, recordings
from ndx._fusing.device_planning import plan_for_device
from ndx._fusing.planning import TooLarge, plan
from ndx._fusing.rules import code_of, is_contiguous, is_readonly
from ndx._fusing.scalars import Scalar, settled
from ndx._fusing.steps import Buffer, NotRecorded
from ndx._fusing.tracing import Trace, Tracer

_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.dtype, type)
_lock = threading.Lock()
_recordings = 0


class Recording(NamedTuple):
    """What became of a recording: a program, or the reason why there is none."""

    program: Any
    reason: str | None
    label: str
    by_value: tuple


@contextmanager
def _intercepted(trace):
    """Let calls of ndx's functions look for tracers."""
    global _recordings
    with _lock:
        _recordings += 1
        set_interceptor(call_of_ndx)
    recordings.traces += (trace,)
    try:
        yield
    finally:
        recordings.traces = recordings.traces[:-1]
        with _lock:
            _recordings -= 1
            if not _recordings:
                set_interceptor(None)


class _Arguments:
    """The tracers of arguments, in the order of a signature."""

    def __init__(self, trace):
        self.trace = trace
        self.arrays = []
        self.tracers = []
        self.scalars = 0

    def stand_in(self, value):
        """Return what stands for an argument."""
        kind = type(value)
        if kind is NDArray or kind is np.ndarray:
            for array, tracer in zip(self.arrays, self.tracers, strict=True):
                if array is value and kind is NDArray:
                    return tracer
            buffer = Buffer(code_of(value.dtype), value.shape, value.strides, None,
                            len(self.arrays))  # fmt: skip
            readonly = kind is NDArray and is_readonly(value)
            tracer = Tracer(self.trace, buffer, 0, value.shape, value.strides,
                            kind is np.ndarray, readonly)  # fmt: skip
            self.arrays.append(value)
            self.tracers.append(tracer)
            return tracer
        if kind is float:
            self.scalars += 1
            return Scalar(self.trace, self.scalars - 1, value)
        if kind is tuple:
            return tuple(self.stand_in(item) for item in value)
        return value


def record(function, args, kwargs, on_device=False):
    """Return the `Recording` of a function for arguments of one signature."""
    trace = Trace()
    arguments = _Arguments(trace)
    label = ", ".join(
        [*map(_words, args), *(f"{name}={_words(x)}" for name, x in kwargs.items())]
    )
    program, reason = None, None
    try:
        taken = arguments.stand_in(args)
        named = {name: arguments.stand_in(value) for name, value in kwargs.items()}
        if not arguments.arrays:
            trace.refuse("it has no array among its arguments")
        with _intercepted(trace):
            result = function(*taken, **named)
        if trace.reason is None:
            spec = _result(trace, result)
            planned = plan_for_device if on_device else plan
            program = planned(trace, len(arguments.arrays), spec)
    except TooLarge as error:
        reason = str(error)
    except Exception as error:
        # The function itself is called next, and raises what it raises.
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, NotRecorded):
            reason = None
    finally:
        trace.open = False
    reason = trace.reason or reason
    if reason is not None:
        program = None
    # The values count if only the function itself will be called: it may look at them.
    return Recording(program, reason, label, tuple(trace.by_value))


def _result(trace, value):
    """Describe what the function returned, for `Program.build`."""
    if type(value) is Tracer:
        if value._buffer.element:
            trace.refuse("it returns an element, which belongs to no workspace")
        if value._foreign:
            trace.refuse("it returns an array of NumPy")
        return ("array", value)
    if type(value) is Scalar:
        return ("value", value._now())
    if type(value) in (tuple, list):
        return (type(value).__name__, [_result(trace, item) for item in value])
    if type(value) is dict:
        items = [(settled(key), _result(trace, item)) for key, item in value.items()]
        return ("dict", items)
    if isinstance(value, _PLAIN):
        return ("value", value)
    return trace.refuse(f"it returns a {type(value).__name__}")


def _words(value):
    """Return a short text for an argument."""
    if type(value) in (NDArray, np.ndarray):
        lengths = "x".join(map(str, value.shape)) or "no axes"
        plain = type(value) is np.ndarray or is_contiguous(value)
        layout = "" if plain else ", strided"
        return f"{value.dtype}[{lengths}{layout}]"
    if issubclass(type(value), tuple):
        return f"({', '.join(map(_words, value))})"
    if issubclass(type(value), _PLAIN):
        return repr(value)
    return type(value).__name__
