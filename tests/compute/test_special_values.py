"""Special points where NumPy's results are not the standard's, and ordinary ones."""

import itertools
import math
from fractions import Fraction
from math import copysign, floor, inf, isinf, isnan, nan

import numpy as np
import pytest
from helpers.numpy_versions import needs_part
from hypothesis import example, given
from hypothesis import strategies as st

import ndx

pytestmark = needs_part("loops")


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
COMPLEX = ["complex64", "complex128"]
POINTS = [0.0, -0.0, 1.0, -1.0, 3.0, -2.5, inf, -inf, nan]


def same(found, expected):
    """Whether numbers are equal, NaN and the sign of zero included."""
    if isnan(expected):
        return isnan(found)
    return found == expected and copysign(1, found) == copysign(1, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (inf, 2.0, inf),
        (inf, -2.0, -inf),
        (-inf, 2.0, -inf),
        (-inf, -2.0, inf),
        (2.0, inf, 0.0),
        (2.0, -inf, -0.0),
        (-2.0, inf, -0.0),
        (-2.0, -inf, 0.0),
        (inf, inf, nan),
        (0.0, 0.0, nan),
        (0.0, -2.0, -0.0),
        (-0.0, 2.0, -0.0),
        (2.0, 0.0, inf),
        (2.0, -0.0, -inf),
        (nan, 1.0, nan),
        (1.0, nan, nan),
        (1.0, 0.1, 9.0),
        (-1.0, 0.1, -10.0),
    ],
)
def test_floor_divide(first, second, expected, dtype):
    if dtype == "float32" and second == 0.1:
        expected = floor(Fraction(first) / Fraction(float(np.float32(0.1))))
    a, b = ndx.full(3, first, dtype=dtype), ndx.full(3, second, dtype=dtype)
    for result in (ndx.floor_divide(a, b), a // second, first // b, a[::2] // b[::2]):
        assert result.dtype == dtype
        assert all(same(item, expected) for item in result.tolist())
    a //= b
    assert all(same(item, expected) for item in a.tolist())


@st.composite
def nearly_whole(draw):
    """Draw dividends and divisors of quotients that are, or nearly are, integers."""
    divisor = draw(FLOATS.filter(lambda x: 1e-100 < abs(x) < 1e100))
    whole = draw(st.integers(-(2**55), 2**55) | st.integers(-9, 9))
    dividend = float(Fraction(divisor) * whole)
    for _ in range(draw(st.integers(0, 2))):
        dividend = math.nextafter(dividend, draw(st.sampled_from([-inf, inf])))
    return dividend, divisor


@given(st.tuples(FLOATS, FLOATS.filter(bool)) | nearly_whole())
@example((3.861247291622317e16, 5.0))  # Python has ...634.0
@example((1.0, 0.1))
@example((-1.0, 1e300))
@example((5e-324, -5e-324))
@example((1e308, 1e-308))
@example((2.0**53, 1.0))
@example((float(-(2**53)), 1.0))
@example((-1e-300, 1e300))
def test_floor_divide_is_exact(operands):
    first, second = operands
    exact = floor(Fraction(first) / Fraction(second))
    found = float(ndx.asarray(first) // second)
    if abs(exact) <= 2**53:
        assert found == exact
    elif abs(exact) < 2**1000:
        assert found == pytest.approx(exact, rel=1e-15)
    else:
        assert isinf(found) or found == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 11])
@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
def test_square_roots_of_all_layouts(dtype, count, step):
    values = [9.0, -0.0, -inf, 2.0, nan, 16.0, inf, -1.0, 0.25, 0.0, 3.0][:count]
    roots = [sqrt_of_power(value) for value in values]
    room = ndx.zeros(3 * count, dtype=dtype)
    x = room[::step][:count]
    x[:] = ndx.asarray(values, dtype=dtype)
    expected = np.asarray(roots, dtype=dtype)
    out = ndx.zeros(3 * count, dtype=dtype)
    ndx.pow(x, 0.5, out=out[1::2][:count])
    rest = ndx.zeros(3 * count, dtype=dtype)
    rest[1::2][:count] = ndx.asarray(expected)
    found = (x**0.5).tolist()
    assert all(same(*pair) for pair in zip(found, expected.tolist(), strict=True))
    np.testing.assert_array_equal(np.asarray(out), np.asarray(rest))
    x **= 0.5
    np.testing.assert_array_equal(np.asarray(x), expected)


def sqrt_of_power(value):
    """Return ``pow(value, 0.5)`` as the standard wants it."""
    if value == -inf:
        return inf
    return nan if isnan(value) or value < 0 else math.sqrt(value + 0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 3, 16, 300, 40000])
