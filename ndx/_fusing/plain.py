"""Plain values: immutable, and the same in all that a function can do with them."""

import struct

import numpy as np

_TYPES = frozenset(
    {type(None), bool, int, float, complex, str, bytes, type(...), range,
     type(NotImplemented)}
)  # fmt: skip
_DEEPEST = 20


def is_plain(value, depth=0):
    """Whether a value is a number, a string, a dtype, or a tuple or slice of such."""
    kind = type(value)
    if kind in _TYPES:
        return True
    if kind is tuple or kind is frozenset:
        return depth < _DEEPEST and all(is_plain(item, depth + 1) for item in value)
    if kind is slice:
        return is_plain((value.start, value.stop, value.step), depth + 1)
    if issubclass(kind, np.dtype):
        return value.names is None and not value.metadata
    # Fields of records can be assigned to, and attributes of subclasses.
    return (
        issubclass(kind, np.generic)
        and not issubclass(kind, np.void | np.object_)
        and value.dtype.type is kind
    )


def is_equal(one, other):
    """Whether a value is of the type of a plain one, and equal in every bit."""
    if one is other:
        return True
    kind = type(other)
    if type(one) is not kind:
        return False
    if kind is float:
        return struct.pack("d", one) == struct.pack("d", other)
    if kind is complex:
        return is_equal((one.real, one.imag), (other.real, other.imag))
    if kind is tuple:
        return len(one) == len(other) and all(map(is_equal, one, other))
    if kind is slice or kind is range:
        ends = (other.start, other.stop, other.step)
        return is_equal((one.start, one.stop, one.step), ends)
    if kind is frozenset:
        return False
    if issubclass(kind, np.generic):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if issubclass(kind, np.dtype):
        return one == other and one.char == other.char
    return one == other
