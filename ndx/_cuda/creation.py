"""New arrays on GPUs.

What is of one value is made there. The rest (sequences, ranges, the numbers of an
`eye`) is computed on the CPU and copied, so that its values are the CPU's to the bit.
"""

from operator import attrgetter

import numpy as np

from ndx import fft
from ndx._api import creation, creation_matrices, creation_ranges, data_types
from ndx._api.manipulation_views import permute_dims
from ndx._context.placement import current_backend
from ndx._core import NDArray
from ndx._cuda.bridge import device_index, new_array
from ndx._cuda.calls import standard
from ndx._cuda.session import session_of
from ndx._cuda.transfer import cast_checked, upload
from ndx._lib.device import CPU, find_device, number_of

__all__ = ["FUNCTIONS", "filled", "host", "index_inside", "on_cpu"]


def on_cpu(function):
    """Return what computes on the CPU inside of a public function."""
    return getattr(function, "__wrapped__", function)


_HOST = {
    name: on_cpu(attrgetter(name)(module))
    for module, names in (
        (creation, ("asarray", "empty", "full", "full_like", "empty_like")),
        (data_types, ("astype",)),
        (creation_matrices, ("eye",)),
        (creation_ranges, ("arange", "linspace")),
        (fft, ("fftfreq", "rfftfreq")),
    )
    for name in names
}


def host(name, /, *args, **kwargs):
    """Compute a function on the CPU."""
    return _HOST[name](*args, **kwargs)


def _target(device, like=None):
    """Return the session of the GPU of a new array; None: it is to be on the CPU."""
    if device is not None:
        found = find_device(device)
    elif like is not None:
        found = like.device
    else:
        found = find_device(current_backend().device)
    return None if found == CPU else session_of(number_of(found) - 1)


def filled(session, value, shape):
    """Return a new array of one value: that of an array without axes, on the CPU."""
    value = np.asarray(value)
    zero = not any(value.tobytes())
    result = new_array(session.index, shape, value.dtype, zero=zero)
    if not zero:
        with session.at_work():
            _fill(session.unwrap(result), value)
    return result


def _fill(array, value):
    """Fill CuPy's array; CuPy takes -0.0 for zero bytes."""
    if value != 0:
        array.fill(value[()])
    elif value.dtype.kind == "c":
        _fill(array.real, value.real)
        _fill(array.imag, value.imag)
    else:
        bits = f"i{value.itemsize}"
        array.view(bits).fill(value.view(bits)[()])


def empty(shape, *, dtype=None, device=None):
    """Return a new array whose elements are not set."""
    return new_array(
        _target(device).index, shape, np.float64 if dtype is None else dtype
    )


def zeros(shape, *, dtype=None, device=None):
    """Return a new array of zeros."""
    dtype = np.float64 if dtype is None else dtype
    return new_array(_target(device).index, shape, dtype, zero=True)


def ones(shape, *, dtype=None, device=None):
    """Return a new array of ones."""
    return full(shape, 1, dtype=np.float64 if dtype is None else dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None):
    """Return a new array of one value, which the CPU's rules have made fit."""
    if device_index(fill_value) is not None:
        fill_value = fill_value.item()
    session = _target(device)
    if session is None:
        return creation.full(shape, fill_value, dtype=dtype)
    return filled(session, creation.full((), fill_value, dtype=dtype), shape)


def empty_like(x, /, *, dtype=None, device=None):
    """Return a new array of the shape of `x`."""
    session, dtype = _target(device, x), x.dtype if dtype is None else dtype
    if session is None:
        return creation.empty(x.shape, dtype=dtype)
    return new_array(session.index, x.shape, dtype)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """Return a new array of the shape of `x`, filled with one value."""
    session, dtype = _target(device, x), x.dtype if dtype is None else dtype
    if session is None:
        return creation.full(x.shape, fill_value, dtype=dtype)
    return filled(session, creation.full((), fill_value, dtype=dtype), x.shape)


