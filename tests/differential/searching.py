"""Searching, sorting and set functions."""

import numpy as np
from helpers import patterns
from hypothesis import strategies as st

from differential.draws import (
    ALL,
    FITS,
    NO_AXES,
    alone,
    arrays,
    axis_of_none,
    chosen,
    does_not_fit,
    names,
    pair_shapes,
    scalars,
    values,
    with_axis,
)  # fmt: skip
from differential.engine import Row

KEEP = {"keepdims": st.booleans()}
ORDER = {"descending": st.booleans(), "stable": st.just(True)}


def downwards(function):
    """Return a reference that sorts downwards by sorting the reversed upwards."""

    def reference(x, *, axis=-1, descending=False, stable=True):
        if not descending:
            return function(x, axis=axis, stable=True)
        return np.flip(function(np.flip(x, axis=axis), axis=axis, stable=True), axis)

    return reference


def argsort(x, *, axis=-1, descending=False, stable=True):
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    order = np.flip(np.argsort(np.flip(x, axis=axis), axis=axis, stable=True), axis)
    return x.shape[axis] - 1 - order


def without_nan(x, **kwargs):
    """NaN is the largest for NumPy and ndx; of array-api-strict it is anywhere."""
    return x.dtype.kind not in "fc" or not np.isnan(x).any()


def in_one_order(x, **kwargs):
    """Sorted downwards by array-api-strict, equal zeros change their order, too."""
    zeros = np.signbit(x[x == 0]) if x.dtype.kind == "f" else np.zeros(0, bool)
    return without_nan(x) and zeros.all() == zeros.any()


@st.composite
def insertions(draw):
    name = draw(names("iuf"))
    x = draw(
        patterns.foreign(name, (draw(st.integers(0, 6)),), values=values(name, "some"))
    )
    sorter = draw(st.booleans())
    order = np.argsort(x, kind="stable")
    kwargs = draw(chosen(side=st.sampled_from(["left", "right"])))
    if sorter:
        kwargs["sorter"] = order
    else:
        x = x[order]
    other = name if draw(st.booleans()) else draw(names("iuf"))
    shape = draw(patterns.shapes(max_dims=2))
    y = draw(patterns.foreign(other, shape, values=values(other, "some")))
    return (x, y), kwargs


@st.composite
def choices(draw):
    condition, first, second = draw(pair_shapes(3))
    x = draw(arrays(ALL, first))
    y = draw(arrays(ALL, second) | scalars("biufc"))
    pair = (x, y) if draw(st.booleans()) else (y, x)
    return (draw(arrays("b", condition)), *pair), {}


@st.composite
def members(draw):
    kinds = draw(st.sampled_from(["b", "iu", "iuf", "c"]))
    x, y = draw(arrays(kinds, which="some")), draw(arrays(kinds, which="some"))
    y = draw(st.just(y) | scalars("u"))
    return (x, y), draw(chosen(invert=st.booleans()))


def isin(x1, x2, *, invert=False):
    """Compare uint64 with signed integers as Python does, where NumPy takes floats."""
    kinds = {getattr(x, "dtype", np.dtype(bool)).kind for x in (x1, x2)}
    if kinds == {"i", "u"}:
        x1, x2 = x1.astype(object), x2.astype(object)
    return np.isin(x1, x2, invert=invert)


def unique_values(x):
    """Return sorted values, each NaN by itself."""
    return np.unique(x, equal_nan=False)


TABLE = {
    "argmax": Row(with_axis("iuf", one=True, options=KEEP),
                  refuses=axis_of_none, note=NO_AXES),
    "argmin": Row(with_axis("iuf", one=True, options=KEEP),
                  refuses=axis_of_none, note=NO_AXES),
    "count_nonzero": Row(with_axis(options=KEEP), refuses=axis_of_none, note=NO_AXES),
    "nonzero": Row(alone()),
    "searchsorted": Row(insertions()),
    "where": Row(choices(), refuses=does_not_fit, note=FITS),
    "sort": Row(with_axis(one=True, none=False, options=ORDER), downwards(np.sort),
                strict=in_one_order, refuses=axis_of_none,
                note=f"where NaN goes is free; {NO_AXES}"),
    "argsort": Row(with_axis(one=True, none=False, options=ORDER), argsort,
                   strict=without_nan, refuses=axis_of_none,
                   note=f"where NaN goes is free; {NO_AXES}"),
    "isin": Row(members(), isin, strict=lambda x1, x2, invert=False: False,
                note="array-api-strict takes no notice of invert, and is NumPy's"),
    "unique_values": Row(alone(), unique_values, strict=False, zeros=False,
                         note="the order is free: ndx sorts, NumPy need not"),
    "unique_counts": Row(alone(), zeros=False),
    "unique_inverse": Row(alone(which="some"), zeros=False,
                          note="the order of NaN is free: NumPy's sort is not stable"),
    "unique_all": Row(alone(), zeros=False),
}  # fmt: skip
