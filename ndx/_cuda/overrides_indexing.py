"""Elements of arrays on a GPU: read, written, found and repeated."""

import numpy as np

from ndx._api.creation import full
from ndx._api.data_types import astype, result_type
from ndx._core import NDArray
from ndx._cuda.bridge import block_of, device_index
from ndx._cuda.calls import standard
from ndx._cuda.session import session_for
from ndx._cuda.transfer import upload
from ndx._lib.device import CPU

__all__ = ["fill", "get_item", "isin", "repeat", "searchsorted", "set_item"]


def get_item(x, key):
    """Return ``x[key]`` for a key that selects no view."""
    session = session_for(x)
    with session.at_work():
        return session.wrap(session.unwrap(x)[_key(session, key)])


def set_item(x, key, value):
    """Write ``x[key] = value``, whose kind fits."""
    session = session_for(x)
    if device_index(value) is None:
        value = _scalar(session, value, x.dtype)
    elif block_of(value) == block_of(x) or value.dtype != x.dtype:
        # A copy: CuPy may read elements that it has already written.
        value = astype(value, x.dtype)
    with session.at_work():
        session.unwrap(x)[_key(session, key)] = session.unwrap(value)


def _scalar(session, value, dtype):
    """Return a scalar, or an array of it if CuPy would lose the sign of a zero."""
    value = dtype.type(value)
    if value == 0 and any(value.tobytes()):
        return upload(session, np.asarray(value))
    return value


def fill(array, value):
    """Fill CuPy's array with a scalar; CuPy's own fill writes 0.0 for -0.0."""
    if value != 0:
        array.fill(value)
    elif value.dtype.kind == "c":
        fill(array.real, value.real)
        fill(array.imag, value.imag)
    else:
        bits = f"i{value.itemsize}"
        array.view(bits).fill(value.view(bits))


def _key(session, key):
    """Return a key in CuPy's form: lists become arrays."""
    if isinstance(key, tuple):
        return tuple([_key(session, item) for item in key])
    if isinstance(key, (bool, np.bool, list, range)):
        found = np.asarray(key)
        if not found.size and isinstance(key, list):
            found = found.astype(np.int64)
        if found.dtype.kind not in "biu":
            msg = (
                f"an array can't be indexed by {found.dtype}; valid are integers, "
                "slices, '...', None, and arrays of integers or booleans"
            )
            raise IndexError(msg)
        return session.unwrap(upload(session, found))
    return session.unwrap(key)


def repeat(session, x, repeats, /, *, axis):
    """Repeat elements by an array of counts; CuPy needs them on the CPU."""
    repeats = repeats.tolist()
    if np.any(np.less(repeats, 0)):
        # Also for empty arrays, for which CuPy does not check.
        msg = f"repeats={repeats} has a negative number; each is 0 or more"
        raise ValueError(msg)
    return standard(session, "repeat", x, repeats, axis=axis)


def _fitting(x1, x2):
    """Return the common dtype of two operands; one may be a scalar of any size."""
    dtype = result_type(x1, x2)
    for scalar in (x1, x2):
        if type(scalar) is int:
            for wider in (dtype, result_type(dtype, np.int64), np.dtype(np.float64)):
                try:
                    full((), scalar, dtype=wider, device=CPU)
                except OverflowError:
                    continue
                return wider
    return dtype


def _promoted(session, x1, x2):
    """Return operands as arrays of one dtype; CuPy compares mixed ones as C++ does."""
    dtype = _fitting(x1, x2)
    return [
        astype(x, dtype, copy=False)
        if isinstance(x, NDArray)
        else upload(session, full((), x, dtype=dtype, device=CPU))
        for x in (x1, x2)
    ]


def isin(session, x1, x2, /, *, invert):
    """Find the elements of an array in another one."""
    return standard(session, "isin", *_promoted(session, x1, x2), invert=invert)


def searchsorted(session, x1, x2, /, *, side, sorter):
    """Find where elements would be inserted."""
    x1, x2 = _promoted(session, x1, x2)
    return standard(session, "searchsorted", x1, x2, side=side, sorter=sorter)
