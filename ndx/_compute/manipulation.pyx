"""Elements copied to other places: arrays joined, repeated, rolled and tiled."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport (
    BaseArray, is_array, new_empty, new_like, new_view, set_layout,
)
from ndx._compute.copies cimport cast, copy_into, in_c_order, transfer
from ndx._compute.costs cimport LARGE
from ndx._lib.dtypes cimport INT64, itemsize_of, promote_all
from ndx._lib.layout cimport MAXDIMS, Walk, walk_merge

import numpy as np

from ndx._compute.numpy_calls import on_device

__all__ = ["rolled", "tiled"]


# ---- Joined along an axis: `concat` and `stack` --------------------------------------

cdef extern from "ndx/internal/arithmetic.h":
    bint ndx_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) nogil

cdef extern from "ndx/internal/move.h" nogil:
    void ndx_move(char *out, Py_ssize_t out_row, Py_ssize_t out_step, const char *x,
                  Py_ssize_t x_row, Py_ssize_t x_step, Py_ssize_t rows,
                  Py_ssize_t length, size_t itemsize)

cdef enum:
    FEW = 8                      # elements: shorter rows are copied one by one
    MOST = 1 << 21               # elements: more are copied in passes if in files


# The place of an array in the result: some bytes of each row. A row is what lies
# between two steps along the axes before the joined one.
cdef struct Place:
    Py_ssize_t rows
    Py_ssize_t length            # elements in a row of the array
    Py_ssize_t row_nbytes        # of the result
    Py_ssize_t start             # bytes
    Py_ssize_t itemsize


cdef void run_place(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Copy operand 0 to its place in operand 1."""
    cdef const Place *place = <const Place *>arg
    cdef Py_ssize_t row, nbytes = place.length * place.itemsize
    cdef char *out = data[1] + place.start
    if place.length < FEW:
        ndx_move(out, place.row_nbytes, place.itemsize, data[0], nbytes,
                 place.itemsize, place.rows, place.length, place.itemsize)
        return
    for row in range(place.rows):
        memcpy(out + row * place.row_nbytes, data[0] + row * nbytes, nbytes)


cdef bint same_lengths(BaseArray a, BaseArray b, int but) noexcept:
    """Whether two shapes agree except along one axis."""
    cdef int axis
    if a.ndim != b.ndim:
        return False
    for axis in range(a.ndim):
        if axis != but and a.shape[axis] != b.shape[axis]:
            return False
    return True


cdef object shapes_error(str what, list arrays):
    return ValueError(f"{what} {', '.join([str(x.shape) for x in arrays])}")


cdef BaseArray with_axis(BaseArray x, int axis):
    """Return a view with a new axis of length 1."""
    cdef BaseArray view = new_view(x, x.ndim + 1)
    cdef int i
    for i in range(x.ndim):
        view.shape[i if i < axis else i + 1] = x.shape[i]
        view.strides[i if i < axis else i + 1] = x.strides[i]
    view.shape[axis] = 1
    view.strides[axis] = itemsize_of[x.dtype]
    set_layout(view)
    return view


cdef BaseArray join(list arrays, int axis, bint new_axis):
    """Return arrays joined along an axis, or along a new one, in the promoted dtype.

    For a new axis the caller has checked that the shapes are the same.
    """
    cdef BaseArray first = arrays[0], array, result
    cdef Py_ssize_t shape[MAXDIMS]
    cdef int dtype = first.dtype, i, ndim = first.ndim + new_axis
    cdef bint mixed = False, on_a_device = False, contiguous = True
    for i in range(first.ndim):
        shape[i if not new_axis or i < axis else i + 1] = first.shape[i]
    shape[axis] = 0
    for item in arrays:
        array = item
        if not new_axis and not same_lengths(first, array, axis):
            # This is also the error for an array without this axis.
            also = "" if first.ndim == array.ndim else ", in the number of axes"
            raise shapes_error(
                f"concat: shapes differ in more than axis {axis}{also}:", arrays)
        if ndx_add(shape[axis], 1 if new_axis else array.shape[axis], &shape[axis]):
            raise shapes_error(
                f"concat: together the lengths along axis {axis} are beyond the "
                "address space (2**63 bytes):", arrays)
        mixed = mixed or array.dtype != first.dtype
        on_a_device = on_a_device or array.block.device != 0
        contiguous = contiguous and array.c_contiguous
    if mixed:
        dtype = promote_all([(<BaseArray>item).dtype for item in arrays])
    if on_a_device:
        if new_axis:
            arrays = [with_axis(<BaseArray>item, axis) for item in arrays]
        return on_device("concat", [
            item if (<BaseArray>item).dtype == dtype else cast(item, dtype)
            for item in arrays], axis=axis)
    result = new_empty(dtype, ndim, shape)
    if contiguous and not mixed and result.size < MOST:
        place_all(arrays, result, axis, new_axis)
    else:
        copy_all(arrays, result, axis, new_axis)
    return result


cdef int place_all(list arrays, BaseArray result, int axis, bint new_axis) except -1:
    """Copy contiguous arrays of the result's dtype to their places."""
    cdef Operands operands
    cdef Place place
    cdef BaseArray array
    cdef int i
    place.rows = 1
    for i in range(axis):
        place.rows *= result.shape[i]
    if result.size == 0:
        return 0
    place.itemsize = itemsize_of[result.dtype]
    place.row_nbytes = result.size // place.rows * place.itemsize
    place.start = 0
    for item in arrays:
        array = item
        place.length = array.size // place.rows
        operands.count = 0
        put(&operands, array)
        put(&operands, result)
        compute_on(&operands, NULL, run_place, &place, array.size >= LARGE)
        place.start += place.length * place.itemsize
    return 0


