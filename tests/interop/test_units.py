"""Quantities of pint and astropy as operands: the units are kept on both sides."""

import operator

import numpy as np
import pytest

import ndx
import ndx.numpy

SAME_UNIT = [
    operator.add, operator.sub, operator.mod, operator.floordiv, divmod,
    operator.eq, operator.lt, operator.ge,
]  # fmt: skip
ANY_UNIT = [operator.mul, operator.truediv]
MATRIX = [[1.0, 2.0], [3.0, 4.0]]


def both_sides(compute, array, quantity):
    return compute(array, quantity), compute(quantity, array)


def assert_alike(found, expected, parts):
    """Compare values, units and whether they are quantities."""
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, parts)
        return
    found, expected = parts(found), parts(expected)
    assert found[1:] == expected[1:]
    np.testing.assert_array_equal(np.asarray(found[0]), np.asarray(expected[0]))


# ---- pint ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def registry():
    return pytest.importorskip("pint").UnitRegistry()


def parts_of_pint(x):
    return (x.magnitude, str(x.units)) if hasattr(x, "units") else (x, None)


@pytest.mark.parametrize(
    "compute", [*ANY_UNIT, operator.matmul], ids=lambda f: f.__name__
)
def test_pint_keeps_the_unit(registry, compute):
    quantity = np.array([[0.0, 1.0], [5.0, 2.0]]) * registry.metre
    with np.errstate(divide="ignore"):
        expected = both_sides(compute, np.array(MATRIX), quantity)
    found = both_sides(compute, ndx.asarray(MATRIX), quantity)
    assert_alike(found, expected, parts_of_pint)
    assert all(hasattr(x, "units") for x in found)


@pytest.mark.parametrize(
    "compute", [f for f in SAME_UNIT if f is not divmod], ids=lambda f: f.__name__
)
def test_pint_compares_and_adds_numbers_without_a_unit(registry, compute):
    quantity = np.array([2.0, 1.0]) * registry.dimensionless
    expected = both_sides(compute, np.array(MATRIX), quantity)
    found = both_sides(compute, ndx.asarray(MATRIX), quantity)
    assert_alike(found, expected, parts_of_pint)


def test_pint_refuses_what_has_another_unit(registry):
    pint = pytest.importorskip("pint")
    quantity = np.array([2.0, 1.0]) * registry.metre
    for compute in (operator.add, operator.sub):
        for operands in ((ndx.ones(2), quantity), (quantity, ndx.ones(2))):
            with pytest.raises(pint.DimensionalityError):
                compute(*operands)
    with pytest.raises(ValueError, match="Cannot compare"):
        quantity < ndx.ones(2)  # noqa: B015


def test_an_array_of_ndx_gets_a_unit(registry):
    x = ndx.asarray([1.0, 2.0])
    for found in (x * registry.metre, registry.metre * x):
        assert str(found.units) == "meter"
        assert isinstance(found.magnitude, ndx.NDArray)


# ---- astropy -------------------------------------------------------------------


@pytest.fixture(scope="module")
def units():
    return pytest.importorskip("astropy.units")


def parts_of_astropy(x):
    return (x.value, str(x.unit)) if hasattr(x, "unit") else (x, None)


@pytest.mark.parametrize(
    "compute", [*ANY_UNIT, operator.matmul], ids=lambda f: f.__name__
)
def test_astropy_keeps_the_unit(units, compute):
    quantity = np.array([[0.5, 1.0], [5.0, 2.0]]) * units.m
    expected = both_sides(compute, np.array(MATRIX), quantity)
    found = both_sides(compute, ndx.asarray(MATRIX), quantity)
    assert_alike(found, expected, parts_of_astropy)
    assert all(type(x) is units.Quantity for x in found)


@pytest.mark.parametrize("compute", SAME_UNIT, ids=lambda f: f.__name__)
def test_astropy_compares_and_adds_numbers_without_a_unit(units, compute):
    quantity = np.array([2.0, 1.0]) * units.dimensionless_unscaled
    expected = both_sides(compute, np.array(MATRIX), quantity)
    found = both_sides(compute, ndx.asarray(MATRIX), quantity)
    assert_alike(found, expected, parts_of_astropy)


def test_astropy_refuses_what_has_another_unit(units):
    quantity = np.array([2.0, 1.0]) * units.m
    for compute in (operator.add, operator.sub, operator.lt):
        for operands in ((ndx.ones(2), quantity), (quantity, ndx.ones(2))):
            with pytest.raises(units.UnitsError):
                compute(*operands)


@pytest.mark.parametrize("np_", [np, ndx.numpy], ids=["numpy", "ndx.numpy"])
def test_functions_keep_the_unit(units, np_):
    quantity = np.array([2.0, 1.0]) * units.m
    x = ndx.asarray([1.0, 2.0])
    for found, unit in (
        (np_.multiply(x, quantity), "m"),
        (np_.multiply(quantity, x), "m"),
        (np_.sqrt(quantity), "m(1/2)"),
        (np_.sum(quantity), "m"),
        (np_.dot(x, quantity), "m"),
        (np_.concatenate([quantity, quantity]), "m"),
    ):
        assert type(found) is units.Quantity
        assert found.unit.to_string("generic") == units.Unit(unit).to_string("generic")
