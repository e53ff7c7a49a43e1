"""Functions that numba compiles take NDArrays."""

import gc

import numpy as np
import pytest
from helpers.consumers import FEATURES

import ndx
from ndx.testing import assert_allclose

numba = pytest.importorskip("numba")


@numba.njit
def total(x):
    result = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            result += x[i, j]
    return result


@numba.njit
def rest(x):
    return x[1:]


@numba.njit
def double(x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] *= 2


def test_computes_on_ndarrays():
    x = ndx.asarray(FEATURES)
    for each in (x, x[::2, 1:], x.T):
        assert total(each) == pytest.approx(float(ndx.sum(each)))


def test_takes_numpy_arrays_as_before():
    assert total(np.ones((2, 3))) == 6.0


def test_writes_into_the_memory():
    x = ndx.asarray(FEATURES, copy=True)
    double(x)
    assert_allclose(x, 2 * FEATURES)


def test_refuses_to_write_into_read_only_memory():
    x = np.zeros((2, 3))
    x.flags.writeable = False
    with pytest.raises(numba.TypingError):
        double(ndx.asarray(x))


def test_results_keep_the_memory():
    x = ndx.asarray(FEATURES, copy=True)
    found = rest(x)
    assert type(found) is np.ndarray
    with pytest.raises(BufferError):
        x.close()
    del x
    gc.collect()
    assert np.array_equal(found, FEATURES[1:])


def test_a_finished_call_keeps_nothing():
    x = ndx.ones((2, 3))
    total(x)
    x.close()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex128"])
def test_knows_the_dtypes(dtype):
    x = ndx.ones((2, 3), dtype=dtype)
    kind = numba.typeof(x)
    assert kind.dtype == numba.typeof(np.asarray(x)).dtype
    assert (kind.ndim, kind.layout, kind.mutable) == (2, "C", True)


def test_refuses_stale_and_closed_arrays():
    with ndx.workspace():
        x = ndx.ones((2, 3))
        assert total(x) == 6.0
    with pytest.raises(ndx.StaleArrayError):
        total(x)
    y = ndx.ones((2, 3))
    y.close()
    with pytest.raises(ndx.StaleArrayError):
        # What the dispatcher calls when it has found the types.
        total.overloads[(numba.typeof(ndx.ones((2, 3))),)].entry_point(y)


def test_ufuncs_give_ndarrays():
    @numba.vectorize
    def plus(a, b):
        return a + b

    plus(1.0, 1.0)  # compiles it, and keeps arrays of NumPy
    found = plus(ndx.asarray(FEATURES), 1.0)
    assert isinstance(found, ndx.NDArray)
    assert_allclose(found, FEATURES + 1)
