"""Broadcast views of more elements than there is memory for: computed, or refused."""

import copy
import functools
import math
import pickle

import numpy as np
import pytest
from helpers import arrays
from helpers.calls import CALLS, resolve
from helpers.numpy_versions import needs_part
from hypothesis import given
from hypothesis import strategies as st

import ndx

# NumPy's, of what it meant to compute; nobody who reads it knows what that was.
INTERNAL = "arr.size * arr.dtype.itemsize"


def stacked(count):
    """Each operand many times, behind a new first axis."""
    return lambda x: ndx.broadcast_to(x, (count, *x.shape))


def flat(count):
    """The first element many times."""
    return lambda x: ndx.broadcast_to(ndx.reshape(x, -1)[:1], (count,))


def square(x):
    return ndx.broadcast_to(ndx.reshape(x, -1)[:1], (2**20, 2**20))


VIEWS = {
    "a stack": stacked(2**40),
    "a long stack": stacked(2**54),
    "flat": flat(2**40),
    "flat and long": flat(2**58),
    "square": square,
}
# LAPACK's own work, of which ndx knows nothing, is for what a matrix is as large as.
BY_LAPACK = {"det", "eigvalsh", "matrix_rank", "slogdet", "svdvals"}


@pytest.fixture
def limited():
    with ndx.use("host", limit="64MiB"):
        yield


def refused(function, *args):
    """Whether a call is refused, in words that say why."""
    try:
        function(*args)
    except (ValueError, TypeError, IndexError, MemoryError, BufferError) as error:
        said = str(error)
    else:
        return False
    assert said
    assert INTERNAL not in said
    return True


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", CALLS)
def test_every_function(name, view):
    if view == "square" and name.removeprefix("linalg.") in BY_LAPACK:
        pytest.skip("LAPACK's own memory")
    operands, call = CALLS[name]
    operands = [VIEWS[view](ndx.asarray(operand)) for operand in operands]
    refused(call, resolve(ndx, name), *operands)
    for operand in operands:
        assert not operand.size or float(ndx.real(operand[(0,) * operand.ndim])) < 100


