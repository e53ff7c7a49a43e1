"""Indexing functions of the standard."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, begin_all, end_all, put
from ndx._array.storage cimport BaseArray, new_empty, strided
from ndx._compute.advanced_indexing cimport gather
from ndx._compute.copies cimport cast, in_c_order
from ndx._compute.elementwise cimport binary, compute_loop
from ndx._compute.executor cimport run
from ndx._compute.loops cimport Loop, Ufunc, find_ufunc
from ndx._compute.numpy_calls cimport argument
from ndx._compute.tiles cimport Job, begin_job
from ndx._lib.dtypes cimport (
    INT64, KIND_INT, KIND_UINT, UINT64, dtype_object, itemsize_of, kind_of,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, count_elements,
    normalize_axis, shape_tuple, walk_merge, walk_order,
)

from ndx._api.manipulation import reshape
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
    INDEX_CYCLES = 3         # of an index, and of the element that it selects

cdef extern from "ndx/internal/thread_pool.h" nogil:
    void ndx_raise_flag(int *flag)


cdef BaseArray compact(BaseArray x):
    """Return `x` if it is C-contiguous, else a C-contiguous copy."""
    return x if x.c_contiguous else in_c_order(x, x.dtype)


cdef BaseArray integers(object x, str name):
    """Return indices, or raise if they are none."""
    cdef BaseArray indices = argument(x, name)
    if kind_of[indices.dtype] != KIND_INT and kind_of[indices.dtype] != KIND_UINT:
        raise TypeError(
            f"{name} takes integer indices, not {dtype_object(indices.dtype)}")
    return indices


cdef BaseArray positions(object x, str name):
    """Return indices as contiguous int64; larger ones become 2**63 - 1."""
    cdef BaseArray indices = integers(x, name)
    if indices.block.device:
        return indices
    if indices.dtype == UINT64:
        # Casting to int64 would make large indices negative.
        indices = binary(MINIMUM, indices, INT64_MAX, None)
    return compact(indices if indices.dtype == INT64 else cast(indices, INT64))


cdef Py_ssize_t first_bad(const int64_t *indices, Py_ssize_t n,
                          Py_ssize_t length) noexcept nogil:
    """Return the place of the first index that is out of bounds; -1: none is."""
    cdef Py_ssize_t i
    for i in range(n):
        if indices[i] < -length or indices[i] >= length:
            return i
    return -1


cdef int check_indices(BaseArray indices, Py_ssize_t length, str name) except -1:
    """Raise for the first index that is out of bounds."""
    cdef BaseArray found = positions(indices, name)
    cdef Operands operands
    cdef Py_ssize_t bad
    if found.size == 0:
        return 0
    operands.count = 0
    put(&operands, found)
    begin_all(&operands)
    bad = first_bad(<const int64_t *>operands.data[0], found.size, length)
    end_all(&operands)
    if bad >= 0:
        raise IndexError(
            f"{name}: index {reshape(indices, (-1,))[bad].item()} is out of bounds for "
            f"an axis of length {length}; valid are {-length} to {length - 1}")
    return 0


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
    cdef BaseArray found = integers(indices, "take"), result
    cdef Py_ssize_t shape[MAXDIMS]
    cdef PyObject *selected
    cdef int which
    if axis is None:
        if array.ndim != 1:
            raise ValueError(f"take needs an axis for an array of {array.ndim} axes")
        axis = 0
    which = normalize_axis(axis, array.ndim)
    if found.ndim != 1:
        raise ValueError(
            f"take: indices have {found.ndim} axes; they must have one (for others: "
            "x[indices])")
    if array.block.device or found.block.device:
        return on_device("take", array, found, axis=which)
    if found.dtype == UINT64:
        found = positions(indices, "take")
    selected = <PyObject *>found
    result = gather(array, which, 1, &selected)
    if result is None and not array.c_contiguous:
        result = gather(compact(array), which, 1, &selected)
    if result is None:
        # There is nothing to copy, or an index is out of bounds.
        if count_elements(which, array.shape, 1):
            check_indices(integers(indices, "take"), array.shape[which], "take")
        memcpy(shape, array.shape, array.ndim * sizeof(Py_ssize_t))
        shape[which] = found.size
        result = new_empty(array.dtype, array.ndim, shape)
        if result.size:
            raise IndexError("take: the indices were changed while they were read")
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
    int failed               # an index was out of bounds; atomic


cdef void run_along(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                    void *data) noexcept nogil:
    """Inner loop of `take_along_axis`, with the signature of NumPy's loops."""
    cdef Along *along = <Along *>data
    cdef char *x = args[0]
    cdef char *indices = args[1]
    cdef char *out = args[2]
    cdef int64_t index
    cdef Py_ssize_t offsets[BLOCK]
    cdef Py_ssize_t start = 0, n, unit = along.itemsize if along.itemsize <= 8 else 1
    if steps[0] == 0 and steps[1] == 8 and steps[2] == along.itemsize == along.stride:
        # All indices are for one contiguous row.
        while start < counts[0]:
            n = min(BLOCK, counts[0] - start)
            if ndx_offsets(offsets, indices + 8 * start, 8, n, INT64, along.length,
                           along.itemsize // unit, False):
                ndx_raise_flag(&along.failed)
                return
            ndx_gather(out + start * along.itemsize, x, offsets, n, along.itemsize,
                       unit)
            start += n
        return
    for _ in range(counts[0]):
        index = (<int64_t *>indices)[0]
        if index < -along.length or index >= along.length:
            ndx_raise_flag(&along.failed)
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
    cdef Job job
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
    begin_job(&job, &operands, &walk, compute_loop, &loop)
    job.itemsizes[0] = 0
    job.itemsizes[1] = sizeof(int64_t)
    job.itemsizes[2] = along.itemsize
    job.cycles = INDEX_CYCLES
    run(&job, "take_along_axis")
    if along.failed:
        check_indices(found, along.length, "take_along_axis")
        raise IndexError(
            "take_along_axis: the indices were changed while they were read")
    return 0
