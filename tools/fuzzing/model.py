"""NumPy with the standard's names and defaults: `ndx` on the model's side."""

import threading
from types import SimpleNamespace

import numpy as np


def pattern(x):
    """Return small whole numbers in the shape and dtype of an array."""
    return (np.arange(x.size) % 11 - 5).reshape(x.shape).astype(x.dtype)


def in_thread(function):
    """Return the result of a function called in a thread of its own."""
    outcome = []

    def call():
        try:
            outcome.append((function(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    result, error = outcome.pop()
    if error is not None:
        try:
            raise error
        finally:
            del error
    return result


def sort(x, *, axis=-1, descending=False, stable=True):
    result = np.sort(x, axis=axis, stable=True)
    return np.flip(result, axis) if descending else result


def argsort(x, *, axis=-1, descending=False, stable=True):
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    last = x.shape[axis] - 1
    return last - np.flip(np.argsort(np.flip(x, axis), axis=axis, stable=True), axis)


def take(x, indices, *, axis=None):
    return np.take(x, indices, axis=0 if axis is None else axis)


NAMES = [
    "abs",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "asarray",
    "astype",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_to",
    "ceil",
    "clip",
    "concat",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "divide",
    "equal",
    "exp",
    "expand_dims",
    "eye",
    "flip",
    "floor",
    "floor_divide",
    "full",
    "greater",
    "isin",
    "less",
    "logical_and",
    "logical_not",
    "logical_or",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "negative",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "prod",
    "repeat",
    "reshape",
    "roll",
    "searchsorted",
    "sign",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take_along_axis",
    "tensordot",
    "tile",
    "trace",
    "tril",
    "triu",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
    "isfinite",
    "isnan",
    "signbit",
]

MODEL = SimpleNamespace(
    **{name: getattr(np, name) for name in NAMES},
    sort=sort,
    argsort=argsort,
    take=take,
    unique_values=np.unique,
    linalg=SimpleNamespace(outer=np.linalg.outer, trace=np.linalg.trace),
)
