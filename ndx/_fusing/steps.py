"""The parts of a recording: steps, on parts of buffers."""

import math
from typing import NamedTuple

import numpy as np

import ndx._fusing.rules as rules

BOOL = rules.code_of(np.bool)


class NotRecorded(Exception):
    """Raised for an operation that can't be replayed."""


class Raised(Exception):
    """Carries an exception that the function raises, and may catch."""

    def __init__(self, error):
        super().__init__(error)
        self.error = error


class Buffer:
    """An array of the program.

    Parameters
    ----------
    code : int
        Of its dtype.
    shape, strides, order : tuple of int
    argument : int or None
        Its place among the arrays of the arguments.
    number : bool
        Whether it is a number: operators in place bind another.
    reduced : bool
        Whether it is a full reduction, which NumPy's face makes a number.
    """

    __slots__ = (
        "argument", "code", "number", "order", "reduced", "shape", "strides",
    )  # fmt: skip

    def __init__(self, code, shape, strides, order=None, argument=None):
        self.code, self.shape, self.strides = code, shape, strides
        self.order, self.argument = order, argument
        self.number = self.reduced = False


class Part(NamedTuple):
    """Elements of a buffer, as bytes from its first element."""

    buffer: Buffer
    offset: int
    strides: tuple


class Constant(NamedTuple):
    """One value for all elements."""

    value: bytes


class Parameter(NamedTuple):
    """One value for all elements, which is a scalar argument of the call."""

    position: int
    code: int


class Step(NamedTuple):
    """One inner loop over elements of one shape.

    A reduction has steps of 0 along the axes that it reduces. Another step `starts` a
    reduction: its result is a new array, and its value is the first value of the
    reduction's result.
    """

    name: str
    code: int
    into: int
    shape: tuple
    target: Part
    sources: tuple
    reduces: bool = False
    starts: bool = False


def identity(name, code, count):
    """Return the value that an operation ignores, or the sum of no elements."""
    real = rules.kind(code) >= 3
    if name == "add":
        return -0.0 if real and count else 0
    if name.startswith("logical") or code == BOOL:
        return name in ("logical_and", "minimum")
    if real:
        return math.inf if name == "minimum" else -math.inf
    limits = np.iinfo(rules.dtype_of(code))
    return limits.max if name == "minimum" else limits.min


def reach(part, shape, itemsize):
    """Return the first and the last byte, from the buffer's first element."""
    steps = [(n - 1) * step for n, step in zip(shape, part.strides, strict=True)]
    low = part.offset + sum(step for step in steps if step < 0)
    return low, part.offset + sum(step for step in steps if step > 0) + itemsize


def may_clash(target, part, shape):
    """Whether a write to one part may change elements of another not yet read."""
    if type(part) is not Part or part.buffer is not target.buffer:
        return False
    if part.offset == target.offset and part.strides == target.strides:
        return False
    if 0 in shape:
        return False
    itemsize = rules.itemsize(target.buffer.code)
    a, b = reach(target, shape, itemsize), reach(part, shape, itemsize)
    return a[0] < b[1] and b[0] < a[1]
