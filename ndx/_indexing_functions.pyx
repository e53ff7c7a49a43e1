"""Indexing functions of the standard."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ndx._array cimport BaseArray, data_of, new_empty, pin, strided, unpin
from ndx._dtypes cimport (
    INT64, KIND_INT, KIND_UINT, UINT64, dtype_object, itemsize_of, kind_of,
)
from ndx._engine cimport argument
from ndx._layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, normalize_axis,
    shape_tuple, walk_merge, walk_order,
)
from ndx._loops cimport Loop, Ufunc, find_ufunc, run_elementwise
from ndx._operations cimport binary, cast, copy_into
from ndx._passes.steps cimport Steps, steps_over

__all__ = ["take", "take_along_axis"]

cdef Ufunc MINIMUM = find_ufunc("minimum")
cdef object INT64_MAX = 2**63 - 1

cdef enum:
    # Bytes from which the GIL is released.
    LARGE = 262144


cdef BaseArray compact(BaseArray x):
    """Return `x`, or a copy of it that is contiguous in C order."""
    cdef BaseArray result
    if x.c_contiguous:
        return x
    result = new_empty(x.dtype, x.ndim, x.shape)
    copy_into(result, x)
    return result


cdef BaseArray positions(object x, str name):
    """Return indices as contiguous int64; those that don't fit it as 2**63 - 1."""
    cdef BaseArray indices = argument(x, name)
    if kind_of[indices.dtype] != KIND_INT and kind_of[indices.dtype] != KIND_UINT:
        raise TypeError(
            f"{name} takes integer indices, not {dtype_object(indices.dtype)}")
    if indices.dtype == UINT64:
        # In int64 they would be negative ones.
        indices = binary(MINIMUM, indices, INT64_MAX, None)
    return compact(indices if indices.dtype == INT64 else cast(indices, INT64))


cdef Py_ssize_t copy_chunks(char *out, const char *x, const int64_t *indices,
                            Py_ssize_t count, Py_ssize_t outer, Py_ssize_t length,
                            Py_ssize_t chunk) noexcept nogil:
    """Copy a run of bytes for each index, for each of the outer places.

    Returns which index is out of bounds, or -1. Each is checked as it is read: another
    thread may write to them.
    """
    cdef Py_ssize_t i
    cdef int64_t index
    for _ in range(outer):
        for i in range(count):
            index = indices[i]
            if index < 0:
                index += length
            if index < 0 or index >= length:
                return i
            # With a constant size a copy is one instruction.
            if chunk == 8:
                memcpy(out, x + index * 8, 8)
            elif chunk == 4:
                memcpy(out, x + index * 4, 4)
            else:
                memcpy(out, x + index * chunk, chunk)
            out += chunk
        x += length * chunk
    return -1


