"""What the namespace computes on GPUs: each function by its name.

Most are those of ``array_api_compat.cupy`` as they are. Operations follow the CPU's
own tables of dtypes, so that promotion and errors are the same on every device.
"""

from math import nan, prod
from operator import attrgetter, index

import numpy as np

from ndx import _cupy, _statistical, fft, linalg
from ndx._core import NDArray
from ndx._cuda import captured, creation, transfer
from ndx._cuda.bridge import (
    check_writeable,
    device_index,
    elementwise_dtypes,
    inplace_fits,
)
from ndx._cuda.session import common_device
from ndx._data_types import result_type
from ndx._elementwise import UFUNCS
from ndx._engine import axes_of, axis_index

__all__ = ["compute"]

_found = {}


def compute(name, args, kwargs):
    """Compute a public function, or what an operator or a method does, on a GPU.

    Parameters
    ----------
    name : str
        In the namespace, ``"linalg.inv"``; or one of `_SPECIAL`.
    args, kwargs : tuple, dict
        As the user gave them.
    """
    special = _SPECIAL.get(name)
    if special is not None:
        return special(*args, **kwargs)
    if name in _ELEMENTWISE:
        return elementwise(name, args, **kwargs)
    return standard(name, *args, **kwargs)


def function_of(name):
    """Return the function of a name in CuPy's namespace of the standard."""
    for_graph = captured.function_of(name)
    if for_graph is not None:
        return for_graph
    library = _cupy.namespace()
    key = name, id(library)
    if key not in _found:
        _found[key] = attrgetter(name)(library)
    return _found[key]


def standard(name, /, *args, **kwargs):
    """Compute a function as ``array_api_compat.cupy`` does."""
    session = common_device(name, args, kwargs)
    args = [_plain(x) for x in args]
    kwargs = {key: _plain(x) for key, x in kwargs.items()}
    if args and isinstance(args[0], NDArray):
        for key in kwargs.keys() & {"axis", "axes"}:
            kwargs[key] = _axes(kwargs[key], args[0].ndim)
    return session.compute(function_of(name), *args, **kwargs)


def _axes(axes, ndim):
    """Return axes as CuPy takes them; raise ValueError if one is out of range."""
    if axes is None:
        return None
    found = axes_of(axes)
    for axis in found:
        axis_index(axis, ndim)
    return index(axes) if isinstance(axes, int) else found


def _plain(x):
    """Return sequences of ints as tuples, which CuPy wants for axes and shapes."""
    if isinstance(x, list) and all(isinstance(i, (int, np.integer)) for i in x):
        return tuple(index(i) for i in x)
    return index(x) if isinstance(x, np.integer) else x


# ---------------------------------------------------------------- operations

_ELEMENTWISE = frozenset([*UFUNCS, "rint"])
# CuPy has no loops of these for complex numbers.
_OF_TRUTH = frozenset(["logical_and", "logical_not", "logical_or", "logical_xor"])


def elementwise(name, operands, *, out=None):
    """Compute an operation in the dtypes in which the CPU does."""
    session = common_device(name, operands, (out,))
    inner, outer = elementwise_dtypes(name, operands)
    function = function_of(name)
    with session.at_work():
        given = [_operand(session, x, inner) for x in operands]
        if name in _OF_TRUTH and inner.kind == "c":
            given = [x != 0 for x in given]
        if out is None:
            result = function(*given)
            if result.dtype != outer:
                result = result.astype(outer)
            return session.wrap(result)
        check_writeable(out)
        if out.dtype != outer:
            msg = (
                f"out has dtype {out.dtype}, but the result of {name} has dtype {outer}"
            )
            raise TypeError(msg)
        result = function(*given)
        _store(name, session, result, out)
    return out


def _operand(session, x, dtype):
    """Return an operand as CuPy takes it, in the dtype of the operation."""
    if device_index(x) is None:
        return dtype.type(x)
    array = session.unwrap(x)
    return array if array.dtype == dtype else array.astype(dtype)


