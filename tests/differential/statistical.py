"""Reductions and running sums."""

import numpy as np
from hypothesis import strategies as st

from differential.draws import NO_AXES, axis_of_none, with_axis
from differential.engine import Row, rows

KEEP = {"keepdims": st.booleans()}
CORRECTED = KEEP | {"correction": st.sampled_from([0, 1, 0.5, 2.0])}
STRICT_AXES = {"refuses": axis_of_none, "note": NO_AXES}
RUNNING = {"include_initial": st.booleans()}


def in_64_bits(function):
    """Return a reference with the standard's dtype of sums on every platform.

    NumPy rounds each sum of float16; ndx computes in float32, and rounds once.
    """

    def reference(x, dtype=None, **kwargs):
        default = {"b": "int64", "i": "int64", "u": "uint64"}.get(x.dtype.kind, x.dtype)
        if (dtype or default) != np.float16:
            return function(x, dtype=dtype or default, **kwargs)
        with np.errstate(over="ignore"):
            found = function(x.astype("float16"), dtype="float32", **kwargs)
            return found.astype("float16")

    return reference


def count_of(x, axis):
    axes = [i for i in axes_of(x, axis) if -x.ndim <= i < x.ndim]
    return np.prod([x.shape[i] for i in axes], dtype=int)


def spread(function):
    """NaN where there are too few elements; NumPy has an infinity or takes 0 for it.

    NumPy adds the squares of float16 in float16.
    """

    def reference(x, axis=None, correction=0, keepdims=False):
        found = function(
            x if x.dtype.name in ("float32", "float64") else x.astype("float64"),
            axis=axis,
            correction=correction,
            keepdims=keepdims,
        )
        if x.dtype == np.float16:
            found = found.astype("float16")
        return found if count_of(x, axis) > correction else np.full_like(found, np.nan)

    return reference


def axes_of(x, axis):
    axes = range(x.ndim) if axis is None else axis
    return (axes,) if isinstance(axes, int) else tuple(axes)


def enough(x, axis=None, correction=0, keepdims=False):
    return count_of(x, axis) > correction


def mean(x, **kwargs):
    return np.mean(x if x.dtype.kind in "fc" else x.astype("float64"), **kwargs)


TABLE = (
    rows("all any", with_axis(options=KEEP), **STRICT_AXES)
    | rows("max min", with_axis("biuf", options=KEEP), **STRICT_AXES, zeros=False)
    | {
        "sum": Row(with_axis("biufc", which="small", options=KEEP),
                   in_64_bits(np.sum), ulps=1, **STRICT_AXES),
        "prod": Row(with_axis("biufc", which="small", options=KEEP, max_side=3),
                    in_64_bits(np.prod), ulps=64, **STRICT_AXES),
        "mean": Row(with_axis("biufc", which="small", options=KEEP), mean, ulps=8,
                    overall=True, **STRICT_AXES),
        "var": Row(with_axis("biuf", which="small", options=CORRECTED),
                   spread(np.var), ulps=64, overall=True,
                   strict=enough, refuses=axis_of_none,
                   note=f"NaN where N - correction is not positive; {NO_AXES}"),
        "std": Row(with_axis("biuf", which="small", options=CORRECTED),
                   spread(np.std), ulps=64, overall=True,
                   strict=enough, refuses=axis_of_none,
                   note=f"NaN where N - correction is not positive; {NO_AXES}"),
        "cumulative_sum": Row(
            with_axis("iufc", which="small", one=True, options=RUNNING, min_dims=1),
            in_64_bits(np.cumulative_sum), ulps=4, overall=True),
        "cumulative_prod": Row(
            with_axis("iufc", which="small", one=True, options=RUNNING, min_dims=1),
            in_64_bits(np.cumulative_prod), ulps=64),
    }
)  # fmt: skip
