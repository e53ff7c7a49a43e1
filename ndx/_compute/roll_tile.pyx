"""Contiguous arrays whose elements are moved along axes: `roll` and `tile`.

The functions return None for other and for long arrays, which are copied piece by
piece.
"""

from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, new_empty, new_like
from ndx._compute.copies cimport LARGE
from ndx._lib.dtypes cimport itemsize_of
from ndx._lib.layout cimport MAXDIMS, Walk

__all__ = ["rolled", "tiled"]


cdef enum:
    MOST = 1 << 21               # elements: more are copied in passes if in files


cdef bint is_small(BaseArray x) noexcept:
    return x.c_contiguous and not x.block.device and 0 < x.size < MOST


# ---------------------------------------------------------------- roll

# Rows of bytes, whose end goes to their start.
cdef struct Roll:
    Py_ssize_t rows
    Py_ssize_t nbytes            # of a row
    Py_ssize_t cut               # bytes


cdef void run_roll(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Roll *roll = <const Roll *>arg
    cdef const char *x = data[0]
    cdef char *out = data[1]
    cdef Py_ssize_t rest = roll.nbytes - roll.cut, start = 0, end
    end = roll.rows * roll.nbytes
    while start < end:
        memcpy(out + start + roll.cut, x + start, rest)
        memcpy(out + start, x + start + rest, roll.cut)
        start += roll.nbytes


cdef BaseArray rolled_rows(BaseArray x, Py_ssize_t rows, Py_ssize_t length,
                           Py_ssize_t cut):
    """Return an array with the end of each row, `cut` elements, at its start.

    A row has `length` elements, or stretches of them: all that a step along the rolled
    axis moves.
    """
    cdef BaseArray result = new_like(x, x.dtype)
    cdef Py_ssize_t nbytes = x.size // rows * itemsize_of[x.dtype]
    cdef Operands operands
    cdef Roll roll
    roll.rows = rows
    roll.nbytes = nbytes
    roll.cut = nbytes // length * cut
    operands.count = 0
    put(&operands, x)
    put(&operands, result)
    compute_on(&operands, NULL, run_roll, &roll, x.size >= LARGE)
    return result


cpdef object rolled(object x, object shift, object axis):
    """Return an array with its elements moved cyclically; None: other arguments."""
    cdef BaseArray array = x, result
    cdef Py_ssize_t rows, cut
    cdef int i, which
    if not is_small(array):
        return None
    if axis is None:
        if type(shift) is not int:
            return None
        return rolled_rows(array, 1, array.size, shift % array.size)
    shifts = (shift,) if type(shift) is int else shift
    axes = (axis,) if type(axis) is int else axis
    if type(shifts) is not tuple or type(axes) is not tuple \
            or len(shifts) != len(axes):
        return None
    for item, places in zip(axes, shifts):
        if type(item) is not int or type(places) is not int \
                or not -array.ndim <= item < array.ndim:
            return None
    result = None
    for item, places in zip(axes, shifts):
        which = item + array.ndim if item < 0 else item
        # In Python: Python's remainder is not negative, and any int has one.
        cut = places % <object>array.shape[which]
        if cut == 0 and (result is not None or len(axes) > 1):
            continue
        rows = 1
        for i in range(which):
            rows *= array.shape[i]
        result = rolled_rows(array if result is None else result, rows,
                             array.shape[which], cut)
    return result


# ---------------------------------------------------------------- tile

cdef struct Tile:
    int ndim
    Py_ssize_t itemsize
    Py_ssize_t lengths[MAXDIMS]
    Py_ssize_t counts[MAXDIMS]


cdef Py_ssize_t lay_tiles(const Tile *tile, int axis, Py_ssize_t nbytes,
                          const char *x, char *out) noexcept nogil:
    """Lay copies of the elements along the axes from `axis` on; return the bytes.

    `nbytes` is what the elements have.
    """
    cdef Py_ssize_t i, block = 0
    cdef bint plain = True
    if axis == tile.ndim:
        memcpy(out, x, tile.itemsize)
        return tile.itemsize
    for i in range(axis + 1, tile.ndim):
        plain = plain and tile.counts[i] == 1
    if plain:
        memcpy(out, x, nbytes)
        block = nbytes
    else:
        for i in range(tile.lengths[axis]):
            block += lay_tiles(tile, axis + 1, nbytes // tile.lengths[axis],
                               x + i * (nbytes // tile.lengths[axis]), out + block)
    for i in range(1, tile.counts[axis]):
        memcpy(out + i * block, out, block)
    return block * tile.counts[axis]


cdef void run_tile(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Tile *tile = <const Tile *>arg
    cdef Py_ssize_t i, nbytes = tile.itemsize
    for i in range(tile.ndim):
        nbytes *= tile.lengths[i]
    lay_tiles(tile, 0, nbytes, data[0], data[1])


cpdef object tiled(object x, object repetitions):
    """Return copies of an array side by side; None: other arguments, or many."""
    cdef BaseArray array = x, result
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Py_ssize_t size = 1
    cdef Operands operands
    cdef Tile tile
    cdef int i, given
    if not is_small(array) or type(repetitions) is not tuple \
            or len(repetitions) > MAXDIMS:
        return None
    given = len(repetitions)
    tile.ndim = max(array.ndim, given)
    tile.itemsize = itemsize_of[array.dtype]
    for i in range(tile.ndim):
        tile.lengths[i] = 1
        tile.counts[i] = 1
        if i >= tile.ndim - array.ndim:
            tile.lengths[i] = array.shape[i - tile.ndim + array.ndim]
        if i >= tile.ndim - given:
            count = repetitions[i - tile.ndim + given]
            if type(count) is not int or not 0 < count < MOST:
                return None
            tile.counts[i] = count
        shape[i] = tile.lengths[i] * tile.counts[i]
        size *= shape[i]
        if size >= MOST:
            return None
    result = new_empty(array.dtype, tile.ndim, shape)
    operands.count = 0
    put(&operands, array)
    put(&operands, result)
    compute_on(&operands, NULL, run_tile, &tile, size >= LARGE)
    return result
