"""Recording: a function is followed with placeholders, and its steps make a program.

A recording has no effects: an operation with an effect is refused before it happens. A
function that can't be fused is called instead.
"""

import inspect
from typing import Any, NamedTuple

import numpy as np

from ndx._core import NDArray
from ndx._fusing.device_lowering import plan_for_device
from ndx._fusing.evaluation import Evaluation
from ndx._fusing.frames import call
from ndx._fusing.lowering import TooLarge, plan
from ndx._fusing.outside import Outside
from ndx._fusing.plain import is_plain
from ndx._fusing.rules import code_of, is_contiguous, is_readonly
from ndx._fusing.scalars import Scalar, settled
from ndx._fusing.steps import Buffer, NotRecorded, Raised
from ndx._fusing.tracing import Trace, Tracer

_RETURNED = (type(None), bool, int, float, complex, str, bytes, np.dtype, type)
# Plain values of which a signature has only the type.
_NOT_IN_SIGNATURES = (range, slice, frozenset, type(...), type(NotImplemented))
_GENERATORS = {
    "an async generator": inspect.isasyncgenfunction,
    "a coroutine": inspect.iscoroutinefunction,
    "a generator": inspect.isgeneratorfunction,
}


class Recording(NamedTuple):
    """The result of a recording: a program, or the reason why there is none."""

    program: Any
    reason: str | None
    label: str
    by_value: set  # places of floats on whose values it depends
    reads: list  # from outside
    arrays: list  # read from outside
    too_deep: bool = False  # for the interpreter's stack

    def names(self):
        """Return the expressions by which the function reads from outside."""
        values = ("equal", "float", "array")
        return [read.words for read in self.reads if read.check in values]


def require_function(function):
    """Raise TypeError for an object that can't be fused."""
    if not callable(function):
        msg = f"fuse takes a function, not {type(function).__name__}"
        raise TypeError(msg)
    for kind, is_kind in _GENERATORS.items():
        if is_kind(function):
            msg = (
                f"fuse takes a function that returns its results; "
                f"{getattr(function, '__qualname__', function)} is {kind} function, "
                f"whose calls compute nothing yet: fuse the functions that it calls"
            )
            raise TypeError(msg)


class Arguments:
    """Placeholders for arguments, and for arrays and floats from outside, in order."""

    def __init__(self, trace):
        self.trace = trace
        self.arrays = []
        self.tracers = []
        self.scalars = 0
        self.outer_arrays = []

    def placeholder(self, outside, how, parent, key, value, words):
        """Return the placeholder of an argument, or of an item of a tuple argument."""
        kind = type(value)
        if isinstance(value, NDArray) or kind is np.ndarray:
            return self.array(value)
        if kind is float:
            return self.float(value)
        if kind is tuple:
            _, place = outside.note(how, "type", parent, key, tuple, words)
            return tuple(
                self.placeholder(outside, "item", place, i, item, f"{words}[{i}]")
                for i, item in enumerate(value)
            )
        if is_plain(value) and kind not in _NOT_IN_SIGNATURES:
            return value
        return outside.take(how, parent, key, value, words)

    def float(self, value):
        """Return the placeholder of a float."""
        self.scalars += 1
        return Scalar(self.trace, self.scalars - 1, value)

    outer_float = float

    def outer_array(self, value):
        """Return the placeholder of an array from outside."""
        self.outer_arrays.append(value)
        return self.array(value)

    def array(self, value):
        """Return the placeholder of an array: the same one for each occurrence."""
        foreign = type(value) is np.ndarray
        for array, tracer in zip(self.arrays, self.tracers, strict=True):
            if array is value and not foreign:
                return tracer
        try:
            code = code_of(value.dtype)
        except (TypeError, ValueError):
            msg = f"it reads an array of {value.dtype}"
            raise NotRecorded(msg) from None
        buffer = Buffer(code, value.shape, value.strides, None, len(self.arrays))
        buffer.number = not foreign and type(value) is not NDArray
        readonly = not foreign and is_readonly(value)
        self.trace.numbers &= getattr(value, "device", "cpu") == "cpu"
        tracer = Tracer(self.trace, buffer, 0, value.shape, value.strides, foreign,
                        readonly)  # fmt: skip
        self.arrays.append(value)
        self.tracers.append(tracer)
        return tracer


def record(function, args, kwargs, fused):
    """Return the `Recording` of a function for arguments of one signature.

    Parameters
    ----------
    function : callable
    args : tuple
    kwargs : dict
    fused : type
        Of fused functions, which are walked along when they are called.
    """
    label = ", ".join(
        [*map(_words, args), *(f"{name}={_words(x)}" for name, x in kwargs.items())]
    )
    try:
        return _recorded(function, args, kwargs, fused, label)
    except Exception as error:
        # Only an error that comes again is the function's; others are the caller's,
        # as that of a signal's handler.
        try:
            _recorded(function, args, kwargs, fused, label)
        except Exception as again:
            if type(again) is type(error):
                deep = isinstance(again, RecursionError)
                return Recording(None, _described(error), label, set(), [], [], deep)
        raise


def _recorded(function, args, kwargs, fused, label):
    trace = Trace()
    arguments = Arguments(trace)
    outside = Outside(arguments)
    program, reason = None, None
    try:
        code = getattr(function, "__code__", None)
        names = () if code is None else code.co_varnames[: code.co_argcount]
        values = [
            arguments.placeholder(outside, "argument", -1, i, value, name)
            for i, (value, name) in enumerate(zip(
                [*args, *kwargs.values()],
                [*(names[i] if i < len(names) else f"argument {i + 1}"
                   for i in range(len(args))), *kwargs],
                strict=True,
            ))
        ]  # fmt: skip
        evaluation = Evaluation(outside, call, fused)
        root = outside.function(function, getattr(function, "__name__", "it"))
        named = dict(zip(kwargs, values[len(args) :], strict=True))
        result = evaluation.call(root, tuple(values[: len(args)]), named)
        if not arguments.arrays:
            trace.refuse("it has no arrays")
        if trace.reason is None:
            spec = _result(trace, result)
            on_device = getattr(arguments.arrays[0], "device", "cpu") != "cpu"
            planned = plan_for_device if on_device else plan
            program = planned(trace, len(arguments.arrays), spec)
    except (TooLarge, NotRecorded) as error:
        reason = str(error)
    except Raised as raised:
        # The function itself is called next, and raises the error.
        reason = _described(raised.error)
    reason = trace.reason or reason
    # The reads, and the floats whose values count, matter for a refusal, too.
    return Recording(program if reason is None else None, reason, label,
                     trace.by_value, outside.reads, arguments.outer_arrays)  # fmt: skip


def _described(error):
    return f"{type(error).__name__}: {error}"


def _result(trace, value):
    """Describe what the function returned, for `Program.build`."""
    if type(value) is Tracer:
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
    if isinstance(value, _RETURNED):
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
    if issubclass(type(value), _RETURNED):
        return repr(value)
    return type(value).__name__
