"""Random functions of arrays, as lists of steps, for tests of `ndx.fuse`."""

import operator

import numpy as np
from hypothesis import strategies as st

import ndx

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
    operator.mod, operator.lt, operator.ge, operator.eq, operator.ne, operator.and_,
    operator.or_, ndx.maximum, ndx.minimum, ndx.hypot, ndx.logical_and,
]  # fmt: skip
UNARY = [
    operator.neg, abs, operator.invert, ndx.sqrt, ndx.floor, ndx.square, ndx.isnan,
    ndx.sign, ndx.conj, ndx.round, ndx.logical_not, ndx.zeros_like,
    lambda x: x.T, lambda x: x.copy(), lambda x: ndx.asarray(x, copy=True),
]  # fmt: skip
INPLACE = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.iand,
]
REDUCTIONS = [ndx.max, ndx.min, ndx.any, ndx.all, ndx.sum, ndx.mean]
KEYS = [
    slice(None), slice(1, None), slice(None, -1), slice(1, -1), slice(None, None, 2),
    slice(None, None, -1), slice(2, None), slice(None, -2), Ellipsis, None, 0, -1,
]  # fmt: skip
SCALARS = [0, 1, 2, -3, 0.5, -1.5, 2.0, True, 1j, float("nan")]
DTYPES = ["float64", "float32", "float16", "int64", "int16", "uint8", "bool"]
DTYPES += ["complex128"]
STEPS = ["binary", "scalar", "unary", "inplace", "store", "fill", "reduce", "slice",
         "where", "clip", "astype", "float"]  # fmt: skip

keys = st.one_of(st.sampled_from(KEYS), st.tuples(*[st.sampled_from(KEYS)] * 2))
steps = st.tuples(
    st.sampled_from(STEPS), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30),
    keys, keys,
)  # fmt: skip
programs = st.lists(steps, min_size=1, max_size=9)


def run(program, *args):
    """Compute a program; return (exact results, sums of floats)."""
    *arrays, factor = args
    values, sums = list(arrays), []
    for name, i, j, k, key, other_key in program:
        x, y = values[i % len(values)], values[j % len(values)]
        made = None
        if name == "binary":
            made = BINARY[k % len(BINARY)](x, y)
        elif name == "scalar":
            pair = (x, SCALARS[j % len(SCALARS)])
            made = BINARY[k % 12](*(pair if i % 2 else pair[::-1]))
        elif name == "float":
            made = BINARY[k % 4](*((x, factor) if i % 2 else (factor, x)))
        elif name == "unary":
            made = UNARY[k % len(UNARY)](x)
        elif name == "inplace":
            made = INPLACE[k % len(INPLACE)](x, y if j % 3 else SCALARS[j % 6])
        elif name == "store":
            x[key] = y[other_key]
        elif name == "fill":
            x[key] = SCALARS[j % 6]
        elif name == "slice":
            made = x[key]
        elif name == "where":
            made = ndx.where(x > 0, y, x if k % 2 else SCALARS[k % 6])
        elif name == "clip":
            made = ndx.clip(x, -1, y if k % 2 else 2)
        elif name == "astype":
            made = ndx.astype(x, np.dtype(DTYPES[k % len(DTYPES)]))
        else:
            axis = (None, 0, -1, (0, 1))[j % 4]
            found = REDUCTIONS[k % 6](x, axis=axis, keepdims=bool(i % 2))
            if k % 6 >= 4 and found.dtype.kind in "fc":
                sums.append(found)
            else:
                made = found
        if made is not None:
            values.append(made)
    return values, sums


def outcome(function, args):
    """Return what a call returns as NumPy's arrays, and its arguments after it."""
    try:
        values, sums = function(*args)
    except Exception as error:
        return type(error), None, None
    exact = [on_cpu(x) for x in (*values, *args[:-1])]
    return [x.dtype for x in exact], exact, [on_cpu(x) for x in sums]


def on_cpu(x):
    """Return a copy of an array, which may be on a GPU, as NumPy's."""
    return np.array(x.to_device("cpu"))


def assert_same(program, make, factors):
    """Check a fused program for each factor, with the arguments of ``make(factor)``."""
    fused = ndx.fuse(lambda *args: run(program, *args))
    for factor in factors:
        expected = outcome(fused.__wrapped__, make(factor))
        found = outcome(fused, make(factor))
        assert found[0] == expected[0], fused.explain()
        if expected[1] is not None:
            for one, other in zip(found[1], expected[1], strict=True):
                assert same(one, other), (one, other, fused.explain())
            for one, other in zip(found[2], expected[2], strict=True):
                assert close(one, other), (one, other, fused.explain())


def same(one, other):
    """Whether two arrays have equal elements: zeros of equal signs, NaN with NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"):
        return False
    if one.dtype.kind == "c":
        return same(one.real, other.real) and same(one.imag, other.imag)
    known = ~np.isnan(one) if one.dtype.kind == "f" else np.zeros(one.shape, bool)
    return np.array_equal(np.signbit(one[known]), np.signbit(other[known]))


def close(one, other):
    """Whether sums are equal but for the order of their additions."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    # Huge numbers of both signs may overflow in one order only.
    tolerance = 1e-3 if one.dtype in (np.float32, np.complex64) else 1e-9
    return np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
