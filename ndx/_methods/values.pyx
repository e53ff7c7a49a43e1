"""Values that are assigned to elements: as arrays, cast and broadcast as NumPy does."""

import numpy as np

from ndx._array.storage cimport BaseArray
from ndx._compute.copies cimport copy_into
from ndx._lib.dtypes cimport (
    KIND_BOOL, KIND_COMPLEX, KIND_FLOAT, code_or_none, dtype_object, kind_of,
)
from ndx._lib.layout cimport shape_tuple


cdef object refused_value(str what, int dtype):
    return TypeError(
        f"{what} can't be stored in an array of dtype {dtype_object(dtype)}: the "
        "imaginary part would be lost; take ndx.real(x) or ndx.abs(x)")


cdef object converted(object scalar, int dtype):
    """Return a Python scalar of the kind of a dtype: floats are cut to integers."""
    if isinstance(scalar, complex):
        raise refused_value("a Python complex", dtype)
    return bool(scalar) if kind_of[dtype] == KIND_BOOL else int(scalar)


cdef object array_for(BaseArray x, object value):
    """Return what is no array of ndx's dtypes as one of NumPy's that is.

    Nested lists are cast to the dtype of `x`, as are strings of numbers, arrays of
    objects, and floats of NumPy's that ndx lacks. Dates and a single None stay as they
    are, and are refused by the caller; NumPy would store days and NaN.
    """
    found = np.asarray(value)
    kind = found.dtype.kind
    if kind == "O" and kind_of[x.dtype] != KIND_COMPLEX:
        for each in found.flat:
            if isinstance(each, (complex, np.complexfloating)):
                raise refused_value("a complex object", x.dtype)
    if kind in "SUf" and code_or_none(found.dtype) < 0 or \
            kind == "O" and isinstance(value, np.ndarray):
        return found.astype(dtype_object(x.dtype))
    if type(value) is not list and type(value) is not tuple or kind == "c" or \
            kind != "O" and kind_of[x.dtype] >= KIND_FLOAT:
        return found
    return np.asarray(value, dtype=dtype_object(x.dtype))


cdef int copy_broadcast(BaseArray target, BaseArray source) except -1:
    """Copy with broadcasting; the shapes are checked here, for a message with both."""
    cdef int axis, shift = target.ndim - source.ndim
    cdef Py_ssize_t length
    for axis in range(source.ndim):
        length = source.shape[axis]
        # Leading axes of length 1 that the target lacks are dropped.
        if length != 1 and (axis + shift < 0 or length != target.shape[axis + shift]):
            raise ValueError(
                f"values of shape {shape_tuple(source.ndim, source.shape)} can't be "
                f"broadcast to the selection's shape "
                f"{shape_tuple(target.ndim, target.shape)}")
    copy_into(target, source)
    return 0
