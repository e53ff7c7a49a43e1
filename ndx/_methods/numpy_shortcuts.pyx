"""NumPy's functions that kernels of ndx compute, without NumPy's allocator.

The table has a shortcut for each of these functions. A shortcut returns NotImplemented
for arguments that it does not know, and for wrong ones: NumPy then computes, or raises
its error.
"""

import sys
from functools import partial

import numpy as np

from ndx._array.storage cimport (
    BaseArray, as_number, is_array, new_empty, require_live,
)
from ndx._compute.copies cimport LARGE, copy
from ndx._compute.dots cimport dot, flat_norm, flattened, outer
from ndx._compute.fourier cimport along_axes, along_axis
from ndx._compute.joining cimport join, same_lengths
from ndx._compute.lapack cimport decompose
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.masks cimport count_into
from ndx._compute.norms cimport euclidean
from ndx._compute.roll_tile cimport rolled, tiled
from ndx._lib.dtypes cimport INT64, KIND_COMPLEX, kind_of
from ndx._lib.layout cimport MAXDIMS

cdef Ufunc MULTIPLY = find_ufunc("multiply")


cdef object shortcut(object function, tuple args, dict kwargs):
    """Return the result of a function's shortcut; NotImplemented if there is none."""
    known = SHORTCUTS.get(function)
    if known is None and not has_transforms and "numpy.fft" in sys.modules:
        add_transforms()
        known = SHORTCUTS.get(function)
    return NotImplemented if known is None else known(args, kwargs)


cdef object found_or_not(object found):
    return NotImplemented if found is None else found


cdef object reduced(object found):
    """Return a result that is a number if it has no axes; None is NotImplemented."""
    return NotImplemented if found is None else as_number(found)


# ---------------------------------------------------------------- joining

cdef list plain_arrays(object arrays):
    """Return a sequence of arrays as a list; None for one of anything else.

    NumPy's result has the order of the axes of its arguments, ndx's is in C order.
    """
    cdef BaseArray array
    if type(arrays) is not list and type(arrays) is not tuple:
        return None
    for item in arrays:
        if not is_array(item):
            return None
        array = item
        if array.block.device or array.ndim != 1 and not array.c_contiguous:
            return None
    return list(arrays) if arrays else None


cdef object axis_of(tuple args, dict kwargs):
    """Return the `axis` of a call with no other parameters, by default 0; or None."""
    if kwargs and (len(kwargs) > 1 or "axis" not in kwargs) or len(args) + len(kwargs) \
            > 2:
        return None
    axis = kwargs["axis"] if kwargs else args[1] if len(args) == 2 else 0
    return axis if type(axis) is int else None


cdef object joined(list arrays, object axis):
    """Join arrays along an axis; NotImplemented if their shapes don't match."""
    cdef BaseArray first = arrays[0]
    if axis < 0:
        axis += first.ndim
    if not 0 <= axis < first.ndim:
        return NotImplemented
    for item in arrays:
        if not same_lengths(first, <BaseArray>item, axis):
            return NotImplemented
    return join(arrays, axis, False)


cdef object stacked(list arrays, object axis):
    """Join arrays along a new axis; NotImplemented if their shapes don't match."""
    cdef BaseArray first = arrays[0]
    if axis < 0:
        axis += first.ndim + 1
    if not 0 <= axis <= first.ndim or first.ndim == MAXDIMS:
        return NotImplemented
    for item in arrays:
        if not same_lengths(first, <BaseArray>item, -1):
            return NotImplemented
    return join(arrays, axis, True)


def _concatenate(args, kwargs):
    axis = axis_of(args, kwargs)
    arrays = plain_arrays(args[0]) if axis is not None and args else None
    return NotImplemented if arrays is None else joined(arrays, axis)


def _stack(args, kwargs):
    axis = axis_of(args, kwargs)
    arrays = plain_arrays(args[0]) if axis is not None and args else None
    return NotImplemented if arrays is None else stacked(arrays, axis)


def _hstack(args, kwargs):
    arrays = plain_arrays(args[0]) if len(args) == 1 and not kwargs else None
    if arrays is None:
        return NotImplemented
    return joined(arrays, 0 if (<BaseArray>arrays[0]).ndim == 1 else 1)