def _store(name, session, result, out):
    """Write a result into an array of ours of the same shape."""
    if tuple(result.shape) != out.shape:
        msg = (
            f"{name}: the output has shape {out.shape}, but the operands broadcast to "
            f"{tuple(result.shape)}"
        )
        raise ValueError(msg)
    session.unwrap(out)[...] = result


def inplace(name, x, other):
    """Compute ``x = x op other`` in the memory of `x`."""
    check_writeable(x)
    session = common_device(name, x, other)
    inner, outer = elementwise_dtypes(name, (x, other))
    if outer != x.dtype and not inplace_fits(outer, x.dtype):
        kind = getattr(other, "dtype", type(other).__name__)
        msg = (
            f"{name} of {x.dtype} and {kind} is {outer}, which can't be stored in "
            f"place in {x.dtype}; use x = x op y, or ndx.astype"
        )
        raise TypeError(msg)
    with session.at_work():
        given = [_operand(session, item, inner) for item in (x, other)]
        _store(name, session, function_of(name)(*given), x)
    return x


def round_(x, /, *, out=None):
    """Round to the nearest integer, to the even one of two."""
    return elementwise("positive" if x.dtype.kind in "iu" else "rint", (x,), out=out)


def matmul(x1, x2, /, *, out=None):
    """Multiply matrices, in the promoted dtype."""
    session = common_device("matmul", x1, x2, (out,))
    dtype, _ = elementwise_dtypes("matmul", (x1, x2))
    for x in (x1, x2):
        if x.ndim == 0:
            msg = (
                f"matmul: operands of shapes {x1.shape} and {x2.shape}: each needs one "
                "axis or more; use multiply for scalars"
            )
            raise ValueError(msg)
    with session.at_work():
        given = [_operand(session, x, dtype) for x in (x1, x2)]
        result = function_of("matmul")(*given)
        if out is None:
            return session.wrap(result)
        check_writeable(out)
        if out.dtype != dtype:
            msg = (
                f"out has dtype {out.dtype}, but the result of matmul has dtype {dtype}"
            )
            raise TypeError(msg)
        _store("matmul", session, result, out)
    return out


def where(condition, x1, x2, /):
    """Select from two arrays or Python scalars, in the promoted dtype."""
    session = common_device("where", condition, x1, x2)
    dtype = result_type(x1, x2)
    with session.at_work():
        chosen = session.unwrap(condition).astype(bool)
        given = [_operand(session, x, dtype) for x in (x1, x2)]
        return session.wrap(function_of("where")(chosen, *given).astype(dtype))


# ---------------------------------------------------------------- elements


def getitem(x, key):
    """Return ``x[key]`` for a key that selects no view."""
    session = common_device("x[key]", x, key)
    with session.at_work():
        return session.wrap(session.unwrap(x)[_key(session, key)])


def setitem(x, key, value):
    """Write ``x[key] = value``, whose kind fits."""
    session = common_device("x[key] = value", x, key, value)
    with session.at_work():
        target = session.unwrap(x)
        target[_key(session, key)] = _operand(session, value, x.dtype)


def _key(session, key):
    """Return a key as CuPy takes it: with lists as arrays."""
    if isinstance(key, tuple):
        return tuple([_key(session, item) for item in key])
    if isinstance(key, (bool, np.bool, list)):
        found = np.asarray(key)
        if not found.size and isinstance(key, list):
            found = found.astype(np.int64)
        if found.dtype.kind not in "biu":
            msg = (
                f"an array can't be indexed by {found.dtype}; valid are integers, "
                "slices, '...', None, and arrays of integers or booleans"
            )
            raise IndexError(msg)
        return session.unwrap(transfer.upload(session, found))
    return session.unwrap(key)


def take(x, indices, /, *, axis=None):
    """Take elements along an axis; that of an array with one may be left out."""
    if axis is None and x.ndim > 1:
        msg = f"take: the array has {x.ndim} axes: say along which by axis="
        raise ValueError(msg)
    return standard("take", x, indices, axis=0 if axis is None else axis)


