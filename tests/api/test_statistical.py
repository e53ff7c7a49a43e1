"""Sums and other reductions against NumPy's: values, accuracy, all layouts and axes."""

import math

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same
from helpers.numpy_versions import needs_part

import ndx
import ndx.numpy

RNG = np.random.default_rng(0)


# ---- accuracy ----------------------------------------------------------------

LARGE = {
    "contiguous": np.s_[:, :],
    "every other column": np.s_[:, ::2],
    "every other row": np.s_[::2],
    "reversed": np.s_[::-1, ::-1],
    "a few columns": np.s_[:, 3:9],
}
BASE = RNG.random((1200, 900), dtype=np.float32) + 1


@pytest.mark.parametrize("layout", LARGE)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), (1, 0)])
def test_float32_sums_are_as_good_as_numpys(layout, transposed, axis):
    a = BASE[LARGE[layout]]
    a = a.T if transposed else a
    exact = np.sum(a, axis=axis, dtype=np.float64)
    found = np.asarray(ndx.sum(ndx.asarray(a), axis=axis), dtype=np.float64)
    error = np.max(np.abs(found - exact) / exact)
    of_numpy = np.max(np.abs(np.sum(a, axis=axis).astype(np.float64) - exact) / exact)
    assert error <= max(2 * of_numpy, 4e-7), (error, of_numpy)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (0, 2), (1, 2), (2, 0)])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)])
def test_float32_sums_of_cubes(axis, order):
    a = (RNG.random((100, 90, 80), dtype=np.float32) + 1).transpose(order)
    exact = np.sum(a, axis=axis, dtype=np.float64)
    found = np.asarray(ndx.sum(ndx.asarray(a), axis=axis), dtype=np.float64)
    of_numpy = np.max(np.abs(np.sum(a, axis=axis) - exact) / exact)
    assert np.max(np.abs(found - exact) / exact) <= max(2 * of_numpy, 4e-7)


def test_a_float32_sum_of_ones():
    """It stops at 2**24 where each is added to the last sum."""
    x = ndx.ones((2, 2**24), dtype="float32")
    assert ndx.sum(x, axis=1).tolist() == [2.0**24] * 2
    assert float(ndx.sum(x)) == 2.0**25
    assert float(ndx.mean(x)) == 1.0


def test_mean_and_var_of_float32():
    a = BASE[:, ::2]
    x = ndx.asarray(a)
    assert math.isclose(float(ndx.mean(x)), a.mean(dtype=np.float64), rel_tol=1e-6)
    assert math.isclose(float(ndx.var(x)), a.var(dtype=np.float64), rel_tol=1e-5)
    # A large mean does not drown the deviations.
    y = ndx.asarray(np.float32([1e4, 1e4 + 1, 1e4 + 2] * 100))
    assert math.isclose(float(ndx.var(y)), 2 / 3, rel_tol=1e-4)


# ---- large arrays, which are computed without the GIL ------------------------


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "any", "all"])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("transposed", [False, True])
def test_large(name, axis, transposed):
    a = RNG.integers(-3, 4, (300, 250))
    a = a.T if transposed else a
    expected = np.asarray(getattr(np, name)(a, axis=axis))
    assert_same(getattr(ndx, name)(ndx.asarray(a), axis=axis), expected)


# ---- special values ----------------------------------------------------------


@needs_part("loops")
def test_negative_zero():
    for values in ([-0.0], [-0.0, -0.0], [[-0.0, -0.0], [-0.0, -0.0]], [-0.0, 0.0]):
        a = np.array(values)
        for axis in (None, 0):
            # NumPy starts from 0.0, which takes the sign.
            total = np.asarray(ndx.sum(ndx.asarray(a), axis=axis))
            assert np.signbit(total).all() == np.signbit(a).all()
            assert_same(ndx.max(ndx.asarray(a), axis=axis), np.max(a, axis=axis))
    assert_same(ndx.sum(ndx.zeros(0)), np.array(0.0))
    assert_same(ndx.sum(ndx.zeros((2, 0)), axis=1), np.zeros(2))
    assert_same(ndx.prod(ndx.zeros(0)), np.array(1.0))


def test_nan_wins():
    for position in range(20):
        a = RNG.random(20)
        a[position] = np.nan
        for dtype in dtypes.FLOATS:
            x = ndx.asarray(a.astype(dtype))
            for function in (ndx.max, ndx.min, ndx.sum, ndx.mean, ndx.std):
                assert math.isnan(function(x).item())
            assert bool(ndx.any(x))


def test_infinities():
    x = ndx.asarray([np.inf, 1.0])
    assert float(ndx.sum(x)) == np.inf
    assert math.isnan(float(ndx.sum(ndx.asarray([np.inf, -np.inf]))))
    assert np.asarray(ndx.sum(ndx.asarray([complex(np.inf, 0), 1]))).real == np.inf