cdef bint take_steps(BaseArray x, BaseArray indices, BaseArray out, Py_ssize_t outer,
                     Py_ssize_t chunk, Py_ssize_t length, Py_ssize_t *bad) except -1:
    """Copy chunks of large arrays in files, or don't and say so."""
    cdef Steps steps
    cdef char *source = data_of(x)
    cdef char *target = data_of(out)
    cdef const int64_t *chosen = <const int64_t *>data_of(indices)
    cdef Py_ssize_t count = indices.size, size, i, start, stop
    if out.size * itemsize_of[out.dtype] < LARGE:
        return False
    steps = steps_over("take", (x, out))
    if steps is None:
        return False
    try:
        size = max(1, steps.now.block // max(1, chunk))
        for i in range(outer):
            for start in range(0, count, size):
                stop = min(start + size, count)
                with nogil:
                    bad[0] = copy_chunks(
                        target + (i * count + start) * chunk, source, chosen + start,
                        stop - start, 1, length, chunk)
                if bad[0] >= 0:
                    bad[0] += start
                    return True
                steps.step(steps.total * (i * count + stop) // (outer * count)
                           - steps.done)
            source += length * chunk
    finally:
        steps.end()
    return True


def take(x, indices, /, *, axis=None):
    """Return the elements at given positions along an axis.

    Parameters
    ----------
    x : NDArray
        With one axis or more.
    indices : NDArray, shape (n,)
        Integers in ``[-k, k)``, where k is the length of the axis.
    axis : int, optional
        In ``[-x.ndim, x.ndim)``. May be left out if `x` has one axis.

    Returns
    -------
    NDArray
        A new array of the shape of `x` but for `axis`, which has length n.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If the indices are not integers.
    ValueError
        If `indices` has not just one axis, or `axis` is out of range, or missing.

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
    cdef Py_ssize_t outer = 1, chunk = itemsize_of[array.dtype], count, length
    cdef Py_ssize_t bad = -1
    cdef char *source
    cdef char *target
    cdef int64_t *chosen
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
    array = compact(array)
    for i in range(array.ndim):
        shape[i] = array.shape[i]
        if i < which:
            outer *= shape[i]
        elif i > which:
            chunk *= shape[i]
    shape[which] = found.size
    pin(array)
    try:
        pin(found)
        try:
            result = new_empty(array.dtype, array.ndim, shape)
            source = data_of(array)
            target = data_of(result)
            chosen = <int64_t *>data_of(found)
            count = found.size
            length = array.shape[which]
            pin(result)
            try:
                if take_steps(array, found, result, outer, chunk, length, &bad):
                    pass
                elif result.size * itemsize_of[array.dtype] < LARGE:
                    bad = copy_chunks(
                        target, source, chosen, count, outer, length, chunk)
                else:
                    with nogil:
                        bad = copy_chunks(
                            target, source, chosen, count, outer, length, chunk)
            finally:
                unpin(result)
            if bad >= 0:
                raise IndexError(
                    f"take: index {indices[bad].item()} is out of bounds for an axis "
                    f"of length {length}; valid are {-length} to {length - 1}")
        finally:
            unpin(found)
    finally:
        unpin(array)
    return result


def take_along_axis(x, indices, /, *, axis=-1):
    """Return the elements at positions along an axis given for each place.

    Parameters
    ----------
    x : NDArray
        With one axis or more.
    indices : NDArray
        Integers in ``[-k, k)``, where k is the length of the axis; as many axes as
        `x`, broadcast against it but for `axis`.
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
    # Along the axis there are as many as indices; the others broadcast.
    shape[which] = found.shape[which]
    if broadcast_into(array.ndim, shape, found.ndim, found.shape) < 0:
        raise ValueError(
            f"take_along_axis: indices of shape {shape_tuple(found.ndim, found.shape)} "
            f"and an array of shape {shape_tuple(array.ndim, array.shape)} can't be "
            f"broadcast together but for axis {which}; axes must be equal or 1")
    pin(array)
    try:
        pin(found)
        try:
            result = new_empty(array.dtype, array.ndim, shape)
            pin(result)
            try:
                pick_along(result, array, found, which)
            finally:
                unpin(result)
        finally:
            unpin(found)
    finally:
        unpin(array)
    return result


cdef struct Along:
    Py_ssize_t length        # of the axis
    Py_ssize_t stride
    Py_ssize_t itemsize
    int64_t bad              # an index out of bounds, where `failed`
    bint failed


cdef void run_along(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                    void *data) noexcept nogil:
    """The inner loop of `take_along_axis`, called as NumPy's are."""
    cdef Along *along = <Along *>data
    cdef char *x = args[0]
    cdef char *indices = args[1]
    cdef char *out = args[2]
    cdef int64_t index
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
    cdef char *data[3]
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
    # Where along the axis an element is from says its index.
    walk.strides[0][which] = 0
    data[0] = data_of(array)
    data[1] = data_of(found)
    data[2] = data_of(result)
    walk_order(&walk)
    walk_merge(&walk)
    if result.size * along.itemsize < LARGE:
        run_elementwise(&loop, 3, data, &walk)
    else:
        with nogil:
            run_elementwise(&loop, 3, data, &walk)
    if along.failed:
        raise IndexError(
            f"take_along_axis: index {along.bad} is out of bounds for axis {which} of "
            f"length {along.length}; valid are {-along.length} to {along.length - 1}")
    return 0
