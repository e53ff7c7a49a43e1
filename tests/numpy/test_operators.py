"""Operators as programs for NumPy use them: powers, counts, lists, other classes."""

import contextlib
import gc
import math
import operator
import weakref

import numpy as np
import pytest
from helpers.numpy_versions import since

import ndx
import ndx.numpy

OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.ge,
]


# ---- powers ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("exponent", [2, 2.0, -1, -1.0, 3, 0, 1, np.float64(2)])
def test_powers_are_numpys(dtype, exponent):
    a = np.random.default_rng(1).normal(size=1000) * 5
    a = np.where(a == 0, 1, a).astype(dtype)
    x = ndx.asarray(a, copy=True)
    if exponent == -1 and type(exponent) is int and a.dtype.kind == "i":
        for array in (a, x):
            with pytest.raises(ValueError, match="negative integer powers"):
                array**exponent
        return
    with np.errstate(all="ignore"):
        expected = a**exponent
    found = x**exponent
    if not since("operators promote floats that are exponents") and isinstance(
        exponent, float
    ):
        with np.errstate(all="ignore"):
            expected = np.power(a, exponent)
    assert found.dtype == expected.dtype
    if exponent in (2, -1) and type(exponent) is not np.float64:
        np.testing.assert_array_equal(np.asarray(found), expected)
    else:
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_bools_to_powers_are_numpys():
    a = np.array([True, False])
    for exponent in (0, 1, 2, 3, 2.0, -1.0, True, np.int64(2)):
        if type(exponent) is not int and not since(
            "operators promote floats that are exponents"
        ):
            continue
        for base, power in ((a, exponent), (ndx.asarray(a), exponent)):
            if isinstance(base, np.ndarray):
                with np.errstate(all="ignore"):
                    expected = attempt(lambda: base**power)  # noqa: B023
            else:
                found = attempt(lambda: base**power)  # noqa: B023
        if exponent is True:
            assert found is TypeError  # the standard has no powers of bools
        else:
            assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
    x = ndx.asarray(a)
    for exponent in (-1, 2, 3):
        with pytest.raises((TypeError, ValueError)):
            x **= exponent
    assert x.tolist() == [True, False]
    with pytest.raises(ValueError, match="negative integer powers"):
        x**-1
    fused = ndx.fuse(lambda x: x**2)(x)
    assert (str(fused.dtype), fused.tolist()) == ("int8", [1, 0])


def attempt(compute):
    try:
        return compute()
    except TypeError:
        return TypeError


COMPLEX = np.array([0, -0.0, 1e-320, 3 + 4j, np.inf, 1j * np.inf, -2, np.nan, 1e200])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("exponent", [2, -1, 0.5])
def test_complex_powers_are_those_of_numpys_operator_and_function(dtype, exponent):
    with np.errstate(all="ignore"):
        a = COMPLEX.astype(dtype)
        by_operator, by_function = a**exponent, np.power(a, exponent)
    x = ndx.asarray(a, copy=True)
    same = np.testing.assert_array_equal
    same(np.asarray(x**exponent), by_operator)
    same(np.asarray(ndx.numpy.power(x, exponent)), by_function)
    same(np.asarray(np.power(x, exponent)), by_function)
    same(np.asarray(ndx.fuse(lambda x: x**exponent)(x)), by_operator)
    x **= exponent
    same(np.asarray(x), by_operator)


def test_square_roots_of_complex_numbers_do_not_underflow():
    x = ndx.asarray([0j, 3 + 4j, 1e-320 + 0j])
    with ndx.numpy.errstate(all="raise"):
        found = x[:2] ** 0.5
    np.testing.assert_array_equal(np.asarray(found), [0, 2 + 1j])


def test_bools_have_absolute_values():
    x = ndx.asarray([True, False])
    found = abs(x)
    assert found.tolist() == [True, False]
    found[0] = False
    assert x.tolist() == [True, False]
    with pytest.raises(TypeError, match="does not take bool"):
        ndx.abs(x)


@pytest.mark.parametrize("value", [2.7, -2.7, 3, 1e300])
def test_elements_are_rounded_and_truncated_to_ints(value):
    for x in (ndx.asarray(value), ndx.asarray([value])[0]):
        assert (type(round(x)), round(x)) == (int, round(value))
        assert (type(math.trunc(x)), math.trunc(x)) == (int, math.trunc(value))
    assert list(range(round(ndx.asarray([2.0, 3.0]).max()))) == [0, 1, 2]
    with pytest.raises(TypeError):
        math.trunc(ndx.asarray([value, value]))
    for invalid, error in ((math.nan, ValueError), (math.inf, OverflowError)):
        for function in (round, math.trunc):
            with pytest.raises(error):
                function(ndx.asarray(invalid))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 0.0, -0.0])
@pytest.mark.parametrize("exponent", [2, 2.0, -1, -1.0])
def test_special_values_to_powers(value, exponent):
    expected = math.nan if math.isnan(value) else None
    if expected is None:
        with np.errstate(all="ignore"):
            expected = float(
                np.power(np.full(2, value), np.full(2, float(exponent)))[0]
            )
    found = float((ndx.full(3, value) ** exponent)[0])
    np.testing.assert_equal(found, expected)
    assert math.copysign(1, found) == math.copysign(1, expected) or math.isnan(found)