@needs_part("loops")
@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "complex64"])
def test_reductions_of_what_repeats(dtype):
    n = 2**58 if dtype != "bool" else 2**62
    n = min(n, (2**63 - 1) // np.dtype(dtype).itemsize)
    x = ndx.broadcast_to(ndx.ones((2, 1), dtype=dtype), (2, n // 2))
    n = x.size
    exact = float(np.float32(n)) if dtype == "float32" else n
    assert complex(ndx.sum(x)) == complex(exact)
    assert complex(ndx.prod(x)) == 1
    assert bool(ndx.all(x))
    assert bool(ndx.any(x))
    assert int(ndx.count_nonzero(x)) == n
    assert ndx.count_nonzero(x, axis=1).tolist() == [n // 2] * 2
    if dtype != "bool":
        assert complex(ndx.mean(x)) == 1
    if dtype not in ("bool", "complex64"):
        assert float(ndx.max(x)) == float(ndx.min(x)) == 1
        assert int(ndx.argmax(x)) == int(ndx.argmin(x)) == 0


def test_extremes_are_where_they_come_first():
    x = ndx.broadcast_to(ndx.asarray([[3], [1], [4], [1]]), (2**20, 4, 2**20))
    assert int(ndx.argmax(x)) == 2 * 2**20
    assert int(ndx.argmin(x)) == 2**20
    assert ndx.argmax(x, keepdims=True).shape == (1, 1, 1)
    assert ndx.argmax(x[:3], axis=2).tolist() == [[0] * 4] * 3
    assert ndx.argmax(x[:2, :, :3], axis=1).tolist() == [[2] * 3] * 2


def test_products_of_what_repeats():
    x = ndx.broadcast_to(ndx.asarray(2.0), (2**50,))
    assert float(ndx.vecdot(x, x)) == 2.0**52
    assert float(x @ x) == 2.0**52
    rows = ndx.broadcast_to(ndx.asarray([[1.0], [3.0]]), (2, 2**50))
    out = ndx.empty((2, 2))
    assert ndx.matmul(rows, rows.T, out=out) is out
    assert (rows @ rows.T).tolist() == out.tolist()
    assert out.tolist() == [[2.0**50, 3 * 2.0**50], [3 * 2.0**50, 9 * 2.0**50]]
    assert ndx.vecdot(rows, x).tolist() == [2.0**51, 3 * 2.0**51]
    with pytest.raises(ValueError, match="out has shape"):
        ndx.matmul(rows, rows.T, out=ndx.empty((2, 3)))


@given(arrays.pairs(max_dims=3), st.data())
def test_repetitions_count_as_numpy_counts_them(pair, data):
    a, x = pair
    shape = (data.draw(st.integers(1, 5)), *a.shape, 1)
    spread = (*shape[:-1], data.draw(st.integers(1, 5)))
    b = np.broadcast_to(a[..., None], spread)
    y = ndx.broadcast_to(ndx.expand_dims(x, -1), spread)
    axes = data.draw(st.none() | st.integers(0, b.ndim - 1))
    keepdims = data.draw(st.booleans())
    with np.errstate(all="ignore"):
        total = b.sum(axis=axes, keepdims=keepdims)
        found = np.asarray(ndx.sum(y, axis=axes, keepdims=keepdims))
        close = {
            "rtol": 1e-3 if a.dtype.itemsize < 8 or a.dtype == "complex64" else 1e-9
        }
        assert found.shape == total.shape
        big = (
            np.max(np.abs(b), initial=0, where=np.isfinite(b)) if b.dtype != bool else 1
        )
        if np.all(np.isfinite(total)) and not np.isnan(big):
            np.testing.assert_allclose(
                found, total.astype(found.dtype), atol=1e-3 * (float(big) + 1), **close
            )
    for name in ("all", "any"):
        expected = getattr(np, name)(b, axis=axes, keepdims=keepdims)
        result = getattr(ndx, name)(y, axis=axes, keepdims=keepdims)
        assert np.array_equal(np.asarray(result), expected)
    assert np.array_equal(
        np.asarray(ndx.count_nonzero(y, axis=axes)), np.count_nonzero(b, axis=axes)
    )
    if b.dtype.kind in "iuf" and b.size:
        for name in ("argmax", "argmin", "max", "min"):
            expected = getattr(np, name)(b, axis=axes, keepdims=keepdims)
            result = getattr(ndx, name)(y, axis=axes, keepdims=keepdims)
            assert np.array_equal(np.asarray(result), expected, equal_nan=True)


X = ndx.broadcast_to(ndx.asarray(1.0), (2**40,))
# What is no function of the namespace.
REFUSED = {
    "tolist": lambda: X.tolist(),
    "copy": lambda: copy.copy(X),
    "deepcopy": lambda: copy.deepcopy(X),
    "pickle": lambda: pickle.dumps(X),
    "in": lambda: 1.0 in X,
    "+": lambda: X + 1,
    "==": lambda: X == X,
    "+=": lambda: X.__iadd__(1),
    "float": lambda: float(X),
    "item": lambda: X.item(),
    "a mask": lambda: X[ndx.broadcast_to(ndx.asarray(True), X.shape)],
    "a mask of nothing": lambda: X[ndx.broadcast_to(ndx.asarray(False), X.shape)],
    "indices": lambda: X[ndx.broadcast_to(ndx.asarray(0), X.shape)],
    "more indices": lambda: square(X)[ndx.broadcast_to(ndx.asarray(0), (2**40,))],
    "unstack": lambda: ndx.unstack(X),
    "concat": lambda: ndx.concat(X),
    "stack": lambda: ndx.stack(X),
    "x[...] = 1": lambda: X.__setitem__(..., 1),
    "y[...] = x": lambda: ndx.ones(3).__setitem__(..., X),
    "np.add": lambda: np.add(X, 1),
    "permutation": lambda: ndx.random.default_rng(0).permutation(2**62),
    "random": lambda: ndx.random.default_rng(0).random(2**60),
    "integers": lambda: ndx.random.default_rng(0).integers(3, size=2**60),
    "shuffle": lambda: ndx.random.default_rng(0).shuffle(X),
    "linspace": lambda: ndx.linspace(0, 1, 2**62),
    "arange": lambda: ndx.arange(2**62),
    "eye": lambda: ndx.eye(2**31),
    "fftfreq": lambda: ndx.fft.fftfreq(2**62),
    "rfftfreq": lambda: ndx.fft.rfftfreq(2**70),
    "fft": lambda: ndx.fft.fft(ndx.ones(3), n=2**50),
    "fftn": lambda: ndx.fft.fftn(ndx.ones((3, 3)), s=(2**40, 2**30), axes=(0, 1)),
    "irfftn": lambda: ndx.fft.irfftn(ndx.ones((3, 3)), s=(2**62, 2**62), axes=(0, 1)),
    "tile": lambda: ndx.tile(ndx.ones(3), 2**50),
    "repeat": lambda: ndx.repeat(ndx.ones(3), 2**50),
    "repeat by counts": lambda: ndx.repeat(ndx.ones(4), ndx.asarray([2**62] * 4)),
    "repeat by unsigned": lambda: ndx.repeat(
        ndx.ones(2), ndx.asarray([2**63, 2**63], dtype="uint64")
    ),
}


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be(name):
    assert refused(REFUSED[name])


def test_what_needs_no_memory():
    x = ndx.broadcast_to(ndx.asarray([1.0, 2.0]), (2**58, 2))
    assert repr(x).startswith("NDArray([[1., 2.],")
    assert str(x).startswith("[[1. 2.]")
    assert x.nbytes == math.prod(x.shape) * 8
    assert next(iter(x)).tolist() == [1.0, 2.0]
    assert x[2**58 - 1, 1] == 2.0
    assert len(x) == 2**58
    assert np.from_dlpack(x).shape == x.shape
    assert x.detach() is x
    assert memoryview(x).nbytes == x.nbytes


def test_what_is_taken_from_the_elements_that_are_repeated():
    x = ndx.broadcast_to(ndx.asarray([1.0, 2.0]), (2**58, 2))
    indices = ndx.asarray([2**57, 0, -1])
    assert ndx.take(x, indices, axis=0).tolist() == [[1.0, 2.0]] * 3
    assert ndx.random.default_rng(0).choice(X, 3).shape == (3,)


def test_what_is_computed_from_the_elements_that_are_repeated():
    x = ndx.broadcast_to(ndx.asarray(3, dtype=ndx.int8), (2**62,))
    assert np.ptp(x) == x.ptp() == 0


@pytest.mark.parametrize("name", ["max", "mean", "min", "std", "sum", "var"])
def test_what_numpy_would_compute_for_years(name):
    x = ndx.broadcast_to(ndx.asarray(3, dtype=ndx.int8), (2**62,))
    where = ndx.broadcast_to(ndx.asarray(True), x.shape)
    options = {"where": where} if name not in ("std", "var", "mean") else {}
    options |= {"initial": 0} if name in ("max", "min") else {}
    for call in getattr(x, name), functools.partial(getattr(np, name), x):
        with pytest.raises(ValueError, match=f"{name}: .* takes years"):
            call(**options)


@pytest.mark.parametrize("name", ["argwhere", "count_nonzero", "median", "nansum"])
def test_functions_of_numpy_that_would_compute_for_years(name):
    x = ndx.broadcast_to(ndx.asarray(3, dtype=ndx.int8), (2**62,))
    with pytest.raises(ValueError, match=f"{name}: .* takes years"):
        getattr(np, name)(x)


@pytest.mark.parametrize("shape", [(0, 2**40), (2**40, 0), (3, 0, 2**40)])
def test_matrices_without_elements(shape):
    x = ndx.ones(shape, dtype="float32")
    values = ndx.linalg.svdvals(x)
    assert (values.shape, values.dtype) == ((*shape[:-2], 0), ndx.float32)
    ranks = ndx.linalg.matrix_rank(x)
    assert ranks.shape == shape[:-2]
    assert not ndx.any(ranks)
    more = ndx.zeros((4,) + (1,) * len(shape[:-2]))
    for rtol, before in ((0.1, ()), (more, (4,))):
        ranks = ndx.linalg.matrix_rank(x, rtol=rtol)
        assert ranks.shape == (*before, *shape[:-2])
        assert ranks.dtype == ndx.int64
