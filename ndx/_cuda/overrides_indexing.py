"""Elements of arrays on a GPU: read, written, found and repeated."""

from operator import index

import numpy as np

from ndx._api.creation import full
from ndx._api.data_types import result_type
from ndx._compute.numpy_calls import axis_index, layout_argument
from ndx._core import NDArray
from ndx._cuda import creation, transfer
from ndx._cuda.bridge import block_of, device_index
from ndx._cuda.calls import operand, standard
from ndx._cuda.session import common_device

__all__ = [
    "getitem",
    "isin",
    "repeat",
    "roll",
    "searchsorted",
    "setitem",
    "sorting",
    "take",
]


def getitem(x, key):
    """Return ``x[key]`` for a key that selects no view."""
    session = common_device("x[key]", x, key)
    with session.at_work():
        return session.wrap(session.unwrap(x)[_key(session, key)])


def setitem(x, key, value):
    """Write ``x[key] = value``, whose kind fits."""
    session = common_device("x[key] = value", x, key, value)
    if device_index(value) is None:
        value = _scalar(session, value, x.dtype)
    elif block_of(value) == block_of(x):
        # CuPy may read what it has written already.
        value = transfer.cast(value, x.dtype)
    with session.at_work():
        target = session.unwrap(x)
        target[_key(session, key)] = operand(session, value, x.dtype)


def _scalar(session, value, dtype):
    """Return a scalar, or an array of it where CuPy would lose the sign of a zero."""
    value = dtype.type(value)
    if value == 0 and any(value.tobytes()):
        return creation.filled(session, value, ())
    return value


def _key(session, key):
    """Return a key as CuPy takes it: with lists as arrays."""
    if isinstance(key, tuple):
        return tuple([_key(session, item) for item in key])
    if isinstance(key, (bool, np.bool, list)):
        found = np.asarray(key)
        if not found.size and isinstance(key, list):
            found = found.astype(np.int64)
        if found.dtype.kind not in "biu":
            msg = (
                f"an array can't be indexed by {found.dtype}; valid are integers, "
                "slices, '...', None, and arrays of integers or booleans"
            )
            raise IndexError(msg)
        return session.unwrap(transfer.upload(session, found))
    return session.unwrap(key)


def take(x, indices, /, *, axis=None):
    """Take elements along an axis; that of an array with one may be left out."""
    x, indices = layout_argument(x, "take"), layout_argument(indices, "take")
    if axis is None and x.ndim > 1:
        msg = f"take: the array has {x.ndim} axes: say along which by axis="
        raise ValueError(msg)
    common_device("take", x, indices)
    if indices.dtype.kind not in "iu":
        msg = f"take takes integer indices, not {indices.dtype}"
        raise TypeError(msg)
    if indices.ndim != 1:
        msg = (
            f"take: indices have {indices.ndim} axes; they must have one (for others: "
            "x[indices])"
        )
        raise ValueError(msg)
    return standard("take", x, indices, axis=0 if axis is None else axis)


def repeat(x, repeats, /, *, axis=None):
    """Repeat elements; CuPy wants to know on the CPU how often."""
    x = layout_argument(x, "repeat")
    try:
        repeats = index(repeats)
    except TypeError:
        repeats = layout_argument(repeats, "repeat")
    if isinstance(repeats, NDArray):
        common_device("repeat", x, repeats)
        if repeats.dtype.kind not in "biu":
            msg = f"repeats are integers, not {repeats.dtype}"
            raise TypeError(msg)
        repeats = repeats.tolist()
    if np.any(np.less(repeats, 0)):
        # Also of nothing, where CuPy does not look.
        msg = f"repeats={repeats} has a negative number; each is 0 or more"
        raise ValueError(msg)
    return standard("repeat", x, repeats, axis=axis)


def roll(x, /, shift, *, axis=None):
    """Move elements along axes; along none, which CuPy can't."""
    if x.ndim == 0 and axis == ():
        return transfer.cast(x, x.dtype)
    return standard("roll", x, shift, axis=axis)


def sorting(name):
    """Return `sort` or `argsort`, for arrays with an axis: CuPy would make one."""

    def function(x, /, *, axis=-1, descending=False, stable=True):
        axis_index(axis, x.ndim)
        return standard(name, x, axis=axis, descending=descending, stable=stable)

    return function


def _fitting(x1, x2):
    """Return the dtype of two operands, of which one may be a scalar of any size."""
    dtype = result_type(x1, x2)
    for scalar in (x1, x2):
        if type(scalar) is int:
            for wider in (dtype, result_type(dtype, np.int64), np.dtype(np.float64)):
                try:
                    full((), scalar, dtype=wider)
                except OverflowError:
                    continue
                return wider
    return dtype


def _promoted(name, x1, x2):
    """Return two operands as arrays of one dtype: CuPy compares as C++ does."""
    session = common_device(name, x1, x2)
    dtype = _fitting(x1, x2)
    return [
        creation.filled(session, full((), x, dtype=dtype), ())
        if device_index(x) is None
        else transfer.as_dtype(x, dtype)
        for x in (x1, x2)
    ]


def isin(x1, x2, /, *, invert=False):
    """Find the elements of an array in another one."""
    return standard("isin", *_promoted("isin", x1, x2), invert=invert)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Find where elements would be inserted."""
    if side not in ("left", "right"):
        msg = f"side={side!r} is unknown; valid are 'left' and 'right'"
        raise ValueError(msg)
    x1 = layout_argument(x1, "searchsorted")
    if x1.ndim != 1:
        msg = f"searchsorted needs an array of one axis, not {x1.ndim}"
        raise ValueError(msg)
    x1, x2 = _promoted("searchsorted", x1, x2)
    return standard("searchsorted", x1, x2, side=side, sorter=sorter)
