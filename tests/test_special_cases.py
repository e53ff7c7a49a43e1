"""Special points where NumPy's results are not the standard's, and ordinary ones."""

import itertools
from fractions import Fraction
from math import copysign, floor, inf, isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndx

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


@given(FLOATS, FLOATS.filter(bool))
def test_floor_divide_is_exact(first, second):
    exact = floor(Fraction(first) / Fraction(second))
    found = float(ndx.asarray(first) // second)
    if abs(exact) < 2**53:
        assert found == exact
    elif abs(exact) < 2**1000:
        assert found == pytest.approx(exact, rel=1e-15)


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
