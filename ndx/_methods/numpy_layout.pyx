"""Arguments of NumPy's methods, and when a function of ndx does the same."""

import pickle
from numbers import Integral

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport (
    INLINE_DIMS, BaseArray, as_number, enter_living, holds_number, is_array,
    leave_living, new_view, own_block, require_live, require_usable, require_writeable,
    same_view, set_layout, strided,
)
from ndx._blocks.block cimport Block, block_decref, block_incref
from ndx._compute.copies cimport cast, cast_ordered
from ndx._compute.costs cimport LARGE
from ndx._compute.elementwise cimport binary, inplace, unary
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.matmul cimport dot
from ndx._compute.sorting cimport MAX_ITERATED, places_in, search
from ndx._lib.dtypes cimport (
    BOOL, INT64, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_UINT, UINT64, find_code,
    has_arithmetic, itemsize_of, kind_of,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, count_elements, parse_shape, reshape_strides, shape_tuple,
)
from ndx._methods.values cimport fits_weakly, number_with

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *x) noexcept

cdef extern from "ndx/internal/callers.h":
    bint ndx_has_weakrefs(PyObject *x) noexcept
    bint ndx_interpreter_owns(PyObject *x) noexcept

cdef object MOST_REPEATS = 2**20

cdef Ufunc DIVIDE = find_ufunc("divide")
cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc POSITIVE = find_ufunc("positive")
cdef Ufunc RINT = find_ufunc("rint")


cdef bint has_axes(BaseArray x, object axis) noexcept:
    """Whether `axis` may be one; NumPy takes 0 and -1 for arrays without axes."""
    return x.ndim > 0 or axis is None


cdef bint takes_along(BaseArray x, object indices, object axis) noexcept:
    """Whether `take` is ndx's: by an array of integers of one axis, along an axis."""
    cdef BaseArray found
    cdef int which
    if not is_array(indices):
        return False
    found = indices
    if found.ndim != 1 or found.dtype == UINT64 or kind_of[found.dtype] != KIND_INT \
            and kind_of[found.dtype] != KIND_UINT:
        return False
    if axis is None:
        return x.ndim == 1
    if type(axis) is not int:
        return False
    for which in range(x.ndim):
        if axis == which:
            return True
    return False


cdef BaseArray ordered_copy(BaseArray x, object order):
    require_usable(x)
    return cast_ordered(x, x.dtype, order)


cdef bint repeats_plainly(BaseArray x, object repeats, object axis) noexcept:
    """Whether `repeat` is ndx's: the arguments need nothing of NumPy's own checks."""
    if axis is not None and not (type(axis) is int and -x.ndim <= axis < x.ndim):
        return False
    if is_array(repeats):
        return (<BaseArray>repeats).ndim == 1 and (<BaseArray>repeats).dtype == INT64
    return type(repeats) is int and 0 <= repeats <= MOST_REPEATS


cdef bint stays_plain(BaseArray x, object dtype) except -1:
    """Whether ndx adds in a dtype as NumPy does: one of ndx, and not complex to real.

    It rounds sums of elements without arithmetic once, NumPy after each step.
    """
    cdef int code = find_code(dtype)
    return code >= 0 and has_arithmetic(code) and (
        kind_of[x.dtype] != KIND_COMPLEX or kind_of[code] == KIND_COMPLEX)


cdef object lengths_of(tuple shape):
    """Return a shape that was given as one tuple, or as several ints."""
    return shape[0] if len(shape) == 1 else shape


cdef object axes_of(tuple axes):
    """Return axes that were given as one tuple, or as several ints."""
    if len(axes) == 1 and not isinstance(axes[0], Integral):
        return tuple(axes[0])
    return axes


cdef BaseArray reverse_axes(BaseArray x):
    """Return a view with the axes in reverse order."""
    cdef BaseArray view = new_view(x, x.ndim)
    cdef int axis
    for axis in range(x.ndim):
        view.shape[axis] = x.shape[x.ndim - 1 - axis]
        view.strides[axis] = x.strides[x.ndim - 1 - axis]
    set_layout(view)
    return view


