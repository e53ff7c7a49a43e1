"""Elementwise functions."""

import numpy as np
from hypothesis import strategies as st

from differential.draws import (
    alone,
    arrays,
    chosen,
    pair_shapes,
    pairs,
    scalars,
)  # fmt: skip
from differential.engine import Row, rows

IN_FLOATS = "NumPy computes small integers in float16 or float32; ndx in float64"


def in_floats(name):
    """Return NumPy's function of arrays and scalars that are made float64 first."""
    function = getattr(np, name)

    def reference(*args):
        if np.result_type(*args).kind in "fc":
            return function(*args)
        return function(*[np.float64(x) if np.ndim(x) == 0 and not hasattr(x, "dtype")
                          else x.astype("float64") for x in args])  # fmt: skip

    return reference


def floating(names, kinds="biufc", draw=alone, **kwargs):
    """Return rows of functions of floats that take integers, too."""
    return {
        name: Row(draw(kinds), in_floats(name), note=IN_FLOATS, **kwargs)
        for name in names.split()
    }


def finite_arguments(*args, **kwargs):
    """Whether elements are of finite arguments, of ordinary size."""
    mask = True
    for x in args:
        with np.errstate(all="ignore"):
            mask = mask & (np.abs(x) < 50)
    return mask


def exact_product(a, b=None):
    """Whether no part of a complex product is rounded.

    Otherwise NumPy's loops for vectors (by FMA) and for single numbers differ.
    """
    b = a if b is None else b
    if np.result_type(a, b).kind != "c":
        return True
    mask = True
    for x in (a, b):
        for part in np.float64([np.real(x), np.imag(x)]):
            with np.errstate(all="ignore"):
                simple = (np.abs(part) <= 1024) & (np.round(part * 1024) == part * 1024)
            mask = mask & (simple | ~np.isfinite(part))
    return mask


def exact_power(a, b):
    """Whether no part of a complex square is rounded, and a reciprocal is finite.

    NumPy squares by products, and its inverse power of infinity is not a number. Its
    power of -inf and 0.5 is that of `sqrt`, where the standard has infinity.
    """
    if np.result_type(a, b).kind != "c":
        return ~((np.asarray(a) == -np.inf) & (np.asarray(b) == 0.5))
    if np.ndim(b):
        return True
    if b == -1:
        with np.errstate(all="ignore"):
            return np.isfinite(a) & np.isfinite(np.reciprocal(a))
    return exact_product(a) if b == 2 else True


def ordinary_division(a, b):
    """Where NumPy's quotient is the standard's: finite, and not by zero."""
    kind = np.result_type(a, b).kind
    return np.isfinite(a) & np.isfinite(b) & (np.asarray(b) != 0) | (kind != "f")


TABLE = (
    # The same loops as NumPy's: exactly its answers.
    rows("conj negative positive round", alone("iufc"))
    | rows("square", alone("iufc"), standard=exact_product)
    # But of complex ones in vectors or one by one, which depends on the layout.
    | rows("abs", alone("iufc"), ulps=1)
    | rows("sign", alone("iufc"), strict=lambda x: x.dtype.kind != "c",
           note="array-api-strict rounds twice, and divides infinity by itself")
    | rows("ceil floor trunc", alone("iuf"))
    | rows("isfinite isinf isnan logical_not", alone())
    | rows("bitwise_invert", alone("biu"))
    | rows("real", alone("iufc"))
    | rows("imag", alone("c"))
    | floating("signbit", "biuf")
    | floating("reciprocal sqrt", ulps=8)
    # Rounded otherwise where the layout chooses another loop.
    | floating("acos acosh asin asinh atan atanh cos cosh exp log log10 log1p log2 sin "
               "sinh", ulps=16)
    | floating("expm1 tan tanh", ulps=64, standard=finite_arguments)
    | rows("add maximum minimum", pairs())
    | rows("multiply", pairs(), standard=exact_product)
    | rows("equal not_equal less less_equal greater greater_equal logical_and "
           "logical_or logical_xor", pairs())
    | rows("subtract", pairs("iufc"))
    | rows("pow", pairs("iufc"), ulps=64, standard=exact_power)
    | rows("remainder", pairs("iuf"), ulps=4)
    | rows("floor_divide", pairs("iuf"), ulps=4, standard=ordinary_division,
           note="the standard says what infinities and zeros give; NumPy gives NaN")
    | rows("bitwise_and bitwise_or bitwise_xor", pairs("biu"))
    | rows("bitwise_left_shift bitwise_right_shift", pairs("iu"))
    | floating("atan2 hypot logaddexp", "biuf", pairs, ulps=16)
    | floating("copysign nextafter", "biuf", pairs)
    | floating("divide", "biufc", pairs, ulps=8)
)  # fmt: skip


@st.composite
def clipped(draw):
    x, low, high = draw(pair_shapes(3))
    x = draw(arrays("iuf", x))
    bounds = {}
    for name, shape in (("min", low), ("max", high)):
        kind = x.dtype.kind if draw(st.booleans()) else "f"
        array = arrays(kind, shape)
        bounds |= draw(chosen(**{name: array | scalars("u") | st.none()}))
    if draw(st.booleans()):
        return (x, bounds.get("min"), bounds.get("max")), {}
    return (x,), bounds


def of_one_dtype(x, min=None, max=None):
    bounds = [bound for bound in (min, max) if isinstance(bound, np.ndarray)]
    return all(bound.dtype == x.dtype for bound in bounds)


TABLE["clip"] = Row(
    clipped(),
    strict=of_one_dtype,
    ulps=1,  # which of 0.0 and -0.0 is the greater is open
    note="the standard leaves bounds of other dtypes open; array-api-strict casts them",
)
