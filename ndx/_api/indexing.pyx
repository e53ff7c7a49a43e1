"""Indexing functions of the standard."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, new_empty, strided
from ndx._compute.copies cimport cast
from ndx._compute.elementwise cimport binary, compute_loop
from ndx._compute.loops cimport Loop, Ufunc, find_ufunc
from ndx._compute.copies cimport in_c_order
from ndx._compute.numpy_calls cimport argument
from ndx._compute.passes.parts cimport Steps, steps_over
from ndx._lib.dtypes cimport (
    INT64, KIND_INT, KIND_UINT, UINT64, dtype_object, itemsize_of, kind_of,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, normalize_axis,
    shape_tuple, walk_merge, walk_order,
)

from ndx._compute.numpy_calls import on_device

__all__ = ["take", "take_along_axis"]

cdef Ufunc MINIMUM = find_ufunc("minimum")
cdef object INT64_MAX = 2**63 - 1

cdef extern from "ndx/internal/select.h" nogil:
    bint ndx_offsets(Py_ssize_t *offsets, const char *index, Py_ssize_t index_step,
                     size_t n, int dtype, Py_ssize_t length, Py_ssize_t stride,
                     bint more)
    void ndx_gather(char *out, const char *x, const Py_ssize_t *offsets, size_t n,
                    size_t nbytes, size_t unit)

cdef enum:
    BLOCK = 1024             # offsets that are computed at a time
    # Operations on this many bytes or more release the GIL.
    LARGE = 262144


cdef BaseArray compact(BaseArray x):
    """Return `x` if it is C-contiguous, else a C-contiguous copy."""
    return x if x.c_contiguous else in_c_order(x, x.dtype)


cdef BaseArray positions(object x, str name):
    """Return indices as contiguous int64; larger ones become 2**63 - 1."""
    cdef BaseArray indices = argument(x, name)
    if kind_of[indices.dtype] != KIND_INT and kind_of[indices.dtype] != KIND_UINT:
        raise TypeError(
            f"{name} takes integer indices, not {dtype_object(indices.dtype)}")
    if indices.block.device:
        return indices
    if indices.dtype == UINT64:
        # Casting to int64 would make large indices negative.
        indices = binary(MINIMUM, indices, INT64_MAX, None)
    return compact(indices if indices.dtype == INT64 else cast(indices, INT64))


# The runs of bytes to copy.
cdef struct Chunks:
    Py_ssize_t outer         # number of positions along the axes before this one
    Py_ssize_t length        # of the axis
    Py_ssize_t nbytes        # of each run
    Py_ssize_t count         # of all indices
    Py_ssize_t first         # first outer position
    Py_ssize_t start         # range [start, stop) of the indices
    Py_ssize_t stop
    Py_ssize_t bad           # position of an index out of bounds; -1: none


cdef void copy_chunks(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Copy a run of operand 0 to operand 2 for each outer position and index.

    Operand 1 has the indices. They are checked when they are read, because another
    thread may write to them.
    """
    cdef Chunks *chunks = <Chunks *>arg
    cdef const char *x = data[0] + chunks.first * chunks.length * chunks.nbytes
    cdef const int64_t *indices = <const int64_t *>data[1]
    cdef char *out = data[2] + (
        chunks.first * chunks.count + chunks.start) * chunks.nbytes
    cdef Py_ssize_t offsets[BLOCK]
    cdef Py_ssize_t i, n = 0, nbytes = chunks.nbytes, unit = 1
    if nbytes == 8 or nbytes == 4 or nbytes == 2:
        # A loop over elements has no multiplication.
        unit = nbytes
    for _ in range(chunks.outer):
        i = chunks.start
        while i < chunks.stop:
            if n < chunks.stop - chunks.start:
                # Offsets that fit in one block are computed once.
                n = min(BLOCK, chunks.stop - i)
                if ndx_offsets(offsets, <const char *>(indices + i), 8, n, INT64,
                               chunks.length, nbytes // unit, False):
                    chunks.bad = i + first_bad(indices + i, n, chunks.length)
                    return
            ndx_gather(out, x, offsets, n, nbytes, unit)
            out += n * nbytes
            i += n
        x += chunks.length * nbytes


cdef Py_ssize_t first_bad(const int64_t *indices, Py_ssize_t n,
                          Py_ssize_t length) noexcept nogil:
    """Return the place of the first index that is out of bounds."""
    cdef Py_ssize_t i
    for i in range(n):
        if indices[i] < -length or indices[i] >= length:
            return i
    return 0


cdef bint take_steps(Operands *operands, Chunks *chunks) except -1:
    """Copy the chunks step by step if arrays in files are large; return whether so."""
    cdef Chunks part = chunks[0]
    cdef Py_ssize_t size, i, done
    cdef Steps steps = steps_over("take", (
        <BaseArray>operands.arrays[0], <BaseArray>operands.arrays[2]))
    if steps is None:
        return False
    try:
        size = max(1, steps.now.block // max(1, chunks.nbytes))
        part.outer = 1
        for i in range(chunks.outer):
            part.first = i
            for part.start in range(0, chunks.count, size):
                part.stop = min(part.start + size, chunks.count)
                compute_on(operands, NULL, copy_chunks, &part, True)
                if part.bad >= 0:
                    break
                done = steps.total * (i * chunks.count + part.stop) // (
                    chunks.outer * chunks.count)
                steps.step(done - steps.done)
            chunks.bad = part.bad
            if part.bad >= 0:
                break
    finally:
        steps.end()
    return True


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> NDArray:
    """Return the elements at given positions along an axis.

    Parameters
    ----------
    x : NDArray
        With one axis or more.
    indices : NDArray, shape (n,)
        Integers in ``[-k, k)``, where k is the length of the axis.
    axis : int, optional
        In ``[-x.ndim, x.ndim)``. Optional if `x` has one axis.

    Returns
    -------
    NDArray
        A new array of the shape of `x`, except for length n along `axis`.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If the indices are not integers.
    ValueError
        If `indices` does not have exactly one axis, or `axis` is out of range or
        missing.

    Notes
    -----
    Array API 2025.12, `take`.

    Examples
    --------
    >>> import ndx
    >>> ndx.take(ndx.asarray([10, 20, 30]), ndx.asarray([2, 0]))
    NDArray([30, 10])
    """
    cdef BaseArray array = argument(x, "take")
    cdef BaseArray found, result
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Operands operands
    cdef Chunks chunks
    cdef int which, i
    if axis is None:
        if array.ndim != 1:
            raise ValueError(f"take needs an axis for an array of {array.ndim} axes")
        axis = 0
    which = normalize_axis(axis, array.ndim)
    found = positions(indices, "take")
    if found.ndim != 1:
        raise ValueError(
            f"take: indices have {found.ndim} axes; they must have one (for others: "
            "x[indices])")
    if array.block.device or found.block.device:
        return on_device("take", array, found, axis=which)
    array = compact(array)
    chunks.outer = 1
    chunks.nbytes = itemsize_of[array.dtype]
    for i in range(array.ndim):
        shape[i] = array.shape[i]
        if i < which:
            chunks.outer *= shape[i]
        elif i > which:
            chunks.nbytes *= shape[i]
    chunks.length = shape[which]
    chunks.count = chunks.stop = shape[which] = found.size
    chunks.first = chunks.start = 0
    chunks.bad = -1
    result = new_empty(array.dtype, array.ndim, shape)
    operands.count = 0
    put(&operands, array)
    put(&operands, found)
    put(&operands, result)
    if result.size * itemsize_of[array.dtype] < LARGE:
        compute_on(&operands, NULL, copy_chunks, &chunks, False)
    elif not take_steps(&operands, &chunks):
        compute_on(&operands, NULL, copy_chunks, &chunks, True)
    if chunks.bad >= 0:
        raise IndexError(
            f"take: index {indices[chunks.bad].item()} is out of bounds for an axis "
            f"of length {chunks.length}; valid are {-chunks.length} to "
            f"{chunks.length - 1}")
    return result


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> NDArray:
    """Return elements along an axis, at indices given for each position.

    Parameters
    ----------
    x : NDArray
        With one axis or more.
    indices : NDArray
        Integers in ``[-k, k)``, where k is the length of the axis. It has as many axes
        as `x`, and broadcasts against it along all axes except `axis`.
    axis : int
        In ``[-x.ndim, x.ndim)``.

    Returns
    -------
    NDArray
        A new array of the broadcast shape, with the length of `indices` along `axis`.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If the indices are not integers.
    ValueError
        If the numbers of axes differ, or `axis` is out of range.

    Notes
    -----
    Array API 2025.12, `take_along_axis`.

    Examples
    --------
    >>> import ndx
    >>> x = ndx.asarray([[3, 1, 2]])
    >>> ndx.take_along_axis(x, ndx.argsort(x))
    NDArray([[1, 2, 3]])
    """
    cdef BaseArray array = argument(x, "take_along_axis"), found, result
    cdef int which = normalize_axis(axis, array.ndim), i
    cdef Py_ssize_t shape[MAXDIMS]
    found = positions(indices, "take_along_axis")
    if found.ndim != array.ndim:
        raise ValueError(
            f"take_along_axis: the array has {array.ndim} axes and the indices have "
            f"{found.ndim}; they must have as many")
    for i in range(array.ndim):
        shape[i] = array.shape[i]
    # The axis takes the length of the indices. The other axes broadcast.
    shape[which] = found.shape[which]
    if broadcast_into(array.ndim, shape, found.ndim, found.shape) < 0:
        raise ValueError(
            f"take_along_axis: indices of shape {shape_tuple(found.ndim, found.shape)} "
            f"and an array of shape {shape_tuple(array.ndim, array.shape)} can't be "
            f"broadcast together but for axis {which}; axes must be equal or 1")
    if array.block.device or found.block.device:
        return on_device("take_along_axis", array, found, axis=which)
    result = new_empty(array.dtype, array.ndim, shape)
    pick_along(result, array, found, which)
    return result


cdef struct Along:
    Py_ssize_t length        # of the axis
    Py_ssize_t stride
    Py_ssize_t itemsize
    int64_t bad              # an index out of bounds, if `failed`
    bint failed


cdef void run_along(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                    void *data) noexcept nogil:
    """Inner loop of `take_along_axis`, with the signature of NumPy's loops."""
    cdef Along *along = <Along *>data
    cdef char *x = args[0]
    cdef char *indices = args[1]
    cdef char *out = args[2]
    cdef int64_t index
    cdef Chunks chunks
    if steps[0] == 0 and steps[1] == 8 and steps[2] == along.itemsize == along.stride:
        # All indices are for one contiguous row.
        chunks.outer = 1
        chunks.length = along.length
        chunks.nbytes = along.itemsize
        chunks.count = chunks.stop = counts[0]
        chunks.first = chunks.start = 0
        chunks.bad = -1
        copy_chunks(&chunks, args, NULL)
        if chunks.bad >= 0:
            along.bad = (<int64_t *>indices)[chunks.bad]
            along.failed = True
        return
    for _ in range(counts[0]):
        index = (<int64_t *>indices)[0]
        if index < -along.length or index >= along.length:
            along.bad = index
            along.failed = True
            return
        if index < 0:
            index += along.length
        if along.itemsize == 8:
            memcpy(out, x + index * along.stride, 8)
        else:
            memcpy(out, x + index * along.stride, along.itemsize)
        x += steps[0]
        indices += steps[1]
        out += steps[2]


cdef int pick_along(BaseArray result, BaseArray array, BaseArray found,
                    int which) except -1:
    """Write to `result` the elements of `array` that the indices name."""
    cdef Strided layouts[2]
    cdef Operands operands
    cdef Along along
    cdef Loop loop
    cdef Walk walk
    if result.size == 0:
        return 0
    strided(array, &layouts[0])
    strided(found, &layouts[1])
    along.length = array.shape[which]
    along.stride = array.strides[which]
    along.itemsize = itemsize_of[array.dtype]
    along.failed = False
    loop.function = run_along
    loop.data = &along
    walk.ndim = result.ndim
    walk.nops = 3
    memcpy(walk.shape, result.shape, walk.ndim * sizeof(Py_ssize_t))
    broadcast_strides(&layouts[0], walk.ndim, walk.shape, walk.strides[0])
    broadcast_strides(&layouts[1], walk.ndim, walk.shape, walk.strides[1])
    memcpy(walk.strides[2], result.strides, walk.ndim * sizeof(Py_ssize_t))
    # The index alone gives the position along the axis.
    walk.strides[0][which] = 0
    walk_order(&walk)
    walk_merge(&walk)
    operands.count = 0
    put(&operands, array)
    put(&operands, found)
    put(&operands, result)
    compute_on(&operands, &walk, compute_loop, &loop,
               result.size * along.itemsize >= LARGE)
    if along.failed:
        raise IndexError(
            f"take_along_axis: index {along.bad} is out of bounds for axis {which} of "
            f"length {along.length}; valid are {-along.length} to {along.length - 1}")
    return 0