def test_square_roots_as_powers(dtype, count):
    """NumPy takes sqrt where there is one exponent, which has other special cases."""
    base = [-inf, -0.0, 0.0, 4.0, inf, nan, -4.0]
    expected = [inf, 0.0, 0.0, 2.0, inf, nan, nan]
    for value, root in zip(base, expected, strict=True):
        x = ndx.full(count, value, dtype=dtype)
        half = ndx.full(count, 0.5, dtype=dtype)
        wide = ndx.full((count, 3), value, dtype=dtype)
        out = ndx.empty((2 * count,), dtype=dtype)
        one = ndx.asarray(0.5, dtype=dtype)
        inplace, other = ndx.asarray(x, copy=True), ndx.asarray(x, copy=True)
        inplace **= 0.5
        other **= one
        for found in (
            x**0.5,
            x**one,
            x**half,
            x ** ndx.broadcast_to(one, (count,)),
            ndx.pow(x, 0.5),
            ndx.pow(x, half, out=half),
            ndx.pow(x, 0.5, out=out[::2]),
            ndx.pow(x, 0.5, out=out[::-2]),
            wide[:, 1] ** 0.5,
            inplace,
            other,
        ):
            assert found.shape == (count,)
            assert {same(item, root) for item in found.tolist()} == {True}


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "signbit"])
def test_outputs_of_any_steps(name, dtype):
    """NumPy's own loops are wrong for these, on some processors."""
    values = [1.0, nan, -inf, -0.0, 3.0, inf, -2.0] if "f" in dtype else [1, -1, 0]
    for count in (1, 2, 15, 16, 17, 70, 300):
        x = np.resize(np.array(values, dtype), count)
        expected = [getattr(math, name, np.signbit)(float(item)) for item in x]
        for step in (1, 2, 3, -1, -2, -3):
            room = np.zeros(count * abs(step), x.dtype)
            room[::step] = x
            for operand in (ndx.asarray(x), ndx.asarray(room)[::step]):
                for other in (1, 2, 3, -1, -2):
                    out = ndx.zeros(count * abs(other), dtype=ndx.bool)
                    getattr(ndx, name)(operand, out=out[::other])
                    assert out[::other].tolist() == expected
                    assert int(ndx.sum(out)) == sum(expected)
                wide = ndx.zeros((count, 3), dtype=ndx.bool)
                getattr(ndx, name)(operand, out=wide[:, 1])
                assert wide[:, 1].tolist() == expected


def complex_results(name, a, b, dtype):
    """Return a function's values at a point, its conjugate, and minus the point."""
    function = getattr(ndx, name)
    values = []
    for point in (complex(a, b), complex(a, -b), complex(-a, -b)):
        x = ndx.empty(3, dtype=dtype)
        x[...] = point
        values.append(function(x)[1].item())
    return values


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(("a", "b"), list(itertools.product(POINTS, POINTS)))
def test_symmetries_at_all_points(a, b, dtype):
    for name in ("expm1", "tan", "tanh"):
        value, conjugate, negative = complex_results(name, a, b, dtype)
        assert same(conjugate.real, value.real)
        assert same(conjugate.imag, -value.imag) or isnan(b)
        if name != "expm1":
            assert same(negative.real, -value.real)
            assert same(negative.imag, -value.imag)
    # The standard defines tan by tanh.
    tangent = complex_results("tan", a, b, dtype)[0]
    hyperbolic = complex_results("tanh", -b, a, dtype)[0]
    assert same(tangent.real, hyperbolic.imag)
    assert same(tangent.imag, -hyperbolic.real)


EXPM1 = {
    (-0.0, 0.0): (0.0, 0.0),
    (1.0, inf): (nan, nan),
    (1.0, nan): (nan, nan),
    (inf, 0.0): (inf, 0.0),
    (-inf, 3.0): (-1.0, 0.0),
    (-inf, -3.0): (-1.0, -0.0),
    (inf, 3.0): (-inf, inf),
    (-inf, inf): (-1.0, 0.0),
    (inf, inf): (inf, nan),
    (-inf, nan): (-1.0, 0.0),
    (inf, nan): (inf, nan),
    (nan, 0.0): (nan, 0.0),
    (nan, 1.0): (nan, nan),
    (nan, nan): (nan, nan),
}
TANH = {
    (0.0, 0.0): (0.0, 0.0),
    (1.0, inf): (nan, nan),
    (0.0, inf): (0.0, nan),
    (1.0, nan): (nan, nan),
    (0.0, nan): (0.0, nan),
    (inf, 3.0): (1.0, 0.0),
    (inf, 1.0): (1.0, 0.0),
    (inf, 1e30): (1.0, 0.0),
    (inf, inf): (1.0, 0.0),
    (inf, nan): (1.0, 0.0),
    (nan, 0.0): (nan, 0.0),
    (nan, 1.0): (nan, nan),
    (nan, nan): (nan, nan),
}


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(
    ("name", "point", "expected"),
    [("expm1", *row) for row in EXPM1.items()]
    + [("tanh", *row) for row in TANH.items()],
)
def test_complex_points(name, point, expected, dtype):
    value = complex_results(name, *point, dtype)[0]
    assert same(value.real, expected[0])
    # The sign of an imaginary 0 is free where the argument is not finite.
    assert same(value.imag, expected[1]) or (value.imag == expected[1] == 0)


@pytest.mark.parametrize("dtype", COMPLEX)
@given(st.lists(st.complex_numbers(max_magnitude=50, allow_nan=False), max_size=9))
def test_complex_ordinary_numbers(dtype, numbers):
    a = np.asarray(numbers, dtype=dtype)
    eps = np.finfo(dtype).eps
    for name in ("expm1", "tan", "tanh"):
        found = np.asarray(getattr(ndx, name)(ndx.asarray(a)))
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a.astype("complex128"))
        # Near a pole a rounding of the argument is a large change of the result.
        scale = np.maximum(1, np.abs(expected)) if name != "expm1" else 1
        error = np.abs(found - expected.astype(dtype))
        assert np.all(error <= 64 * eps * scale * np.abs(expected) + 1e-300)
