"""Random numbers: NumPy's streams, in memory of ours."""

import array
import collections
import pickle

import numpy as np
import pytest

import ndx

FILLED = {
    "random": lambda rng: rng.random((2, 3)),
    "uniform": lambda rng: rng.uniform(-1.0, 2.0, (2, 3)),
    "normal": lambda rng: rng.normal(1.0, 2.0, (2, 3)),
    "standard_normal": lambda rng: rng.standard_normal((2, 3)),
    "exponential": lambda rng: rng.exponential(2.0, (2, 3)),
    "integers": lambda rng: rng.integers(-5, 5, (2, 3)),
    "permutation": lambda rng: rng.permutation(6),
    "choice": lambda rng: rng.choice(6, (2, 3)),
}


@pytest.mark.parametrize("name", FILLED)
def test_the_same_numbers_as_numpys(name):
    found = FILLED[name](ndx.random.default_rng(3))
    expected = FILLED[name](np.random.default_rng(3))
    assert isinstance(found, ndx.NDArray)
    assert found.backend is ndx.current_backend()
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15)


@pytest.mark.parametrize("name", FILLED)
def test_in_a_workspace(name):
    with ndx.workspace(size="64KiB") as workspace:
        assert FILLED[name](ndx.random.default_rng(3)).workspace == workspace.name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", ["random", "uniform", "normal", "standard_normal", "exponential"]
)
def test_sizes_and_dtypes(name, dtype):
    method = getattr(ndx.random.default_rng(3), name)
    assert method(dtype=dtype).shape == ()
    assert method(size=4, dtype=dtype).shape == (4,)
    assert method(size=(2, 0), dtype=dtype).shape == (2, 0)
    assert method(size=4, dtype=dtype).dtype == dtype
    with pytest.raises(TypeError, match="not real floating-point"):
        method(size=4, dtype="int64")


def test_integers():
    rng = ndx.random.default_rng(3)
    found = rng.integers(3, size=1000, dtype="uint8", endpoint=True)
    assert found.dtype == "uint8"
    assert ndx.unique_values(found).tolist() == [0, 1, 2, 3]
    assert rng.integers(1).shape == ()
    with pytest.raises(ValueError, match="low >= high"):
        rng.integers(3, 3)


def test_permutation_and_shuffle():
    rng = ndx.random.default_rng(3)
    x = ndx.reshape(ndx.arange(12), (4, 3))
    found = rng.permutation(x, axis=1)
    assert ndx.sort(found, axis=1).tolist() == x.tolist()
    y = ndx.asarray(x, copy=True)
    rng.shuffle(y)
    assert ndx.sort(y, axis=0).tolist() == x.tolist()
    with pytest.raises(ValueError, match="read-only"):
        rng.shuffle(ndx.broadcast_to(x[0], (4, 3)))
    with pytest.raises(ValueError, match="out of range"):
        rng.shuffle(x, axis=2)


def test_choice():
    rng = ndx.random.default_rng(3)
    x = ndx.reshape(ndx.arange(12), (4, 3))
    assert rng.choice(x, (2, 5), axis=1).shape == (4, 2, 5)
    assert rng.choice(x, axis=-1).shape == (4,)
    p = ndx.asarray([0.0, 0.0, 1.0])
    assert rng.choice(x, 2, p=p, axis=1).tolist() == [[2, 2], [5, 5], [8, 8], [11, 11]]
    found = rng.choice(x, 4, replace=False)
    assert ndx.sort(found, axis=0).tolist() == x.tolist()
    with pytest.raises(ValueError, match="larger sample"):
        rng.choice(x, 5, replace=False)


def test_parameters_are_checked():
    rng = ndx.random.default_rng(3)
    with pytest.raises(ValueError, match="scale=-1"):
        rng.normal(scale=-1.0)
    with pytest.raises(ValueError, match="scale=-1"):
        rng.exponential(-1.0)


def test_generators():
    rng = ndx.random.default_rng(3)
    assert repr(rng) == "Generator(PCG64)"
    assert ndx.random.default_rng(rng) is rng
    copy = pickle.loads(pickle.dumps(rng))
    assert copy.random(5).tolist() == rng.random(5).tolist()
    first, second = rng.spawn(2)
    assert first.random(5).tolist() != second.random(5).tolist()


PARAMETERS = {
    "integers": [([1, 20, 300],), (0, [1, 20, 300]), ([[0], [5]], [10, 20, 30])],
    "uniform": [([0.0, 1.0],), (-1, [1.0, 2.0, 3.0]), ([[0.0], [1.0]], [2.0, 3.0])],
    "normal": [([1.0, 2.0],), (0.0, [1.0, 2.0, 0.0]), ([[0.0], [1.0]], [2.0, 3.0])],
    "exponential": [([1.0, 2.0, 0.0],), ([[1.0], [2.0]],)],
}


@pytest.mark.parametrize("wrap", [ndx.asarray, list, np.asarray])
@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_that_are_arrays(name, wrap):
    for parameters in PARAMETERS[name]:
        wrapped = [wrap(x) if isinstance(x, list) else x for x in parameters]
        for size in (None, (4, *np.broadcast(*parameters, 0).shape)):
            expected = getattr(np.random.default_rng(5), name)(*parameters, size=size)
            found = getattr(ndx.random.default_rng(5), name)(*wrapped, size=size)
            assert isinstance(found, ndx.NDArray)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15)


@pytest.mark.parametrize("name", ["normal", "exponential"])
def test_negative_scales(name):
    rng = ndx.random.default_rng(5)
    before = rng.bit_generator.state
    for scale in (-1.0, ndx.asarray([1.0, -1.0]), [1.0, -1.0]):
        with pytest.raises(ValueError, match="is negative"):
            getattr(rng, name)(scale=scale)
    assert rng.bit_generator.state == before


def test_parameters_of_small_integers_do_not_wrap_around():
    for low, high, dtype in (
        ([-100], [100], "int8"), ([0, 50], [200, 100], "uint8"),
        ([-(2**63)], [2**63 - 1], "int64"), ([False], [True], "bool"),
    ):  # fmt: skip
        low, high = np.array(low, dtype), np.array(high, dtype)
        expected = np.random.default_rng(0).uniform(low.astype(float), high)
        for wrap in (ndx.asarray, np.asarray):
            found = ndx.random.default_rng(0).uniform(wrap(low), wrap(high))
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15)
    found = ndx.random.default_rng(0).uniform(np.int8(-100), np.int8(100))
    assert -100 <= float(found) < 100


@pytest.mark.parametrize(
    "high", [range(5, 8), collections.deque([5, 6]), array.array("l", [5, 6])], ids=str
)
def test_parameters_that_are_other_sequences(high):
    for name in ("integers", "uniform", "normal"):
        expected = getattr(np.random.default_rng(0), name)(0, high)
        found = getattr(ndx.random.default_rng(0), name)(0, high)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15)


def test_an_exclusive_bound_of_unsigned_integers():
    found = ndx.random.default_rng(0).integers([0], [2**64], dtype="uint64")
    expected = np.random.default_rng(0).integers([0], [2**64], dtype="uint64")
    assert found.tolist() == expected.tolist()
