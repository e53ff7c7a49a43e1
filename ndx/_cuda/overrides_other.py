"""Other functions of the standard's on a GPU, where CuPy's alone won't do."""

from math import nan, prod

import numpy as np

from ndx import linalg
from ndx._api.data_types import result_type
from ndx._api.manipulation_broadcasting import broadcast_to
from ndx._compute.numpy_calls import axes_of
from ndx._cuda import creation, transfer
from ndx._cuda.calls import factored, standard
from ndx._cuda.overrides_indexing import setitem
from ndx._cuda.session import common_device

__all__ = [
    "DIVERGED",
    "SINGULAR",
    "eigen",
    "matrix_rank",
    "nothing_on_cpu",
    "shifted",
    "solve",
    "spread",
    "total",
    "triangle",
]


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
        if x.dtype.kind == "c":
            msg = f"{name} takes real dtypes, not complex ones"
            raise TypeError(msg)
        result = standard(name, x, axis=axis, correction=correction, keepdims=keepdims)
        axes = range(x.ndim) if axis is None else axes_of(axis)
        if not prod([x.shape[i] for i in axes]) > correction:
            setitem(result, ..., nan)
        return result

    return function


def total(name):
    """Return a sum or product, which is not cast from complex to real."""

    def function(x, /, *, dtype=None, **kwargs):
        if dtype is not None:
            transfer.check_cast(x.dtype, np.dtype(dtype))
        return standard(name, x, dtype=dtype, **kwargs)

    return function


def shifted(name):
    """Return `fftshift` or its inverse, also of an array without axes."""

    def function(x, /, *, axes=None):
        return standard(name, x, axes=axes) if x.ndim else transfer.cast(x, x.dtype)

    return function


# ---------------------------------------------------------------- linalg

SINGULAR = "a matrix is singular"
DIVERGED = "the computation did not converge"
_EigResult = type(np.linalg.eig(np.eye(1)))


def eigen(name):
    """Return a function whose results are complex, even where all are real."""
    compute = factored(name, DIVERGED)

    def function(x, /):
        dtype = result_type(x, 1j)
        found = compute(x)
        parts = [
            transfer.as_dtype(part, dtype)
            for part in (found if isinstance(found, tuple) else (found,))
        ]
        return _EigResult(*parts) if len(parts) == 2 else parts[0]

    return function


def solve(x1, x2, /):
    """Solve linear equations; CuPy broadcasts no stacks of them."""
    common_device("linalg.solve", x1, x2)
    if x1.ndim >= 2 and x2.ndim >= 2:
        stack = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        x1 = broadcast_to(x1, stack + x1.shape[-2:])
        x2 = broadcast_to(x2, stack + x2.shape[-2:])
    return factored("linalg.solve", SINGULAR)(x1, x2)


def matrix_rank(x, /, *, rtol=None):
    """Return the ranks of matrices; of what CuPy refuses, by the CPU."""
    if x.ndim >= 2 and x.size:
        return factored("linalg.matrix_rank", DIVERGED)(x, rtol=rtol)
    session = common_device("linalg.matrix_rank", x)
    found = creation.on_cpu(linalg.matrix_rank)(x.to_device("cpu"), rtol=rtol)
    return transfer.upload(session, found)


# ---------------------------------------------------------------- of no elements


def nothing_on_cpu(name, function):
    """Return a function that is computed on the CPU of an array without elements.

    CuPy, and NumPy in part, have no transforms of it, no extremes and no norms.
    """
    computed_on_host = creation.on_cpu(function)

    def computed(x, /, **kwargs):
        session = common_device(name, x)
        if x.size:
            return standard(name, x, **kwargs)
        return transfer.upload(session, computed_on_host(x.to_device("cpu"), **kwargs))

    return computed
