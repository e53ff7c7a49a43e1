"""Threads share the blocks of a fused function: results don't depend on how many."""

import numpy as np
import pytest

import ndx

pytestmark = pytest.mark.threads
SIDE = 401


@pytest.fixture(autouse=True)
def _restored():
    before = ndx.get_num_threads()
    yield
    ndx.set_num_threads(before)


def expression(a, b):
    return a * b + ndx.exp(a) - b / 3


def stencil(a, b):
    inner = a[1:-1, 1:-1]
    b[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * inner
    return b


def normalised(a, b):
    return (a - ndx.mean(a)) / ndx.sum(b * b), ndx.max(a), ndx.any(b > 3)


def over_rows(a, b):
    return ndx.sum(a * b, axis=0), ndx.sum(a + b, axis=1)


@pytest.mark.parametrize("function", [expression, stencil, normalised, over_rows])
@pytest.mark.parametrize("order", ["C", "F"])
def test_results_are_those_of_one_thread(function, order):
    rng = np.random.default_rng(5)
    values = [rng.standard_normal((SIDE, SIDE)) for _ in range(2)]
    results = []
    for count in (1, 2, 5):
        ndx.set_num_threads(count)
        fused = ndx.fuse(function)
        arrays = [ndx.asarray(x, copy=True, order=order) for x in values]
        found = fused(*arrays)
        assert "called as it is" not in fused.explain()
        found = found if isinstance(found, tuple) else (found,)
        results.append([np.asarray(x).tobytes() for x in found])
    assert results[0] == results[1] == results[2]