def zeros_like(x, /, *, dtype=None, device=None):
    """Return a new array of zeros of the shape of `x`."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """Return a new array of ones of the shape of `x`."""
    return full_like(x, 1, dtype=dtype, device=device)


def asarray(obj, /, *, dtype=None, device=None, copy=None, order=None):
    """Return an array of what is given, on a GPU if that is wanted, or it is there."""
    x = _placed(obj, dtype, device, copy)
    if order is None:
        return x
    if device_index(x) is None:
        return creation.asarray(x, copy=None if copy else copy, order=order)
    if order not in ("C", "F"):
        # Refused there.
        creation.asarray(0, order=order)
    axes = tuple(range(x.ndim))
    if order == "F":
        axes = axes[::-1]
    last_first = permute_dims(x, axes)
    if is_contiguous(last_first):
        return x
    if copy is False:
        msg = f"copy=False, but its elements don't lie in order {order!r}"
        raise ValueError(msg)
    result = new_array(device_index(x), last_first.shape, x.dtype)
    result[...] = last_first
    return permute_dims(result, axes)


def is_contiguous(x):
    """Return whether elements lie one after the other, the last axis fastest."""
    step = x.itemsize
    for length, stride in zip(x.shape[::-1], x.strides[::-1], strict=True):
        if length == 0:
            return True
        if length > 1:
            if stride != step:
                return False
            step *= length
    return True


def _placed(obj, dtype, device, copy):
    """Return an array of what is given, however its elements lie."""
    if isinstance(obj, NDArray) and device is None and device_index(obj) is None:
        # An array of ours stays where it is.
        return creation.asarray(obj, dtype=dtype, copy=copy)
    if device_index(obj) is None:
        found = _taken(obj, dtype, copy)
        if device_index(found) is None:
            if copy is False:
                msg = "copy=False, but what is on the CPU must be copied to a GPU"
                raise ValueError(msg)
            return upload(_target(device), found)
        # Another library's, on a GPU, or a sequence of what is there.
        obj = found
    x = obj
    changes = dtype is not None and np.dtype(dtype) != x.dtype
    moves = device is not None and find_device(device) != x.device
    if copy is False and (changes or moves):
        msg = f"copy=False, but the array is of {x.dtype} on {str(x.device)!r}"
        raise ValueError(msg)
    if changes or (copy and not moves):
        x = cast_checked(x, x.dtype if dtype is None else np.dtype(dtype))
    return x.to_device(device) if moves else x


def _taken(obj, dtype, copy):
    """Return an array of what is none: on the CPU, or on the GPU of its parts."""
    try:
        return creation.asarray(obj, dtype=dtype)
    except TypeError:
        # Looked for now, so that long sequences are gone through once.
        index = index_inside(obj)
        if index is None:
            raise
    if copy is False:
        msg = "copy=False, but a sequence of arrays must be copied"
        raise ValueError(msg)
    return _stacked(obj, session_of(index))


def index_inside(obj):
    """Return the number of the GPU of an array in nested sequences, or None."""
    if not isinstance(obj, (list, tuple)):
        return None
    found = (
        index_inside(item) if device_index(item) is None else device_index(item)
        for item in obj
    )
    return next((index for index in found if index is not None), None)


def _stacked(obj, session):
    """Return nested sequences with arrays of a GPU as one of its arrays."""
    if isinstance(obj, (list, tuple)):
        items = [_stacked(item, session) for item in obj]
        return standard("stack", items) if items else upload(session, np.zeros(0))
    return (
        obj if device_index(obj) is not None else upload(session, creation.asarray(obj))
    )


def _from_host(name):
    def made(*args, device=None, **kwargs):
        args = [x.item() if device_index(x) is not None else x for x in args]
        found = host(name.rpartition(".")[2], *args, **kwargs)
        session = _target(device)
        return found if session is None else upload(session, found)

    return made


def place_detached(x):
    """Return a copy where new arrays are made, in no workspace: what was unpickled."""
    return upload(_target(None), x, detached=True)


FUNCTIONS = {
    "asarray": asarray,
    "empty": empty,
    "empty_like": empty_like,
    "full": full,
    "full_like": full_like,
    "ones": ones,
    "ones_like": ones_like,
    "place_detached": place_detached,
    "zeros": zeros,
    "zeros_like": zeros_like,
    **{
        name: _from_host(name)
        for name in ("arange", "eye", "fft.fftfreq", "fft.rfftfreq", "linspace")
    },
}
