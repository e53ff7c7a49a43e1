"""All operators against NumPy's, on arrays of any layout."""

import operator

import numpy as np
import pytest
from helpers import dtypes, patterns
from helpers.compare import assert_same
from hypothesis import assume, given
from hypothesis import strategies as st

import ndx

ARITHMETIC = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power,
}  # fmt: skip
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
BITWISE = {
    "and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}  # fmt: skip
BINARY = ARITHMETIC | COMPARISONS | BITWISE
UNARY = {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}  # fmt: skip

# For infinities: the standard's special cases, or the C library's, depending on steps.
UNLIKE_NUMPY = ("floordiv", "pow")


def defined(name, dtype):
    """Return whether the operator has a meaning for a (promoted) dtype."""
    kind = np.dtype(dtype).kind
    if name in ("and_", "or_", "xor", "invert"):
        return kind in "biu"
    if name in ("lshift", "rshift"):
        return kind in "iu"
    if name in ("floordiv", "mod"):
        return kind in "iuf"
    if name in ("sub", "pow", "neg", "pos", "abs"):
        return kind in "iufc"
    return True


def negative_power(name, b):
    return name == "pow" and np.asarray(b).dtype.kind in "iu" and np.any(b < 0)


def tolerance(name, dtype):
    """Return a relative tolerance: loops over other steps may round otherwise."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "fc" or (dtype.kind == "f" and name != "pow"):
        return 0
    return 1e-5 if dtype.itemsize // (1 + (dtype.kind == "c")) == 4 else 1e-13


def expect(name, *operands):
    with np.errstate(all="ignore"):
        return BINARY[name](*operands)


def check_binary(name, a, b, x, y):
    """Compare ``x op y`` of ndx with that of NumPy's `a` and `b`."""
    promoted = np.result_type(a, b)
    f = getattr(operator, name)
    if not defined(name, promoted):
        with pytest.raises(TypeError, match="does not take"):
            f(x, y)
    elif negative_power(name, b) and promoted.kind in "iu":
        if not a.size * b.size:
            return
        with pytest.raises(ValueError, match="negative integer powers"):
            f(x, y)
    else:
        expected = expect(name, a, b)
        assert_same(f(x, y), expected, rtol=tolerance(name, expected.dtype))


@given(st.data(), st.sampled_from(sorted(BINARY)))
def test_two_arrays(data, name):
    dtype = st.sampled_from(dtypes.ALL)
    same = data.draw(st.booleans())
    first = data.draw(dtype)
    second = first if same else data.draw(dtype)
    shapes = data.draw(patterns.broadcastable())
    special = name not in UNLIKE_NUMPY and "complex" not in first + second
    a = data.draw(patterns.arrays(first, shapes[0], special=special))
    b = data.draw(patterns.arrays(second, shapes[1], special=special))
    check_binary(name, a, b, ndx.asarray(a), ndx.asarray(b))


@pytest.mark.parametrize("first", dtypes.ALL)
@pytest.mark.parametrize("second", dtypes.ALL)
def test_all_pairs_of_dtypes(first, second):
    a = np.resize(patterns.pool(first, special=False), 12)
    b = np.resize(patterns.pool(second, special=False), 12)[::-1]
    x, y = ndx.asarray(a), ndx.asarray(b)
    for name in BINARY:
        check_binary(name, a, b, x, y)
        check_binary(name, a, b, x, ndx.asarray(b, copy=True))


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-3, 130),
    st.sampled_from([2**31, -(2**31), 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63)]),
    st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e300, float("inf"), float("nan")]),
    st.sampled_from([0j, 1 + 2j, -1.5j]),
)