cdef BaseArray swap_last(BaseArray x):
    """Return a view with the last two axes exchanged."""
    cdef BaseArray view = new_view(x, x.ndim)
    cdef int last = x.ndim - 1
    memcpy(view.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    memcpy(view.strides, x.strides, x.ndim * sizeof(Py_ssize_t))
    view.shape[last], view.shape[last - 1] = x.shape[last - 1], x.shape[last]
    view.strides[last], view.strides[last - 1] = x.strides[last - 1], x.strides[last]
    set_layout(view)
    return view


cdef bint is_axis(BaseArray x, object axis) except -1:
    """Whether an argument is an axis of an array of the CPU's."""
    return type(axis) is int and -x.ndim <= axis < x.ndim and x.block.device == 0


cdef BaseArray swap_axes(BaseArray x, object axis, object other):
    """Return a view with two axes exchanged; negative ones count from the last."""
    require_live(x)
    return swapped(x, axis + x.ndim if axis < 0 else axis,
                   other + x.ndim if other < 0 else other)


cdef bint searches_plainly(BaseArray x, object values, object side) except -1:
    """Whether `searchsorted` takes few values of the same dtype, in a short vector."""
    cdef BaseArray found
    if x.ndim != 1 or x.block.device or kind_of[x.dtype] == KIND_COMPLEX \
            or x.size >= LARGE or type(side) is not str \
            or side != "left" and side != "right":
        return False
    if not is_array(values):
        return fits_weakly(values, x.dtype)
    found = values
    return found.dtype == x.dtype and found.block.device == 0 and found.size < LARGE


cdef object searched(BaseArray x, object values, bint right):
    """Return where values that `searches_plainly` knows belong in a sorted vector."""
    cdef BaseArray key
    if is_array(values) and (<BaseArray>values).ndim:
        # Also of a vector that is not sorted, the places are NumPy's.
        return places_in(x, <BaseArray>values, right)
    if is_array(values):
        key = values
    else:
        key = number_with(values, x.dtype)
    return as_number(
        places_in(x, key, right) if x.dtype == BOOL or not has_arithmetic(x.dtype)
        else search(x, key, right))


cdef BaseArray swapped(BaseArray x, int axis, int other):
    """Return a view with two axes exchanged."""
    cdef BaseArray view = same_view(x)
    view.shape[axis], view.shape[other] = x.shape[other], x.shape[axis]
    view.strides[axis], view.strides[other] = x.strides[other], x.strides[axis]
    set_layout(view)
    return view


cdef BaseArray flipped(BaseArray x, const bint *chosen):
    """Return a view with the order of the elements reversed along chosen axes."""
    cdef BaseArray view = same_view(x)
    cdef int axis
    for axis in range(view.ndim):
        if chosen[axis] and view.size:
            view.offset += (view.shape[axis] - 1) * view.strides[axis]
            view.strides[axis] = -view.strides[axis]
    set_layout(view)
    return view


cdef BaseArray slab(BaseArray x, int axis, Py_ssize_t start, Py_ssize_t stop):
    """Return a view of the elements from `start` to `stop` along an axis."""
    cdef BaseArray view = same_view(x)
    if stop > start:
        view.offset += start * x.strides[axis]
    view.shape[axis] = max(stop - start, 0)
    set_layout(view)
    return view


cdef BaseArray with_new_axes(BaseArray x, int before, int after):
    """Return a view with new axes of length 1 before and after the others."""
    cdef BaseArray view = new_view(x, before + x.ndim + after)
    cdef int axis
    for axis in range(view.ndim):
        if before <= axis < before + x.ndim:
            view.shape[axis] = x.shape[axis - before]
            view.strides[axis] = x.strides[axis - before]
        else:
            view.shape[axis] = 1
            view.strides[axis] = 0
    set_layout(view)
    return view


cdef tuple ones_of(BaseArray x):
    """Return the axes of length 1."""
    return tuple([axis for axis in range(x.ndim) if x.shape[axis] == 1])


cdef int change_in_place(BaseArray x) except -1:
    """Raise if the elements may not be changed."""
    require_usable(x)
    require_writeable(x)
    return 0


cdef bint is_array_class(object kind) except -1:
    """Whether an argument is NumPy's class of arrays, ours of that name, or derived."""
    return isinstance(kind, type) and kind is not object and (
        issubclass(kind, (np.ndarray, BaseArray)) or issubclass(np.ndarray, kind))


cdef object view_of_class(object view, object kind):
    """Return a view as a class of arrays: of a subclass of NumPy's, or ours."""
    if kind is not np.ndarray and issubclass(kind, np.ndarray):
        return np.asarray(view).view(kind)
    return view


cdef bytes pickle_of(BaseArray x):
    return pickle.dumps(x, protocol=pickle.HIGHEST_PROTOCOL)


cdef bint is_matrix(BaseArray x) noexcept:
    """Whether an array has two axes, and is the CPU's."""
    return x.ndim == 2 and x.block.device == 0


cdef BaseArray diagonal_view(BaseArray x, Py_ssize_t skipped):
    """Return a view of the diagonals of the last two axes; 0 is the main one."""
    cdef int i, last = x.ndim - 1
    cdef Py_ssize_t rows = x.shape[last - 1], columns = x.shape[last], length
    cdef BaseArray view = new_view(x, last)
    if skipped >= 0:
        length = min(rows, columns - skipped)
    else:
        length = min(rows + skipped, columns)
    for i in range(last - 1):
        view.shape[i] = x.shape[i]
        view.strides[i] = x.strides[i]
    view.shape[last - 1] = max(length, 0)
    view.strides[last - 1] = x.strides[last - 1] + x.strides[last]
    if length > 0:
        view.offset += (skipped * x.strides[last] if skipped >= 0
                        else -skipped * x.strides[last - 1])
    set_layout(view)
    return view


cdef BaseArray readonly_diagonal(BaseArray x):
    """Return the main diagonal of a matrix, as NumPy does: nobody can write to it."""
    cdef BaseArray view = diagonal_view(x, 0)
    view.readonly = True
    return view


cdef bint is_contiguous(BaseArray x) noexcept:
    """Whether the elements lie in C order without gaps, in the CPU's memory."""
    return x.c_contiguous and x.block.device == 0


# Arguments of a copy to memory that is no array's.
cdef struct Reading:
    char *out
    size_t nbytes


cdef void run_read(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Reading *reading = <const Reading *>arg
    memcpy(reading.out, data[0], reading.nbytes)


cdef bytes bytes_of(BaseArray x):
    """Return the bytes of a contiguous array."""
    cdef Py_ssize_t nbytes = x.size * itemsize_of[x.dtype]
    cdef Operands operands
    cdef Reading reading
    require_live(x)
    # Not seen by other code before it is filled.
    cdef bytes result = PyBytes_FromStringAndSize(NULL, nbytes)
    operands.count = 0
    put(&operands, x)
    reading.out = PyBytes_AS_STRING(result)
    reading.nbytes = nbytes
    compute_on(&operands, NULL, run_read, &reading, x.size >= LARGE)
    return result


cdef BaseArray flat_view(BaseArray x):
    """Return a view of a contiguous array with one axis."""
    cdef BaseArray view = new_view(x, 1)
    view.shape[0] = x.size
    view.strides[0] = itemsize_of[x.dtype]
    view.size = x.size
    view.c_contiguous = view.f_contiguous = True
    return view


cdef bint sorts_plainly(BaseArray x, object axis, object kind, object order,
                        object stable) noexcept:
    """Whether the arguments of `sort` need nothing of NumPy's own checks."""
    return (type(axis) is int and -x.ndim <= axis < x.ndim and kind is None
            and order is None and stable is None and x.block.device == 0
            and x.ndim <= MAX_ITERATED)


cdef BaseArray plain_cast(BaseArray x, object dtype, bint copy):
    """Return a cast to one of ndx's dtypes; None for what is left to NumPy."""
    cdef int code = find_code(dtype)
    if code < 0 or (
            kind_of[x.dtype] == KIND_COMPLEX and kind_of[code] != KIND_COMPLEX):
        return None
    require_usable(x)
    if code == x.dtype and not copy:
        return x
    return as_number(cast(x, code)) if holds_number(x) else cast(x, code)


cdef object plain_product(BaseArray x, object other):
    """Return `numpy.dot` of two arrays; NotImplemented for other operands."""
    cdef BaseArray found = dot(x, other) if is_array(other) else None
    return NotImplemented if found is None else found


cdef object plain_round(BaseArray x, object decimals):
    """Return real numbers rounded to a few decimals; NotImplemented for the rest."""
    cdef BaseArray result
    cdef int kind = kind_of[x.dtype]
    if x.block.device or type(decimals) is not int or not 0 <= decimals <= 8:
        return NotImplemented
    if kind in (KIND_INT, KIND_UINT):
        # NumPy before 2.3 returns the very operand.
        return unary(POSITIVE, x, None)
    if kind != KIND_FLOAT:
        return NotImplemented
    if decimals == 0:
        return unary(RINT, x, None)
    scale = 10.0 ** decimals
    result = binary(MULTIPLY, x, scale, None)
    if holds_number(result):
        return binary(DIVIDE, unary(RINT, result, None), scale, None)
    unary(RINT, result, result)
    return inplace(DIVIDE, result, scale)


cdef int reshaped(BaseArray x, object shape, Py_ssize_t *out) except -1:
    """Read a shape for `x`, with -1 resolved; return its number of axes."""
    cdef int ndim = parse_shape(shape, out), axis, unknown = -1
    cdef Py_ssize_t count
    for axis in range(ndim):
        if out[axis] == -1:
            if unknown >= 0:
                raise ValueError(f"shape {shape} has more than one -1")
            unknown = axis
            out[axis] = 1
    count = count_elements(ndim, out, 1)
    if unknown >= 0 and count > 0 and x.size % count == 0:
        out[unknown] = x.size // count
        count = x.size
    if count != x.size or (unknown >= 0 and count == 0 and out[unknown] == 1):
        raise ValueError(
            f"an array of shape {shape_tuple(x.ndim, x.shape)} has {x.size} elements, "
            f"which don't fit shape {shape}")
    return ndim


cdef BaseArray reshape_view(BaseArray x, int ndim, const Py_ssize_t *shape):
    """Return a view of `x` in a shape of equal size; None if that needs a copy."""
    cdef Py_ssize_t strides[MAXDIMS]
    cdef Strided layout
    cdef BaseArray view
    cdef int axis
    strided(x, &layout)
    if not reshape_strides(&layout, itemsize_of[x.dtype], ndim, shape, strides):
        return None
    view = new_view(x, ndim)
    for axis in range(ndim):
        view.shape[axis] = shape[axis]
        view.strides[axis] = strides[axis]
    set_layout(view)
    return view


cdef int replace_layout(BaseArray x, BaseArray other, str instead,
                        Py_ssize_t references=2) except -1:
    """Give an array the memory, dtype and layout of another one; or raise advice.

    Operations and buffers read the layout of an array while they hold a reference to
    it. So there may be none but those of the statement: of the name, of the
    interpreter, which calls this function, and of its callers.
    """
    if not ndx_interpreter_owns(<PyObject *>x):
        references -= 1
    cdef Py_ssize_t *dims = x.dims
    cdef Block *block
    if holds_number(x):
        raise AttributeError(
            f"a number has one layout, and can't be changed; use x = {instead}")
    # The collector and weak references give new references at any time.
    if Py_REFCNT(<PyObject *>x) > references or <PyObject *>x.base != NULL \
            or ndx_has_weakrefs(<PyObject *>x):
        raise AttributeError(
            "shape, strides, dtype and size of an NDArray can be changed only while it "
            "has a single reference, and its memory is not of another library: what "
            f"reads it now must not see another layout; use x = {instead}")
    # The elements leave the places that depend on the layout.
    block = own_block(other)
    own_block(x)
    if other.ndim > INLINE_DIMS:
        dims = <Py_ssize_t *>calloc(2 * other.ndim, sizeof(Py_ssize_t))
        if dims == NULL:
            raise MemoryError("no memory for the shape of an array")
    leave_living(<PyObject *>x)
    if x.shape != x.dims:
        free(x.shape)
    x.ndim = other.ndim
    x.shape = dims
    x.strides = dims + other.ndim
    memcpy(x.shape, other.shape, other.ndim * sizeof(Py_ssize_t))
    memcpy(x.strides, other.strides, other.ndim * sizeof(Py_ssize_t))
    x.dtype = other.dtype
    x.offset = other.offset
    x.size = other.size
    x.c_contiguous = other.c_contiguous
    x.f_contiguous = other.f_contiguous
    block_incref(block)
    block, x.block = x.block, block
    enter_living(<PyObject *>x)
    block_decref(block)
    return 0


cdef int set_shape(BaseArray x, object shape) except -1:
    """Change the shape of an array in place, as NumPy's arrays allow it."""
    cdef Py_ssize_t wanted[MAXDIMS]
    cdef BaseArray view
    cdef int ndim
    require_usable(x)
    ndim = reshaped(x, shape, wanted)
    view = reshape_view(x, ndim, wanted)
    if view is None:
        raise AttributeError(
            f"an array of shape {shape_tuple(x.ndim, x.shape)} with strides "
            f"{shape_tuple(x.ndim, x.strides)} has no view of shape "
            f"{shape_tuple(ndim, wanted)}, so that its shape can't be set; "
            f"x = x.reshape({shape!r}) copies")
    return replace_layout(x, view, f"x.reshape({shape!r})")


cdef int resize(BaseArray x, BaseArray zeros) except -1:
    """Resize an array in place: copy its elements to `zeros`, and take its memory."""
    cdef object target = flat_view(zeros)
    change_in_place(x)
    own_block(x)
    if not x.c_contiguous or x.offset or x.block.refs > 1 or <PyObject *>x.base != NULL:
        raise ValueError(
            "an array can be resized if its elements lie in C order, and it has its "
            "memory alone; this one is a view, has views, or is exported: use "
            "x = np.resize(x, shape)")
    count = min(x.size, zeros.size)
    target[:count] = flat_view(x)[:count]
    return replace_layout(x, zeros, "np.resize(x, shape)", 3)