def _vstack(args, kwargs):
    arrays = plain_arrays(args[0]) if len(args) == 1 and not kwargs else None
    if arrays is None:
        return NotImplemented
    if (<BaseArray>arrays[0]).ndim == 1:
        return stacked(arrays, 0)
    return joined(arrays, 0)


# ---------------------------------------------------------------- products

cdef bint are_two_arrays(tuple args, dict kwargs) except -1:
    return len(args) == 2 and not kwargs and is_array(args[0]) and is_array(args[1])


def _dot(args, kwargs):
    if not are_two_arrays(args, kwargs):
        return NotImplemented
    return reduced(dot(args[0], args[1]))


def _outer(args, kwargs):
    cdef BaseArray x, y
    if not are_two_arrays(args, kwargs):
        return NotImplemented
    x, y = args
    if x.block.device or y.block.device \
            or x.ndim != 1 and not x.c_contiguous or y.ndim != 1 and not y.c_contiguous:
        return NotImplemented
    return outer(MULTIPLY, x if x.ndim == 1 else flattened(x),
                 y if y.ndim == 1 else flattened(y))


def _norm(args, kwargs):
    if len(args) != 1 or not is_array(args[0]):
        return NotImplemented
    if not kwargs:
        return reduced(flat_norm(args[0]))
    if len(kwargs) > 1 or type(kwargs.get("axis")) is not int \
            or not -(<BaseArray>args[0]).ndim <= kwargs["axis"] < \
            (<BaseArray>args[0]).ndim:
        return NotImplemented
    return reduced(euclidean(args[0], kwargs["axis"], False))


# ---------------------------------------------------------------- linear algebra

def _decomposition(name, most, keywords, args, kwargs):
    if len(args) != most or kwargs and not keywords.issuperset(kwargs):
        return NotImplemented
    for item in args:
        if not is_array(item):
            return NotImplemented
    found = decompose(name, args, kwargs)
    if isinstance(found, tuple):
        return type(found)(*[as_number(each) for each in found])
    return reduced(found)


def _inner(args, kwargs):
    if not are_two_arrays(args, kwargs) or (<BaseArray>args[0]).ndim != 1 \
            or (<BaseArray>args[1]).ndim != 1:
        return NotImplemented
    return reduced(dot(args[0], args[1]))


def _vdot(args, kwargs):
    cdef BaseArray x
    if not are_two_arrays(args, kwargs):
        return NotImplemented
    x = args[0]
    return NotImplemented if kind_of[x.dtype] == KIND_COMPLEX else _inner(args, kwargs)


def _vector_norm(args, kwargs):
    if len(args) != 1 or kwargs or not is_array(args[0]):
        return NotImplemented
    return reduced(euclidean(args[0], None, False))


def _matrix_norm(args, kwargs):
    cdef BaseArray x
    if len(args) != 1 or kwargs or not is_array(args[0]):
        return NotImplemented
    x = args[0]
    if x.ndim < 2:
        return NotImplemented
    return reduced(euclidean(x, (x.ndim - 2, x.ndim - 1), False))


# ---------------------------------------------------------------- one array

cdef BaseArray only_array(tuple args, dict kwargs):
    """Return the one argument if it is an array of the CPU; else None."""
    if len(args) != 1 or kwargs or not is_array(args[0]) \
            or (<BaseArray>args[0]).block.device:
        return None
    require_live(<BaseArray>args[0])
    return args[0]


def _same(args, kwargs):
    return found_or_not(only_array(args, kwargs))


def _same_with_axes(args, kwargs):
    cdef BaseArray x = only_array(args, kwargs)
    return NotImplemented if x is None or x.ndim == 0 else x


def _same_in_c_order(args, kwargs):
    cdef BaseArray x = only_array(args, kwargs)
    return NotImplemented if x is None or x.ndim == 0 or not x.c_contiguous else x


def _copy(args, kwargs):
    cdef BaseArray x = only_array(args, kwargs)
    return NotImplemented if x is None else copy(x)


def _attribute(name, args, kwargs):
    x = only_array(args, kwargs)
    return NotImplemented if x is None else getattr(x, name)


def _is_complex(args, kwargs):
    cdef BaseArray x = only_array(args, kwargs)
    return NotImplemented if x is None else kind_of[x.dtype] == KIND_COMPLEX


