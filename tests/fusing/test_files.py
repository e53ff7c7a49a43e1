"""Fused functions over arrays in large files: in passes, with the same results."""

import os

import numpy as np
import pytest
from helpers.passes import in_file, passing

import ndx

pytestmark = pytest.mark.skipif(os.name != "posix", reason="maps files")

SHAPES = [(100_003,), (300, 400), (7, 50_000), (50_000, 3)]
MEMORY = pytest.mark.parametrize("memory", ["1GiB", "100KiB", 0])


def outliers(x, y):
    return ndx.sum(ndx.abs(x - 0.1) > 2 * 0.9)


def polynomial(x, y):
    return ((x * 2.0 + 1.0) * x - 3.0) * x


def several(x, y):
    product = x * y + 1.0
    return product, ndx.sum(product * product), ndx.max(x)


def sums_of_rows(x, y):
    return ndx.sum(x * x, axis=-1)


def sums_of_columns(x, y):
    return ndx.sum(x * x, axis=0)


def centered(x, y):
    return x - ndx.mean(x, axis=0)


def chosen(x, y):
    return ndx.where(x > 0.7, x * 1.5, y - 0.1 * x)


def changed(x, y):
    x += 0.5 * y
    return x


FUNCTIONS = [
    outliers, polynomial, several, sums_of_rows, sums_of_columns, centered, chosen,
    changed,
]  # fmt: skip


def values(result):
    results = result if isinstance(result, tuple) else (result,)
    return [np.array(each) for each in results]


@MEMORY
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_those_of_arrays_in_memory(tmp_path, memory, threads, function):
    rng = np.random.default_rng(5)
    fused = ndx.fuse(function)
    for shape in SHAPES:
        a, b = rng.normal(size=(2, *shape))
        wanted = values(fused(ndx.asarray(a, copy=True), ndx.asarray(b)))
        with passing(tmp_path, memory=memory, threads=threads) as calls:
            x, y = in_file(a), in_file(b)
            del calls[:]
            found = fused(x, y)
            assert {name for _, _, name in calls} == {"fuse"}
            for one, other in zip(values(found), wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_sum_takes_one_pass_and_no_array(tmp_path):
    a = np.random.default_rng(6).normal(size=400_000)
    fused = ndx.fuse(outliers)
    with passing(tmp_path, threads=1) as calls:
        x = in_file(a)
        fused(x, x)
        del calls[:]
        before = ndx.current_backend().stats()["peak_reserved_bytes"]
        assert int(fused(x, x)) == int((np.abs(a - 0.1) > 2 * 0.9).sum())
        after = ndx.current_backend().stats()["peak_reserved_bytes"]
    assert [done for done, _, _ in calls].count(a.nbytes) == 1
    assert calls[-1][:2] == (a.nbytes, a.nbytes)
    assert after - before < a.nbytes / 50


def test_what_the_callback_raises_ends_it(tmp_path):
    def stop(done, total, name):
        raise KeyboardInterrupt

    fused = ndx.fuse(polynomial)
    with passing(tmp_path):
        x = in_file(np.ones(100_000))
        fused(x, x)
        with ndx.passes(progress=stop), pytest.raises(KeyboardInterrupt):
            fused(x, x)
        np.testing.assert_array_equal(fused(x, x), polynomial(np.ones(100_000), None))


def test_stencils_are_computed_as_without_fuse(tmp_path):
    def smoothed(x):
        y = ndx.asarray(x, copy=True)
        y[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4
        return y

    a = np.random.default_rng(7).normal(size=(400, 300))
    wanted = np.asarray(smoothed(ndx.asarray(a)))
    with passing(tmp_path):
        np.testing.assert_array_equal(ndx.fuse(smoothed)(in_file(a)), wanted)