def test_powers_in_place():
    x = ndx.asarray([1.5, -2.0])
    before = x
    x **= 2
    assert before is x
    assert x.tolist() == [2.25, 4.0]
    x **= -1
    assert x.tolist() == [1 / 2.25, 0.25]


# ---- counts ------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_an_array_of_one_element_is_true_or_false(shape):
    assert ndx.ones(shape)
    assert not ndx.zeros(shape)
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(ndx.zeros((*shape, 0)))
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(ndx.zeros((*shape, 2)))


# ---- subclasses of NumPy's array ---------------------------------------------


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrices_stay_matrices():
    m = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    x = ndx.asarray([[0.0, 1.0], [1.0, 1.0]])
    a = np.asarray(x).copy()
    for found, expected in (
        (m @ x, m @ a),
        (x @ m, a @ m),
        (m + x, m + a),
        (x + m, a + m),
        # A product of matrices, which `*` of arrays is not.
        (m * x, m * a),
        (x * m, a * m),
    ):
        assert type(found) is np.matrix
        np.testing.assert_array_equal(found, expected)


class Metres(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(x) for x in inputs]
        return getattr(ufunc, method)(*plain, **kwargs).view(Metres)


def test_a_subclass_that_computes_itself_has_its_turn():
    length = np.array([1.0, 2.0]).view(Metres)
    x = ndx.asarray([3.0, 4.0])
    for found in (x + length, length + x, np.add(x, length), np.add(length, x)):
        assert type(found) is Metres
        assert found.tolist() == [4.0, 6.0]


def test_a_file_mapped_by_numpy_is_an_array_as_any(tmp_path):
    mapped = np.memmap(tmp_path / "m", dtype=float, mode="w+", shape=3)
    mapped[:] = 2
    x = ndx.ones(3)
    for found in (x + mapped, mapped * x, np.subtract(x, mapped)):
        assert isinstance(found, ndx.NDArray)


# ---- callbacks ---------------------------------------------------------------


def test_functions_that_numpy_calls_get_ndarrays():
    xp = ndx.numpy
    x = xp.arange(6.0).reshape(2, 3)
    seen = []

    def look(v, *rest):
        seen.append((type(v), *map(type, rest)))
        return v.sum()

    for call in (np, xp):
        assert call.apply_along_axis(look, 1, x, x).tolist() == [3.0, 12.0]
        assert call.apply_over_axes(
            lambda v, k: v.sum(k, keepdims=True), x, [0]
        ).shape == (
            1,
            3,
        )
        found = call.piecewise(x[0], [x[0] < 1], [0.5, lambda v: look(v) + v])
        assert found.tolist() == [0.5, 4.0, 5.0]
    grid = xp.fromfunction(lambda i, j: look(i) + i + j, (2, 2), dtype=np.float32)
    assert grid.dtype == np.float32
    assert isinstance(grid, ndx.NDArray)
    assert {kind for kinds in seen for kind in kinds} == {ndx.NDArray}


def test_views_that_a_callback_keeps_are_of_the_array():
    x = ndx.zeros((2, 3))
    kept = []
    np.apply_along_axis(lambda v: kept.append(v) or v.sum(), 1, x)
    kept[0][1] = 5
    assert float(x[0, 1]) == 5


def fails(*args):
    raise ZeroDivisionError


CALLBACKS = {
    "apply_along_axis": lambda xp, x, f: xp.apply_along_axis(f, 0, x),
    "by name": lambda xp, x, f: xp.apply_along_axis(func1d=f, axis=0, arr=x),
    "apply_over_axes": lambda xp, x, f: xp.apply_over_axes(lambda v, _: f(v), x, [0]),
    "piecewise": lambda xp, x, f: xp.piecewise(x, [x > 0], [f]),
    "fromfunction": lambda xp, x, f: xp.fromfunction(lambda i, _: f(x + i), (2, 2)),
}


@pytest.mark.parametrize("function", [np.copy, fails])
@pytest.mark.parametrize("name", CALLBACKS)
def test_nothing_is_left_to_the_collector(name, function):
    # A cycle would keep arrays, and pin their ranges of a workspace.
    x = ndx.numpy.ones((2, 2))
    gone = weakref.ref(x)
    gc.disable()
    try:
        with contextlib.suppress(ZeroDivisionError):
            CALLBACKS[name](ndx.numpy, x, function)
        del x
        assert gone() is None
    finally:
        gc.enable()


# ---- generators --------------------------------------------------------------


def test_generators_are_numpys_too():
    rng = ndx.numpy.random.default_rng(1)
    assert isinstance(rng, np.random.Generator)
    assert isinstance(ndx.numpy.random.RandomState(1), np.random.RandomState)
    assert np.random.default_rng(rng) is rng
    assert all(type(child) is type(rng) for child in rng.spawn(2))


def test_scipy_takes_a_generator():
    sparse = pytest.importorskip("scipy.sparse")
    found = sparse.random(
        20, 30, density=0.2, random_state=ndx.numpy.random.default_rng(3)
    )
    expected = sparse.random(20, 30, density=0.2, random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
