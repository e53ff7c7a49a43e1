"""Functions with `ndx.fuse` and without: equal results, effects and errors."""

import numpy as np

import ndx


def described(value):
    """Describe a result: types, dtypes, layouts and values; the type of an error."""
    if isinstance(value, Exception):
        return type(value)
    if isinstance(value, dict):
        return [(described(key), described(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [described(item) for item in value]
    if isinstance(value, ndx.NDArray | np.ndarray):
        steps = [
            step for n, step in zip(value.shape, value.strides, strict=True) if n > 1
        ]
        values = repr(np.asarray(value).tolist())  # a NaN equals a NaN
        return type(value), value.dtype, value.shape, steps, values
    return type(value), repr(value)


def outcome(function, args):
    """Return what a call returns or raises, and its arguments after it."""
    try:
        result = function(*args)
    except Exception as error:
        result = error
    return described(result), described(args)


def assert_as_plain(function, *makers):
    """Check two calls with the arguments of each maker; return the fused function."""
    fused = ndx.fuse(function)
    for make in makers:
        expected = outcome(function, make())
        for _ in range(2):
            assert outcome(fused, make()) == expected, fused.explain()
    return fused