def repeat(x, repeats, /, *, axis=None):
    """Repeat elements; CuPy wants to know on the CPU how often."""
    if device_index(repeats) is not None:
        common_device("repeat", x, repeats)
        repeats = repeats.tolist()
    if np.any(np.less(repeats, 0)):
        # Also of nothing, where CuPy does not look.
        msg = f"repeats={repeats} has a negative number; each is 0 or more"
        raise ValueError(msg)
    return standard("repeat", x, repeats, axis=axis)


# ---------------------------------------------------------------- chapters


def triangle(name):
    """Return `tril` or `triu`."""

    def function(x, /, *, k=0):
        if x.ndim < 2:
            msg = f"{name} is for arrays of 2 axes or more, this one has {x.ndim}"
            raise ValueError(msg)
        return standard(name, x, k=k)

    return function


def spread(name):
    """Return `var` or `std`: NaN where there are too few elements."""

    def function(x, /, *, axis=None, correction=0.0, keepdims=False):
        result = standard(name, x, axis=axis, correction=correction, keepdims=keepdims)
        axes = range(x.ndim) if axis is None else axes_of(axis)
        if not prod([x.shape[i] for i in axes]) > correction:
            setitem(result, ..., nan)
        return result

    return function


def outer(x1, x2, /):
    """Multiply each element of a vector with each of another."""
    common_device("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        msg = f"outer takes two vectors, not arrays of {x1.ndim} and {x2.ndim} axes"
        raise ValueError(msg)
    return x1[:, None] * x2


def eigen(name):
    """Return a function whose results are complex, even where all are real."""

    def function(x, /):
        session = common_device(name, x)
        dtype = result_type(x, 1j)
        with session.at_work():
            found = function_of(name)(session.unwrap(x))
            if isinstance(found, tuple):
                found = type(found)(*[part.astype(dtype) for part in found])
            else:
                found = found.astype(dtype)
            return session.wrap(found)

    return function


def matrix_rank(x, /, *, rtol=None):
    """Return the ranks of matrices; of a vector, which CuPy refuses, by the CPU."""
    session = common_device("linalg.matrix_rank", x)
    if x.ndim >= 2:
        return standard("linalg.matrix_rank", x, rtol=rtol)
    found = creation.on_cpu(linalg.matrix_rank)(x.to_device("cpu"), rtol=rtol)
    return transfer.upload(session, found)


def nothing_on_cpu(name, function):
    """Return a function that is computed on the CPU of an array without elements.

    CuPy, and NumPy in part, have no transforms of it, and no extremes.
    """
    computed_on_host = creation.on_cpu(function)

    def computed(x, /, **kwargs):
        session = common_device(name, x)
        if x.size:
            return standard(name, x, **kwargs)
        return transfer.upload(session, computed_on_host(x.to_device("cpu"), **kwargs))

    return computed


# ---------------------------------------------------------------- dtypes


def astype(x, dtype, /, *, copy=True, device=None):
    """Return the elements in another dtype, on the same device or another."""
    dtype = result_type(dtype)
    if device_index(x) is None:
        # On the CPU, and wanted on a GPU.
        host = x if x.dtype == dtype else creation.host("astype", x, dtype)
        return host.to_device(device)
    result = transfer.cast_checked(x, dtype) if copy or x.dtype != dtype else x
    return result if device is None else result.to_device(device)


_SPECIAL = {
    "astype": astype,
    "getitem": getitem,
    "linalg.eig": eigen("linalg.eig"),
    "linalg.eigvals": eigen("linalg.eigvals"),
    "linalg.matrix_rank": matrix_rank,
    "linalg.outer": outer,
    "std": spread("std"),
    "tril": triangle("tril"),
    "triu": triangle("triu"),
    **{
        f"fft.{name}": nothing_on_cpu(f"fft.{name}", getattr(fft, name))
        for name in fft.__all__
        if not name.endswith("freq")
    },
    "inplace": inplace,
    "linalg.matmul": matmul,
    "matmul": matmul,
    "max": nothing_on_cpu("max", _statistical.max),
    "min": nothing_on_cpu("min", _statistical.min),
    "repeat": repeat,
    "round": round_,
    "setitem": setitem,
    "take": take,
    "var": spread("var"),
    "where": where,
    **creation.FUNCTIONS,
    **transfer.FUNCTIONS,
}