@given(st.data(), st.sampled_from(sorted(BINARY)), SCALARS, st.booleans())
def test_an_array_and_a_scalar(data, name, scalar, reflected):
    dtype = np.dtype(data.draw(st.sampled_from(dtypes.ALL)))
    real = dtype.kind != "c" and not isinstance(scalar, complex)
    special = real and name not in UNLIKE_NUMPY
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes()), special=special))
    x = ndx.asarray(a)
    operands = (scalar, x) if reflected else (x, scalar)
    f = getattr(operator, name)
    kind = type(scalar)
    if kind is int and dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not info.min <= scalar <= info.max:
            # (Division is in float64, where it does fit.)
            if name not in COMPARISONS and name != "truediv":
                with pytest.raises(OverflowError, match="does not fit"):
                    f(*operands)
            return
    if kind is int and dtype.kind == "b" and not -(2**63) <= scalar < 2**63:
        return
    weak = {bool: dtype, int: np.int64, float: np.float64, complex: np.complex128}[kind]
    order = "biufc"
    wanted = (
        dtype if order.index(dtype.kind) >= order.index({"b": "b", "i": "u"}.get(
            np.dtype(weak).kind, np.dtype(weak).kind)) or (
            kind is int and dtype.kind == "i")
        else np.dtype(weak)
    )  # fmt: skip
    if kind is complex and dtype in (np.float16, np.float32):
        wanted = np.dtype(np.complex64)
    with np.errstate(all="ignore"):
        b = np.asarray(scalar).astype(wanted)
    assume(name not in UNLIKE_NUMPY or np.isfinite(b))
    first, second = (b, a) if reflected else (a, b)
    if not defined(name, wanted):
        with pytest.raises(TypeError, match="does not take"):
            f(*operands)
    elif negative_power(name, second) and wanted.kind in "iu":
        if a.size:
            with pytest.raises(ValueError, match="negative integer powers"):
                f(*operands)
    else:
        expected = expect(name, first.astype(wanted), second.astype(wanted))
        assert_same(f(*operands), expected, rtol=tolerance(name, expected.dtype))


@given(st.data(), st.sampled_from(sorted(UNARY)), st.sampled_from(dtypes.ALL))
def test_one_array(data, name, dtype):
    special = "complex" not in dtype
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes()), special=special))
    x = ndx.asarray(a)
    f = getattr(operator, name)
    if not defined(name, dtype) and (name, dtype) != ("abs", "bool"):
        with pytest.raises(TypeError, match="does not take"):
            f(x)
        return
    with np.errstate(all="ignore"):
        expected = UNARY[name](a)
    assert_same(f(x), expected, rtol=tolerance("abs", dtype) if "c" in dtype else 0)


# ---- in place ----------------------------------------------------------------

INPLACE = sorted(ARITHMETIC | BITWISE)


def inplace(name, x, y):
    return getattr(operator, "i" + name.rstrip("_"))(x, y)


@given(st.data(), st.sampled_from(INPLACE))
def test_in_place(data, name):
    dtype = st.sampled_from(dtypes.ALL)
    first = data.draw(dtype)
    second = data.draw(st.sampled_from([first, data.draw(dtype)]))
    shape, other = data.draw(patterns.broadcastable())
    if np.broadcast_shapes(shape, other) != shape:
        shape, other = np.broadcast_shapes(shape, other), shape
    special = name not in UNLIKE_NUMPY and "complex" not in first + second
    draw = patterns.arrays(first, shape, special=special, broadcast=False)
    a = data.draw(draw)
    b = data.draw(patterns.arrays(second, other, special=special))
    c = a.copy(order="K")
    x, y = ndx.asarray(c), ndx.asarray(b)
    error = None
    with np.errstate(all="ignore"):
        try:
            BINARY[name](a, b, out=a, casting="same_kind")
        except (TypeError, ValueError) as caught:
            error = type(caught)
    promoted = np.result_type(first, second)
    if error or not defined(name, promoted):
        before = c.copy()
        with pytest.raises((TypeError, ValueError)):
            inplace(name, x, y)
        if error is not ValueError:
            np.testing.assert_array_equal(c, before)
        return
    assert inplace(name, x, y) is x
    assert_same(x, a, rtol=tolerance(name, promoted))


