"""Arrays joined along an axis: `concat` and `stack`."""

from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, new_empty, new_view, set_layout
from ndx._compute.copies cimport LARGE, cast, copy_into
from ndx._lib.dtypes cimport itemsize_of, promote_all
from ndx._lib.layout cimport MAXDIMS, Walk

from ndx._compute.numpy_calls import on_device

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