def test_integers_wrap_in_64_bits():
    assert ndx.sum(ndx.full(2, 2**62)).tolist() == -(2**63)
    assert ndx.sum(ndx.full(300, 127, dtype="int8")).tolist() == 38100
    assert ndx.sum(ndx.ones(300, dtype="bool")).tolist() == 300
    assert ndx.prod(ndx.full(20, 200, dtype="uint8")).dtype == "uint64"
    assert ndx.sum(ndx.ones(3, dtype="int8"), dtype="int8").dtype == "int8"
    assert ndx.sum(ndx.ones(3), dtype="float32").dtype == "float32"
    assert ndx.sum(ndx.asarray([1e300, -1e300]), dtype="float32").dtype == "float32"


# ---- axes of no length, bad arguments ----------------------------------------


@pytest.mark.parametrize("name", ["max", "min"])
def test_no_largest_of_nothing(name):
    function = getattr(ndx, name)
    for x, axis in (
        (ndx.zeros(0), None),
        (ndx.zeros((2, 0)), 1),
        (ndx.zeros((0, 3)), 0),
    ):
        with pytest.raises(ValueError, match="no (maximum|minimum|max|min)"):
            function(x, axis=axis)
    assert function(ndx.zeros((0, 3)), axis=1).shape == (0,)
    assert function(ndx.zeros((2, 0, 3)), axis=0).shape == (0, 3)


def test_means_of_nothing():
    assert math.isnan(float(ndx.mean(ndx.zeros(0))))
    assert math.isnan(float(ndx.var(ndx.zeros(0))))
    assert np.isnan(np.asarray(ndx.std(ndx.zeros((2, 0)), axis=1))).all()
    assert ndx.mean(ndx.zeros((0, 3)), axis=1).shape == (0,)


@pytest.mark.parametrize("function", [ndx.std, ndx.var])
def test_bad_corrections(function):
    for wrong in ("a", None):
        with pytest.raises(TypeError, match="correction must be an int or float"):
            function(ndx.ones(3), correction=wrong)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "std", "any", "argmax"])
def test_bad_axes(name):
    function = getattr(ndx, name)
    x = ndx.ones((2, 3))
    for axis in (2, -3, 10**20):
        with pytest.raises(ValueError, match="axis .* is out of range"):
            function(x, axis=axis)
    with pytest.raises(TypeError):
        function(x, axis=1.5)
    with pytest.raises(TypeError):
        function(x, axis="0")
    with pytest.raises(ValueError, match="axes"):
        function(ndx.asarray(1.0), axis=0)
    if name != "argmax":
        with pytest.raises(ValueError, match="twice"):
            function(x, axis=(0, 0))
        with pytest.raises(ValueError, match="twice"):
            function(x, axis=(0, -2))


def test_axes_of_all_kinds():
    x = ndx.ones((2, 3))
    for axis in (1, -1, (1,), [1], np.int64(1), np.array(1), ndx.asarray(1)):
        assert ndx.sum(x, axis=axis).tolist() == [3.0, 3.0]
    assert ndx.sum(x, axis=()).shape == (2, 3)


def test_no_axes_at_all():
    a = np.arange(6.0).reshape(2, 3)
    x = ndx.asarray(a)
    for name in ("sum", "max", "mean", "std"):
        found = getattr(ndx, name)(x, axis=())
        assert_same(found, getattr(np, name)(a, axis=()))
        assert not np.shares_memory(np.asarray(found), a)


def test_means_are_divided_in_double_precision():
    a = np.asarray([0, 2047j, 2047j, 4 + 1j, 5 - 3j, 7], dtype="complex64")
    # So many elements that float32 does not have their number.
    b = np.broadcast_to(np.float32([1, 2, 3]), (2**24 // 3 + 8, 3))
    for mean in (ndx.mean, ndx.numpy.mean, ndx.fuse(ndx.mean)):
        for n in range(1, 7):
            assert_same(mean(ndx.asarray(a[:n])), np.mean(a[:n]))
        assert_same(mean(ndx.asarray(b)), np.float32(np.sum(b, dtype="f8") / b.size))
    for correction in (0.1, 1.7):
        x = ndx.asarray([1.0, 2.5, 4.0], dtype="float32")
        found = ndx.var(x, correction=correction)
        assert_same(found, np.float32(4.5 / (3 - correction)))


@pytest.mark.parametrize("name", ["sum", "max", "mean", "std", "all"])
def test_what_is_no_array(name):
    for bad in ([1, 2], None, 1.5, "a"):
        with pytest.raises(TypeError, match="ndx.asarray"):
            getattr(ndx, name)(bad)
    assert_same(getattr(ndx, name)(np.ones(3)), getattr(np, name)(np.ones(3)))


def test_complex_has_no_order():
    x = ndx.ones(3, dtype="complex128")
    for function in (ndx.var, ndx.std):
        with pytest.raises(TypeError):
            function(x)


@pytest.mark.parametrize(
    "axis", [True, np.True_, (0, True), range(2), iter(()), np.ones(1), ndx.zeros(0)]
)
def test_what_is_no_axis(axis):
    x = ndx.ones((2, 3))
    for call in (ndx.sum, ndx.max, ndx.any, ndx.squeeze, ndx.NDArray.sum):
        with pytest.raises(TypeError, match=r"axis must be an int.*, not"):
            call(x, axis=axis)
