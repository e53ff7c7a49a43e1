"""How arrays lie in memory: what makes an NDArray of NumPy's that lies in some way."""

import ndx
from differential.engine import spread_out


def reversed_out(array):
    """Return an NDArray of which each axis runs backwards through memory."""
    room = ndx.empty(array.shape, dtype=array.dtype)
    view = room[(slice(None, None, -1),) * array.ndim] if array.ndim else room
    view[...] = array
    return view


def last_of_three(array):
    """Return an NDArray whose elements lie three apart, but for broken strides."""
    room = ndx.empty((*array.shape, 3), dtype=array.dtype)
    view = room[..., 2]
    view[...] = array
    return view


def in_fortran_order(array):
    axes = tuple(range(array.ndim))[::-1]
    room = ndx.empty(array.shape[::-1], dtype=array.dtype)
    view = ndx.permute_dims(room, axes)
    view[...] = array
    return view


def in_c_order(array):
    return ndx.asarray(array, copy=True)


LAYOUTS = [in_c_order, in_fortran_order, spread_out, reversed_out, last_of_three]
