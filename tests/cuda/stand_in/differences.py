"""Functions of CuPy that do otherwise than NumPy's of the same name.

Each computes on NumPy's arrays what CuPy's would, as its source says; what would go
unnoticed there (memory that overlaps, comparisons of two dtypes) is an AssertionError.
"""

import contextlib
import threading
from types import SimpleNamespace

import numpy as np

COMPLEX = (np.complex64, np.complex128)
_state = threading.local()


def _is_complex(x):
    return getattr(x, "dtype", None) in COMPLEX


# ---------------------------------------------------------------- operations


def floor_divide(x, y):
    if np.result_type(x, y).kind != "f":
        return np.floor_divide(x, y)
    return np.floor(np.divide(x, y))


def remainder(x, y):
    if np.result_type(x, y).kind != "f":
        return np.remainder(x, y)
    return x - np.floor(np.divide(x, y)) * y


def expm1(x):
    return np.exp(x) - np.ones((), x.dtype) if _is_complex(x) else np.expm1(x)


def tanh(x):
    if not _is_complex(x):
        return np.tanh(x)
    found = np.tanh(np.atleast_1d(x))
    # As of C99 before its revision.
    found.real[(np.atleast_1d(x).real == 0) & ~np.isfinite(np.atleast_1d(x).imag)] = (
        np.nan)  # fmt: skip
    return found.reshape(x.shape)


def conj(x):
    return x.astype(np.int8) if x.dtype == bool else np.conj(x)


def power(x, y):
    # Of integers there is no error.
    if np.result_type(x, y).kind in "iu" and np.any(np.less(y, 0)):
        y = np.maximum(y, 0)
    return np.power(x, y)


def _of_truth(name):
    def function(*args):
        for x in args:
            if _is_complex(x):
                raise TypeError(f"Wrong type ({x.dtype}) of arguments for cupy_{name}")
        return getattr(np, name)(*args)

    return function


def _of_floats(name):
    """Return a comparison, for which CuPy has no loops of two dtypes."""

    def function(x, y):
        if np.result_type(x, y) == np.float64:
            x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        return getattr(np, name)(x, y)

    return function


# ---------------------------------------------------------------- searching


def _comparing(function):
    """Compare elements as C++ does, which is wrong for two dtypes."""

    def compared(a, b, *args, **kwargs):
        for x in (a, b):
            if not isinstance(x, np.ndarray):
                x.ravel()  # AttributeError
        assert a.dtype == b.dtype, (a.dtype, b.dtype)
        return function(a, b, *args, **kwargs)

    return compared


def searchsorted(a, v, side="left", sorter=None):
    return np.searchsorted(a, v, "right" if side == "right" else "left", sorter)


def argsort(x, *args, **kwargs):
    return np.argsort(np.atleast_1d(x), *args, **kwargs)


def take(x, indices, axis=None, **kwargs):
    if indices.dtype.kind == "f":
        raise RuntimeError("CompileException")
    length = x.size if axis is None else x.shape[axis]
    if not length:
        return np.take(x, indices, axis, **kwargs)
    return np.take(x, indices.astype(np.int64) % length, axis, **kwargs)


def repeat(x, repeats, axis=None):
    return np.repeat(x, np.asarray(repeats).astype(np.int64), axis)


def roll(x, shift, axis=None):
    if x.ndim == 0 and axis is not None:
        raise ValueError("not enough values to unpack (expected 2, got 0)")
    return np.roll(x, shift, axis)


def complex_sum(name):
    def function(x, axis=None, dtype=None, **kwargs):
        if _is_complex(x) and dtype is not None and np.dtype(dtype).kind != "c":
            x = x.real
        return getattr(np, name)(x, axis, dtype, **kwargs)

    return function


# ---------------------------------------------------------------- linalg


@contextlib.contextmanager
def errstate(*, linalg):
    """Let factorisations say what went wrong, for which they wait: ``cupyx``'s."""
    before = is_checked()
    _state.linalg = linalg
    try:
        yield
    finally:
        _state.linalg = "raise" if before else "ignore"


def is_checked():
    return getattr(_state, "linalg", "ignore") == "raise"


cupyx = SimpleNamespace(errstate=errstate)


def _factored(name, routine):
    """Return NaN where there is no result, or raise, as one wants it."""

    def function(x, *args, **kwargs):
        try:
            return getattr(np.linalg, name)(x, *args, **kwargs)
        except np.linalg.LinAlgError as error:
            if not any(word in str(error) for word in ("ingular", "definite")):
                raise
            if is_checked():
                raise np.linalg.LinAlgError(
                    f"Error reported by {routine} in cuSOLVER. devInfo = [1]. Please "
                    "refer to the cuSOLVER documentation.") from None  # fmt: skip
            return np.full_like(args[0] if name == "solve" else x, np.nan)

    return function


def eig(x):
    return tuple(np.linalg.eig(x))


def solve(a, b):
    if b.ndim != 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError(
            "a must have (..., M, M) shape and b must have (..., M, K) "
            "for multidimensional b")  # fmt: skip
    return _factored("solve", "gesv")(a, b)


def norm(x, ord=None, axis=None, keepdims=False):
    if ord in (np.inf, 1) and not x.size:
        raise ValueError("zero-size array to reduction operation cupy_max")
    return np.linalg.norm(x, ord, axis, keepdims)


# ---------------------------------------------------------------- fft


def _transform(name):
    def function(x, n=None, axis=-1, norm=None):
        for length in n if isinstance(n, tuple) else (n,):
            assert length is None or length > 0, f"CuPy would cut to {n}"
        if name in ("rfft", "rfftn", "ihfft"):
            x = x.real
        return getattr(np.fft, name)(x, n, axis, norm)

    return function


def _transform_of_axes(name):
    def function(x, s=None, axes=None, norm=None):
        return _transform(name)(x, s, axes, norm)

    return function


def shifted(name):
    def function(x, axes=None):
        if x.ndim == 0:
            raise ValueError("not enough values to unpack (expected 2, got 0)")
        return getattr(np.fft, name)(x, axes)

    return function


FUNCTIONS = {
    "argsort": argsort,
    "conj": conj,
    "expm1": expm1,
    "floor_divide": floor_divide,
    "isin": _comparing(np.isin),
    "power": power,
    "prod": complex_sum("prod"),
    "remainder": remainder,
    "repeat": repeat,
    "roll": roll,
    "searchsorted": _comparing(searchsorted),
    "sum": complex_sum("sum"),
    "take": take,
    "tanh": tanh,
    **{
        name: _of_truth(name)
        for name in ("logical_and", "logical_not", "logical_or", "logical_xor")
    },
    **{
        name: _of_floats(name)
        for name in (
            "equal",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
            "not_equal",
        )
    },
}
LINALG = {
    "cholesky": _factored("cholesky", "potrf"),
    "eig": eig,
    "inv": _factored("inv", "getrf"),
    "matrix_power": _factored("matrix_power", "getrf"),
    "norm": norm,
    "solve": solve,
}
FFT = {
    **{
        name: _transform(name)
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    **{name: _transform_of_axes(name) for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    "fftshift": shifted("fftshift"),
    "ifftshift": shifted("ifftshift"),
}
for _table in (FUNCTIONS, LINALG, FFT):
    for _name, _function in _table.items():
        _function.__name__ = _name