OVERLAPS = {
    "shifted": lambda x: (x[1:], x[:-1]),
    "shifted back": lambda x: (x[:-1], x[1:]),
    "reversed": lambda x: (x, x[::-1]),
    "itself": lambda x: (x, x),
    "every other": lambda x: (x[::2], x[: (x.shape[0] + 1) // 2]),
    "first of itself": lambda x: (x, x[:1]),
    "last of itself": lambda x: (x, x[-1:]),
    "element": lambda x: (x, x[3]),
}
OVERLAPS_2D = {
    "transpose": lambda x: (x, x.T),
    "row of itself": lambda x: (x, x[1]),
    "column of itself": lambda x: (x, x[:, 1:2]),
    "flipped": lambda x: (x, x[::-1, ::-1]),
    "shifted diagonally": lambda x: (x[1:, 1:], x[:-1, :-1]),
}


@pytest.mark.parametrize("dtype", ["float64", "int16", "complex64", "uint8"])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
@pytest.mark.parametrize("size", [7, 300])
def test_in_place_with_overlap(size, name, dtype):
    for overlaps, shape in ((OVERLAPS, (size,)), (OVERLAPS_2D, (17, 17))):
        for select in overlaps.values():
            a = (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)
            x = ndx.asarray(a, copy=True)
            left, right = select(a)
            inplace(name, left, right)
            left, right = select(x)
            inplace(name, left, right)
            assert_same(x, a)


@pytest.mark.parametrize("size", [7, 300])
@pytest.mark.parametrize("overlap", OVERLAPS)
def test_out_with_overlap(size, overlap):
    a = np.arange(size) * 1.5
    x = ndx.asarray(a, copy=True)
    left, right = OVERLAPS[overlap](a)
    np.add(right, left, out=left)
    left, right = OVERLAPS[overlap](x)
    assert ndx.add(right, left, out=left) is left
    assert_same(x, a)
    left, right = OVERLAPS[overlap](a)
    if left.shape == right.shape:
        np.sqrt(right, out=left)
        left, right = OVERLAPS[overlap](x)
        ndx.sqrt(right, out=left)
        assert_same(x, a)


def test_out_over_operands_of_another_dtype():
    a = np.arange(100.0)
    x = ndx.asarray(a, copy=True)
    ints = ndx.asarray(np.asarray(x).view(np.int64))
    ndx.divide(ints, 3, out=x)
    assert_same(x, a.view(np.int64) / 3)


@pytest.mark.parametrize(
    ("dtype", "name", "other"),
    [
        ("int64", "truediv", 2),
        ("int64", "add", 1.5),
        ("int8", "mul", np.float32(2)),
        ("float64", "add", 1j),
        ("bool", "add", 1),
        ("uint8", "add", np.int8(-1)),
        ("uint64", "add", np.int64(1)),
        ("int64", "add", np.ones(3, "complex64")),
    ],
)
def test_in_place_never_changes_the_dtype(dtype, name, other):
    x = ndx.ones(3, dtype=dtype)
    with pytest.raises(TypeError, match=f"can't be cast .* in place, {dtype}"):
        inplace(name, x, other)
    assert_same(x, np.ones(3, dtype))


def test_in_place_never_changes_the_shape():
    x = ndx.ones((3, 1))
    for other in (ndx.ones((3, 2)), np.ones((2, 3, 1)), ndx.ones((3, 2), dtype="int8")):
        with pytest.raises(ValueError, match="output has shape"):
            x += other
    x = ndx.ones((3, 1), dtype="float32")
    with pytest.raises(ValueError, match="output has shape"):
        x += ndx.ones((3, 2))
    assert_same(x, np.ones((3, 1), "float32"))


def test_in_place_on_a_read_only_array():
    a = np.ones(3)
    a.flags.writeable = False
    x = ndx.asarray(a)
    for other in (1.0, ndx.ones(3), ndx.ones(3, dtype="float32")):
        with pytest.raises(ValueError, match="read-only"):
            x += other
    with pytest.raises(ValueError, match="read-only"):
        ndx.exp(ndx.ones(3), out=x)


# ---- scalars that don't fit, and other operands ------------------------------


@pytest.mark.parametrize("dtype", dtypes.INTEGERS)
def test_integers_that_do_not_fit(dtype):
    info = np.iinfo(dtype)
    x = ndx.ones(3, dtype=dtype)
    for scalar in (info.max + 1, info.min - 1, 10**30):
        for f in (
            lambda x, s: x + s,
            lambda x, s: s - x,
            lambda x, s: x & s,
            lambda x, s: operator.iadd(x, s),
            lambda x, s: x.__setitem__(0, s),
        ):
            with pytest.raises(OverflowError, match=dtype):
                f(x, scalar)
    assert_same(x, np.ones(3, dtype))
    # Within the dtype it wraps.
    assert_same(x + info.max, np.full(3, info.min, dtype))


def test_an_integer_beyond_float64():
    with pytest.raises(OverflowError):
        ndx.ones(3) + 10**400


@pytest.mark.parametrize("other", ["a", None, ["a", "b", "c"], object(), {}, slice(3)])
@pytest.mark.parametrize("name", ["add", "lt", "matmul", "pow", "and_"])
def test_what_is_no_operand(name, other):
    x = ndx.ones(3, dtype="int64")
    f = getattr(operator, name)
    # NumPy's `matmul` makes an array without axes of any object.
    converted = name == "matmul" and not isinstance(other, str | list | None)
    with pytest.raises(ValueError if converted else TypeError):
        f(x, other)
    with pytest.raises(ValueError if converted else TypeError):
        f(other, x)
    if name in ("add", "and_", "pow"):
        with pytest.raises(TypeError):
            inplace(name, x, other)


@pytest.mark.parametrize("function", [operator.add, operator.iadd])
@pytest.mark.parametrize("x", [ndx.ones(1), ndx.ones(1)[0], ndx.ones(1, dtype="int8")])
def test_bytes_are_no_operand(function, x):
    """Python would append the bytes of the array."""
    with pytest.raises(TypeError):
        function(b"a", x)
    with pytest.raises(TypeError):
        function(x, b"a")


def test_equality_with_what_is_no_operand():
    x = ndx.ones(3)
    assert (x == "a") is False
    assert (x != None) is True  # noqa: E711


def test_other_types_get_their_turn():
    class Other:
        __array_ufunc__ = None

        def __radd__(self, x):
            return "reflected"

        def __rmatmul__(self, x):
            return "reflected"

        def __gt__(self, x):
            return "reflected"

    x = ndx.ones(3)
    assert x + Other() == "reflected"
    assert x @ Other() == "reflected"
    assert (x < Other()) == "reflected"
    # As for NumPy's arrays, whose ufunc is asked to write the sum.
    with pytest.raises(TypeError, match="does not support ufuncs"):
        x += Other()


def test_shapes_that_clash():
    with pytest.raises(ValueError, match=r"add: shapes \(2, 3\) and \(2,\)"):
        ndx.ones((2, 3)) + ndx.ones(2)
    with pytest.raises(ValueError, match="can't be broadcast"):
        operator.lt(ndx.ones((0,)), ndx.ones((3,)))


def test_power():
    x = ndx.asarray([2, 3])
    for exponent in (-1, ndx.asarray([1, -1]), np.int64(-2)):
        with pytest.raises(ValueError, match="negative integer powers"):
            x**exponent
    with pytest.raises(ValueError, match="negative integer powers"):
        2 ** ndx.asarray([-1])
    big = ndx.ones(100_000, dtype="int64")
    with pytest.raises(ValueError, match="negative integer powers"):
        big**-1
    # No error is left behind.
    assert (x**2).tolist() == [4, 9]
    assert_same(ndx.asarray([2.0]) ** -1, [0.5])
    with pytest.raises(TypeError):
        pow(x, 2, 5)


@pytest.mark.parametrize("dtype", dtypes.SIGNED)
def test_integer_division_at_the_border(dtype):
    low = np.iinfo(dtype).min
    x = ndx.asarray(np.array([low, low, 7, -7], dtype))
    y = ndx.asarray(np.array([-1, 0, 0, 2], dtype))
    assert (x // y).tolist() == [low, 0, 0, -4]
    assert (x % y).tolist() == [0, 0, 0, 1]
    assert (abs(x)).tolist() == [low, low, 7, 7]


# ---- floating-point warnings -------------------------------------------------


@pytest.mark.parametrize("layout", [slice(None), slice(None, None, 2), slice(6, None)])
def test_no_warnings_nor_traces_of_them(layout):
    """`filterwarnings = error` makes a warning of NumPy's an exception."""
    values = np.array([0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 1e-308, 2.0])
    for dtype in ("float64", "float32", "int64", "complex128", "int8", "bool"):
        with np.errstate(all="ignore"):
            a = values.astype(dtype)[layout]
        x = ndx.asarray(a, copy=True)[...]
        y = ndx.asarray(a[::-1])
        for name in BINARY:
            if defined(name, dtype) and not negative_power(name, np.asarray(y)):
                getattr(operator, name)(x, y)
                getattr(operator, name)(x, x)
        for function in ("exp", "log", "sqrt", "log1p", "reciprocal", "tan", "acos"):
            getattr(ndx, function)(x)
        for other in dtypes.ALL:
            if "complex" not in dtype or "complex" in other:
                ndx.asarray(x, dtype=other)
        # NumPy, which looks at the flags after each of its loops, sees none of ours.
        assert np.add(np.ones(3), 1.0).sum() == 6.0
        assert float(np.float64(1.0) + np.float64(1.0)) == 2.0


def test_casts_that_overflow_are_silent():
    x = ndx.zeros(3, dtype="float32")
    x[...] = ndx.full(3, 1e300)
    assert x.tolist() == [np.inf] * 3
    x += ndx.full(3, -1e300)
    assert x.tolist() == [np.inf] * 3
    assert ndx.asarray(ndx.full(2, 1e300), dtype="complex64").tolist() == [np.inf] * 2
    ndx.asarray(ndx.full(2, np.nan), dtype="int32")
    ndx.full(2, 1e300, dtype="float32")


# ---- the layout of results ---------------------------------------------------


@given(st.data())
def test_results_lie_as_their_operand_does(data):
    """As NumPy's order 'K': dense, axes in the operand's order."""
    shape = data.draw(patterns.shapes(max_dims=4, min_side=1))
    a = data.draw(patterns.arrays("float64", shape))
    x = ndx.asarray(a)
    expected = np.empty_like(a)
    order = [s for s, n in zip(expected.strides, shape, strict=True) if n > 1]
    for y in (-x, x + 1.0, x * x, ndx.exp(x), ndx.asarray(x, copy=True)):
        # Broadcast axes have no place of their own.
        if 0 in [s for s, n in zip(a.strides, shape, strict=True) if n > 1]:
            assert sorted(y.strides, reverse=True)[-1:] in ([8], [])
        else:
            found = [s for s, n in zip(y.strides, shape, strict=True) if n > 1]
            assert found == order


def test_results_of_transposed_arrays():
    x = ndx.ones((3, 4)).T
    for y in (x + x, x + 1, x * ndx.ones((4, 1)), ndx.exp(x), x == x):
        assert y.strides == tuple(np.dtype(y.dtype).itemsize * n for n in (1, 4))
    cube = ndx.asarray(np.ones((2, 3, 4)).transpose(1, 2, 0))
    assert (cube + 1).strides == (32, 8, 96)