cdef int copy_all(list arrays, BaseArray result, int axis, bint new_axis) except -1:
    """Copy arrays of any layout and dtype to their places."""
    cdef BaseArray array, piece
    cdef Py_ssize_t start = 0
    cdef int i
    for item in arrays:
        array = with_axis(<BaseArray>item, axis) if new_axis else item
        piece = new_view(result, result.ndim)
        for i in range(result.ndim):
            piece.shape[i] = array.shape[i]
            piece.strides[i] = result.strides[i]
        piece.offset += start
        start += array.shape[axis] * result.strides[axis]
        set_layout(piece)
        copy_into(piece, array)
    return 0


# ---- Repeated along an axis ----------------------------------------------------------

cdef extern from "ndx/internal/arithmetic.h":
    bint ndx_multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) nogil


cdef BaseArray repeated(BaseArray x, Py_ssize_t count, int axis):
    """Return each element `count` times along an axis; None: the result is too long.

    The copies are one more axis, along which the operand does not move.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result
    cdef Operands operands
    cdef Walk walk
    cdef int i, ndim = x.ndim
    memcpy(shape, x.shape, ndim * sizeof(Py_ssize_t))
    if ndx_multiply(shape[axis], count, &shape[axis]):
        return None
    if ndim == MAXDIMS:
        return None
    result = new_empty(x.dtype, ndim, shape)
    if result.size == 0:
        return result
    walk.nops = 2
    walk.ndim = ndim + 1
    for i in range(ndim):
        walk.shape[i + (i > axis)] = x.shape[i]
        walk.strides[0][i + (i > axis)] = x.strides[i]
        walk.strides[1][i + (i > axis)] = result.strides[i]
    walk.shape[axis + 1] = count
    walk.strides[0][axis + 1] = 0
    walk.strides[1][axis + 1] = result.strides[axis]
    walk.strides[1][axis] *= count
    walk_merge(&walk)
    operands.count = 0
    put(&operands, x)
    put(&operands, result)
    transfer(&operands, &walk, x.dtype, x.dtype, "repeat")
    return result


# Items, each of some bytes, repeated as often as the counts say.
cdef struct Repeats:
    Py_ssize_t before            # how often the counts are gone through
    Py_ssize_t length            # counts
    size_t nbytes


cdef void run_repeats(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write the items of operand 0 to operand 2, operand 1 times each."""
    cdef const Repeats *job = <const Repeats *>arg
    cdef const int64_t *counts = <const int64_t *>data[1]
    cdef char *x = data[0]
    cdef char *out = data[2]
    cdef Py_ssize_t i
    for _ in range(job.before):
        for i in range(job.length):
            for _ in range(counts[i]):
                if job.nbytes == 8:
                    memcpy(out, x, 8)
                else:
                    memcpy(out, x, job.nbytes)
                out += job.nbytes
            x += job.nbytes


cdef struct Total:
    Py_ssize_t length
    int64_t sum
    bint refused                 # a count is negative, or the sum is large


cdef void run_total(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Total *total = <Total *>arg
    cdef const int64_t *counts = <const int64_t *>data[0]
    cdef Py_ssize_t i
    for i in range(total.length):
        if not 0 <= counts[i] <= LARGE:
            total.refused = True
        else:
            total.sum += counts[i]


cdef int check_repeats(BaseArray x, object counts) except -1:
    """Raise ValueError for counts whose sum NumPy's `repeat` would wrap.

    It would write beyond its result.
    """
    if x.block.device or is_array(counts) and (<BaseArray>counts).block.device:
        return 0
    numbers = np.asarray(counts)
    if numbers.dtype.kind in "iu":
        total = numbers.sum(dtype=np.float64) * (x.size if numbers.size == 1 else 1)
        if abs(total) >= 2**62:
            raise ValueError(
                f"repeat: the counts add up to {total:.3g} elements, beyond the "
                "address space")
    return 0


cdef BaseArray repeated_each(BaseArray x, BaseArray counts, int axis):
    """Return each item along an axis of `x` as often as its count says.

    None: the result is large, or NumPy refuses it. The counts are int64, and nobody
    else can change them.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result
    cdef Operands operands
    cdef Repeats job
    cdef Total total
    cdef int i
    if counts.ndim != 1 or not counts.c_contiguous or counts.dtype != INT64 \
            or counts.size != x.shape[axis] or counts.size >= LARGE or x.size >= LARGE:
        return None
    total.length = counts.size
    total.sum = 0
    total.refused = False
    operands.count = 0
    put(&operands, counts)
    compute_on(&operands, NULL, run_total, &total, False)
    if total.refused or total.sum >= LARGE:
        return None
    memcpy(shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    shape[axis] = total.sum
    if not x.c_contiguous:
        x = in_c_order(x, x.dtype)
    result = new_empty(x.dtype, x.ndim, shape)
    if result.size == 0:
        return result
    job.before = 1
    job.length = counts.size
    job.nbytes = itemsize_of[x.dtype]
    for i in range(axis):
        job.before *= x.shape[i]
    for i in range(axis + 1, x.ndim):
        job.nbytes *= x.shape[i]
    operands.count = 0
    put(&operands, x)
    put(&operands, counts)
    put(&operands, result)
    compute_on(&operands, NULL, run_repeats, &job, False)
    return result


# ---- Moved along axes: `roll` and `tile` ---------------------------------------------
# The functions return None for other and for long arrays, which are copied piece by
# piece.


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
