"""Arguments of NumPy's methods, and when a function of ndx does the same."""

import os
import pickle

import numpy as np

from ndx._array.storage cimport (
    BaseArray, is_array, new_view, require_usable, require_writeable, set_layout,
)
from ndx._lib.dtypes cimport (
    KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_UINT, UINT64, code_or_none, kind_of,
)


cdef bint as_index(object axis) except -1:
    """Whether an axis is None or an int: not what NumPy refuses in its own words."""
    return axis is None or isinstance(axis, int)


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


cdef bint is_complex(BaseArray x) noexcept:
    return kind_of[x.dtype] == KIND_COMPLEX


cdef bint is_inexact(BaseArray x) noexcept:
    return kind_of[x.dtype] >= KIND_FLOAT


cdef bint is_real_floating(BaseArray x) noexcept:
    return kind_of[x.dtype] == KIND_FLOAT


cdef bint stays_plain(BaseArray x, object dtype) except -1:
    """Whether a cast is one of ndx's: to one of its dtypes, and not complex to real."""
    cdef int code
    try:
        code = code_or_none(np.dtype(dtype))
    except TypeError:
        return False
    return code >= 0 and (kind_of[x.dtype] != KIND_COMPLEX
                          or kind_of[code] == KIND_COMPLEX)


cdef object lengths_of(tuple shape):
    """Return a shape that was given as one tuple, or as several ints."""
    return shape[0] if len(shape) == 1 else shape


cdef object axes_of(tuple axes):
    """Return axes that were given as one tuple, or as several ints."""
    return tuple(axes[0]) if len(axes) == 1 and not isinstance(axes[0], int) else axes


cdef BaseArray reverse_axes(BaseArray x):
    """Return a view with the axes in reverse order."""
    cdef BaseArray view = new_view(x, x.ndim)
    cdef int axis
    for axis in range(x.ndim):
        view.shape[axis] = x.shape[x.ndim - 1 - axis]
        view.strides[axis] = x.strides[x.ndim - 1 - axis]
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


cdef object refused_type(object kind):
    return TypeError(
        f"a view of an NDArray is an NDArray, not {kind!r}; np.asarray(x).view(...) is "
        "NumPy's, over the same memory")


cdef bytes pickle_of(BaseArray x):
    return pickle.dumps(x, protocol=pickle.HIGHEST_PROTOCOL)


cdef int write_file(object file, bytes data) except -1:
    """Write to an open file, or to a path."""
    if hasattr(file, "write"):
        file.write(data)
        return 0
    with open(os.fspath(file), "wb") as opened:
        opened.write(data)
    return 0
