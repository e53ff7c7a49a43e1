"""Reductions are computed with the steps that make their elements."""

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx._fusing import stages

REDUCTIONS = ["sum", "mean", "max", "min", "any", "all"]
# Rows of one element, narrow ones, and longer ones than a block; few, and many.
SHAPES = [(1, 1), (5, 1), (1, 5), (40, 3), (9000, 9), (9000, 17), (70, 48), (3, 40000),
          (40, 3000), (2, 300, 120), (300, 2, 120), (300, 120, 2)]  # fmt: skip


def test_no_array_is_made_between_the_steps_and_the_reduction():
    @ndx.fuse
    def total(a, b):
        return ndx.sum((a - b) ** 2), ndx.max(a, axis=0), ndx.any(b > a, axis=1)

    a = ndx.ones((30, 40))
    total(a, a)
    about = total.explain().splitlines()
    assert "subtract square add maximum greater logical_or" in about[-2]
    assert about[-1].endswith(" 0 of them temporary")


def test_what_needs_a_result_waits_for_it():
    @ndx.fuse
    def softmax(x):
        powers = ndx.exp(x - ndx.max(x, axis=-1, keepdims=True))
        return powers / ndx.sum(powers, axis=-1, keepdims=True)

    x = np.random.default_rng(3).standard_normal((50, 1300))
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    found = softmax(ndx.asarray(x))
    expected = powers / powers.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)


def test_elements_are_read_before_they_are_overwritten():
    @ndx.fuse
    def halved(x):
        before = ndx.sum(x, axis=1)
        x *= 2
        after = ndx.sum(x, axis=1)
        x[...] = 0
        return before, after, ndx.sum(x)

    x = ndx.ones((30, 9))
    before, after, zero = halved(x)
    assert before.tolist() == [9.0] * 30
    assert after.tolist() == [18.0] * 30
    assert float(zero) == 0
    assert not np.any(np.asarray(x))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((300000, 2), 0), ((30000, 20), 0), ((2, 150000, 2), 1), ((100, 3000, 3), (0, 1)),
     ((2, 300000), -1), ((500000,), None)],
)  # fmt: skip
def test_sums_of_floats_are_not_rounded_element_by_element(shape, axis):
    x = np.random.default_rng(1).random(shape, dtype="float32")
    exact = x.astype("float64").sum(axis=axis)
    fused = ndx.fuse(lambda a: ndx.sum(a * 1.0, axis=axis))
    found = np.asarray(fused(ndx.asarray(x)), dtype="float64")
    # NumPy's, which adds row after row, are up to 2e-5 apart.
    assert np.max(np.abs(found / exact - 1)) < 2e-6


@pytest.fixture
def threads(monkeypatch):
    """Let stages of any size be on several threads."""
    monkeypatch.setattr(stages, "_BYTE", 1e6)
    before = ndx.get_num_threads()
    yield
    ndx.set_num_threads(before)


@pytest.mark.threads
@pytest.mark.usefixtures("threads")
@examples(150)
@given(
    st.sampled_from(SHAPES),
    st.lists(
        st.tuples(
            st.sampled_from(REDUCTIONS),
            st.sampled_from([None, 0, -1, (0, -1), (-1, -2), ()]),
            st.booleans(),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["float64", "float32", "int64", "int16"]),
    st.sampled_from("CF"),
    st.sampled_from([1, 2, 5]),
    st.integers(0, 9),
)
def test_results_are_those_of_numpy(shape, reductions, dtype, order, count, seed):
    rng = np.random.default_rng(seed)
    # Sums of few small integers are exact, so that all orders give the same.
    x, y = (
        np.asarray(rng.integers(-2, 3, shape), dtype=dtype, order=order)
        for _ in range(2)
    )

    def function(xp, a, b):
        made = (a - b) * (a + 1)
        return [
            getattr(xp, name)(made, axis=axis, keepdims=kept)
            for name, axis, kept in reductions
        ]

    ndx.set_num_threads(count)
    fused = ndx.fuse(function)
    found = fused(ndx, ndx.asarray(x), ndx.asarray(y))
    for (name, *_), one, expected in zip(
        reductions, found, function(np, x, y), strict=True
    ):
        compare = np.testing.assert_array_equal
        if name == "mean":
            compare = np.testing.assert_allclose
            expected = expected.astype(one.dtype)
        compare(np.asarray(one), expected)
