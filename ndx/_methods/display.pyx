"""Conversion of arrays to Python scalars and to text."""

from cpython.complex cimport PyComplex_FromDoubles
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

import numpy as np

from ndx._array.dispatch cimport answer, engine_of
from ndx._array.pinning cimport Operands, begin_all, begin_use, end_all, end_use, put
from ndx._array.storage cimport (
    BaseArray, block_nbytes, data_of, numpy_view, require_intact_file, require_usable,
)
from ndx._blocks.block cimport Clock, block_is_closed, block_is_lost, block_is_usable
from ndx._files.mapping cimport mapping_name
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX64, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64,
    KIND_COMPLEX, UINT8, UINT16, UINT32, UINT64, dtype_object, itemsize_of, kind_of,
)
from ndx._lib.layout cimport shape_tuple

from ndx._lib.device import CPU
from ndx._lib.sizes import format_size
from ndx._lib.text import preformatted

cdef extern from "ndx/internal/half.h":
    double double_of_half "ndx_double_of_half" (uint16_t half) noexcept

cdef object array2string = np.array2string


cdef object scalar_of(BaseArray x, str what):
    """Return the element of an array without axes; `what` names the conversion."""
    require_usable(x)
    if x.size != 1 and what == "bool":
        raise TypeError(
            f"an array of shape {shape_tuple(x.ndim, x.shape)} is neither true nor "
            "false: use ndx.any(x) or ndx.all(x); to combine arrays element by "
            "element, &, | and ~ in place of `and`, `or` and `not`")
    if x.ndim != 0 and what != "bool":
        raise TypeError(
            f"only an array without axes can be converted to {what}; the shape is "
            f"{shape_tuple(x.ndim, x.shape)}")
    if kind_of[x.dtype] == KIND_COMPLEX and what in ("int", "float"):
        raise TypeError(f"a complex array can't be converted to {what}; take real(x)")
    return read_scalar(x)


cdef BaseArray readable(BaseArray x):
    """Return the array, or a copy on the CPU if the array is on a device."""
    if not x.block.device:
        return x
    engine = engine_of(x.block.device)
    cdef BaseArray found = answer(engine, "to_device", engine.to_device(x, CPU))
    if found.block.device:
        raise TypeError(
            f"to_device: {type(engine).__name__} returned an array that is not on the "
            "CPU")
    return found


cdef object item_of(BaseArray x, tuple args):
    """Return an element as a Python scalar; without an index, the only one."""
    require_usable(x)
    if args:
        if x.ndim == 1 and len(args) == 1 and type(args[0]) is int \
                and 0 <= <object>args[0] < x.size and x.block.device == 0:
            return read_at(x, args[0])
        return numpy_view(readable(x)).item(*args)
    if x.size != 1:
        raise ValueError(
            "item() is for arrays of one element; the shape is "
            f"{shape_tuple(x.ndim, x.shape)}")
    return read_scalar(x)


cdef object read_at(BaseArray x, Py_ssize_t index):
    """Return an element of a vector of the CPU; the index is in range."""
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    begin_all(&operands)
    value = read_as(x.dtype, operands.data[0] + index * x.strides[0])
    end_all(&operands)
    return value


cdef list list_of(BaseArray x):
    """Return the elements of a short vector of the CPU."""
    cdef list found = PyList_New(x.size)
    cdef Operands operands
    cdef object value
    cdef Py_ssize_t i
    operands.count = 0
    put(&operands, x)
    begin_all(&operands)
    for i in range(x.size):
        # Numbers are made without running Python.
        value = read_as(x.dtype, operands.data[0] + i * x.strides[0])
        Py_INCREF(value)
        PyList_SET_ITEM(found, i, value)
    end_all(&operands)
    return found


cdef object read_scalar(BaseArray x):
    if x.block.device:
        x = readable(x)
    begin_use(x)
    value = read_as(x.dtype, data_of(x))
    end_use(x)
    return value


cdef object read_as(int dtype, const char *data):
    if dtype == FLOAT64:
        return (<double *>data)[0]
    if dtype == INT64:
        return (<int64_t *>data)[0]
    if dtype == BOOL:
        return (<uint8_t *>data)[0] != 0
    if dtype == FLOAT32:
        return (<float *>data)[0]
    if dtype == INT8:
        return (<int8_t *>data)[0]
    if dtype == INT16:
        return (<int16_t *>data)[0]
    if dtype == INT32:
        return (<int32_t *>data)[0]
    if dtype == UINT8:
        return (<uint8_t *>data)[0]
    if dtype == UINT16:
        return (<uint16_t *>data)[0]
    if dtype == UINT32:
        return (<uint32_t *>data)[0]
    if dtype == UINT64:
        return (<uint64_t *>data)[0]
    if dtype == FLOAT16:
        return double_of_half((<uint16_t *>data)[0])
    if dtype == COMPLEX64:
        return PyComplex_FromDoubles((<float *>data)[0], (<float *>data)[1])
    return PyComplex_FromDoubles((<double *>data)[0], (<double *>data)[1])


cdef object text_of(BaseArray x):
    """Return the repr of an array."""
    dead = text_of_dead(x)
    if dead is not None:
        return dead
    suffix = repr_suffix(x)
    if x.size == 0 and shape_tuple(x.ndim, x.shape) != (0,):
        return f"NDArray([], shape={shape_tuple(x.ndim, x.shape)}{suffix})"
    values = array2string(numpy_view(readable(x)), separator=", ", prefix="NDArray(")
    require_intact_file(x)
    return f"NDArray({values}{suffix})"


cdef object html_of(BaseArray x):
    """Return the display of an array in a notebook: its repr, and where it lies."""
    cdef size_t nbytes = x.size * itemsize_of[x.dtype]
    text = text_of(x)
    if not block_is_usable(x.block):
        return preformatted(text)
    place = []
    if x.block.clock != NULL:
        place.append(f"workspace {(<Clock>x.block.clock).name!r}")
    backend = (<object>x).backend
    place.append("memory of another library" if backend is None
                 else f"backend {backend.name!r}")
    if nbytes < block_nbytes(x):
        place.append(f"part of {format_size(block_nbytes(x))}")
    elif nbytes > block_nbytes(x):
        place.append(f"repeats {format_size(block_nbytes(x))}")
    words = (f"shape {shape_tuple(x.ndim, x.shape)}", str(dtype_object(x.dtype)),
             format_size(nbytes), *place)
    return preformatted(text + "\n" + " · ".join(words))


cdef object text_of_dead(BaseArray x):
    """Return the repr of a stale or closed array; None for a usable one."""
    if block_is_usable(x.block):
        return None
    what = f"NDArray shape={shape_tuple(x.ndim, x.shape)} dtype={dtype_object(x.dtype)}"
    if block_is_closed(x.block):
        return f"<closed {what}>"
    if block_is_lost(x.block):
        return f"<lost {what} file={mapping_name(x.block.ptr)!r}>"
    return (f"<stale {what} workspace={(<Clock>x.block.clock).name!r} "
            f"generation={x.block.generation}>")


cdef object repr_suffix(BaseArray x):
    """Return the dtype, workspace and backend for a repr, where not the default."""
    suffix = ""
    if x.dtype not in (BOOL, INT64, FLOAT64, COMPLEX128) or x.size == 0:
        suffix += f", dtype={dtype_object(x.dtype)}"
    if x.block.clock != NULL:
        suffix += f", workspace={(<Clock>x.block.clock).name!r}"
    else:
        backend = (<object>x).backend
        if backend is not None and backend.name != "host":
            suffix += f", backend={backend.name!r}"
    return suffix