def _count_nonzero(args, kwargs):
    cdef BaseArray x = only_array(args, kwargs), count
    if x is None or x.size >= LARGE:
        return NotImplemented
    count = new_empty(INT64, 0, x.shape)
    count_into(count, x)
    return as_number(count)


def _flatnonzero(args, kwargs):
    cdef object x = only_array(args, kwargs)
    return NotImplemented if x is None else x.reshape(-1).nonzero()[0]


def _sort(args, kwargs):
    cdef object x = only_array(args, kwargs)
    if x is None or x.ndim == 0:
        return NotImplemented
    x = copy(x)
    x.sort()
    return x


def _roll(args, kwargs):
    if not 2 <= len(args) <= 3 or kwargs or not is_array(args[0]):
        return NotImplemented
    return found_or_not(rolled(args[0], args[1], args[2] if len(args) == 3 else None))


def _squeeze(args, kwargs):
    cdef object x = only_array(args, kwargs)
    return NotImplemented if x is None else x.squeeze()


def _tile(args, kwargs):
    if len(args) != 2 or kwargs or not is_array(args[0]):
        return NotImplemented
    counts = args[1]
    return found_or_not(tiled(args[0], (counts,) if type(counts) is int else counts))


SHORTCUTS = {
    np.array: _copy,
    np.asarray: _same,
    np.ascontiguousarray: _same_in_c_order,
    np.atleast_1d: _same_with_axes,
    np.concatenate: _concatenate,
    np.copy: _copy,
    np.count_nonzero: _count_nonzero,
    np.dot: _dot,
    np.flatnonzero: _flatnonzero,
    np.hstack: _hstack,
    np.imag: partial(_attribute, "imag"),
    np.inner: _inner,
    np.iscomplexobj: _is_complex,
    np.linalg.matrix_norm: _matrix_norm,
    np.linalg.norm: _norm,
    np.linalg.vector_norm: _vector_norm,
    np.ndim: partial(_attribute, "ndim"),
    np.outer: _outer,
    np.real: partial(_attribute, "real"),
    np.roll: _roll,
    np.shape: partial(_attribute, "shape"),
    np.size: partial(_attribute, "size"),
    np.sort: _sort,
    np.squeeze: _squeeze,
    np.stack: _stack,
    np.tile: _tile,
    np.vdot: _vdot,
    np.vstack: _vstack,
}

for _name in ("cholesky", "det", "eigh", "eigvalsh", "inv", "qr", "slogdet", "solve",
              "svd", "svdvals"):
    SHORTCUTS[getattr(np.linalg, _name)] = partial(
        _decomposition, _name, 2 if _name == "solve" else 1,
        frozenset({"svd": ["full_matrices"], "cholesky": ["upper"]}.get(_name, ())))


# ---------------------------------------------------------------- transforms

# NumPy loads the module of the transforms at its first use.
cdef bint has_transforms = False


cdef int add_transforms() except -1:
    global has_transforms
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        SHORTCUTS[getattr(np.fft, name)] = partial(_transform, name)
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        SHORTCUTS[getattr(np.fft, name)] = partial(_transform_axes, name)
    has_transforms = True
    return 0


def _arguments(a, n=None, axis=-1, norm=None):
    return a, n, axis, norm


def _arguments_of_axes(a, s=None, axes=None, norm=None):
    return a, s, axes, norm


def _transform(name, args, kwargs):
    try:
        a, n, axis, norm = _arguments(*args, **kwargs)
    except TypeError:
        return NotImplemented
    if not is_array(a):
        return NotImplemented
    return found_or_not(along_axis(name, a, n, axis, norm_of(norm)))


def _transform_axes(name, args, kwargs):
    try:
        a, s, axes, norm = _arguments_of_axes(*args, **kwargs)
    except TypeError:
        return NotImplemented
    if not is_array(a) or not is_plain(s) or not is_plain(axes):
        return NotImplemented
    return found_or_not(along_axes(name, a, s, axes, norm_of(norm)))


cdef object norm_of(object norm):
    return "backward" if norm is None else norm


cdef bint is_plain(object lengths) noexcept:
    return lengths is None or type(lengths) is tuple or type(lengths) is list
