"""Errors of numbers against scikit-learn and NumPy."""

import math
import pickle

import numpy as np
import pytest
from helpers.examples import examples
from helpers.metric_data import batches_of, closely, splits
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx.metrics import Regression

sk = pytest.importorskip("sklearn.metrics")

MEASURES = ("mse", "rmse", "mae", "bias", "max_error", "r2", "correlation")
NUMBERS = st.integers(-50, 50).map(lambda i: i / 4) | st.sampled_from([0.1, 1e3, -7.3])


@st.composite
def samples(draw):
    """Draw expected values, outputs, weights or None, and sizes of batches."""
    n, columns = draw(st.integers(0, 20)), draw(st.integers(1, 3))
    few = st.just(draw(NUMBERS)) if draw(st.integers(0, 3)) == 0 else NUMBERS
    sides = [
        draw(st.lists(each, min_size=n * columns, max_size=n * columns))
        for each in (few, NUMBERS)
    ]
    expected, outputs = (np.array(x, dtype=float).reshape(n, columns) for x in sides)
    if n and draw(st.integers(0, 3)) == 0:
        outputs = expected.copy()
    weight = st.sampled_from([0, 0.5, 1, 3])
    each = draw(st.booleans())
    count = n * columns if each else n
    weights = draw(st.none() | st.lists(weight, min_size=count, max_size=count))
    if weights is not None:
        weights = np.array(weights, dtype=float)
        weights = weights.reshape((n, columns)) if each else weights
    return expected, outputs, weights, draw(splits(n))


def column_of(expected, outputs, weights):
    """Return all measures of a column, by other libraries."""
    there = weights > 0
    y, x, w = expected[there], outputs[there], weights[there]
    if not len(y):
        return dict.fromkeys(MEASURES, math.nan)
    constant = np.ptp(y) == 0 or np.ptp(x) == 0
    found = {
        "mse": sk.mean_squared_error(y, x, sample_weight=w),
        "rmse": sk.root_mean_squared_error(y, x, sample_weight=w),
        "mae": sk.mean_absolute_error(y, x, sample_weight=w),
        "bias": np.average(x - y, weights=w),
        "max_error": sk.max_error(y, x),
        "r2": math.nan,
        "correlation": math.nan,
    }
    if len(y) > 1:
        found["r2"] = sk.r2_score(y, x, sample_weight=w)
        if np.ptp(y) == 0:  # where scikit-learn depends on rounding
            found["r2"] = float((x == y).all())
    if not constant:
        spread = np.cov(y, x, aweights=w, ddof=0)
        found["correlation"] = spread[0, 1] / math.sqrt(spread[0, 0] * spread[1, 1])
    return found


@given(samples(), st.booleans())
@examples(200)
def test_measures_are_those_of_scikit_learn(data, merged):
    expected, outputs, weights, sizes = data
    n, columns = expected.shape
    metric = Regression(columns)
    for batch in batches_of(sizes, expected, outputs, weights):
        part = Regression(columns) if merged else metric
        with ndx.workspace("batch"):
            part.update(*batch)
        if merged:
            metric.merge(part)
    result = metric.result()
    if weights is None:
        weights = np.ones(n)
    if weights.ndim == 1:
        weights = weights[:, None]
    weights = np.broadcast_to(weights, (n, columns))
    theirs = [
        column_of(expected[:, i], outputs[:, i], weights[:, i]) for i in range(columns)
    ]
    for name in MEASURES:
        each = [column[name] for column in theirs]
        mine = getattr(result, name)
        np.testing.assert_allclose(
            np.asarray(mine(None)), each, rtol=1e-8, atol=1e-10, err_msg=name
        )
        np.testing.assert_allclose(mine(), np.mean(each), rtol=1e-8, atol=1e-10)


def test_a_large_mean_does_not_cancel():
    """Sums of squares of values around 10^9 would leave no digit of the spread."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(1000) + 1e9
    x = y + 0.1 * rng.standard_normal(1000)
    metric = Regression()
    for batch in batches_of([100] * 10, y, x):
        metric.update(*batch)
    result = metric.result()
    np.testing.assert_allclose(result.r2(), sk.r2_score(y, x), rtol=1e-6)
    np.testing.assert_allclose(result.correlation(), np.corrcoef(y, x)[0, 1], rtol=1e-6)


def test_constant_columns_are_known_exactly():
    """The mean of three 0.1 is not 0.1 in floats: the spread is not 0 then."""
    y = np.array([0.1, 0.1, 0.1])
    metric = Regression(["right", "wrong"])
    metric.update(np.stack([y, y], 1), np.stack([y, y + np.array([0, 0, 1])], 1))
    assert metric.result().r2(None).tolist() == [1.0, 0.0]
    assert np.isnan(np.asarray(metric.result().correlation(None))).all()


@pytest.mark.parametrize(
    "shapes", [((4,), (4, 1)), ((4, 1), (4,)), ((2, 2), (2, 2, 1))]
)
def test_a_column_may_have_an_axis_of_its_own(shapes):
    y, x = np.arange(4.0).reshape(shapes[0]), np.ones(4).reshape(shapes[1])
    metric = Regression()
    metric.update(y, x)
    closely(metric.result().mse(), np.mean((np.arange(4.0) - 1) ** 2))
    assert metric.result().columns == ("0",)


def test_integers_bools_and_small_floats():
    metric = Regression()
    metric.update(np.array([1, 0, 1], dtype=bool), np.array([1, 1, 1], dtype="u1"))
    metric.update(np.array([1, 0], dtype="f4"), np.array([2, 2], dtype="i2"))
    closely(metric.result().mae(), (0 + 1 + 0 + 1 + 2) / 5)
    closely(metric.result().bias(), 4 / 5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", [0, 1])
def test_nan_and_infinity_are_errors_or_left_out(value, side):
    sides = [np.ones((3, 2)), np.zeros((3, 2))]
    sides[side][1, 0] = value
    metric = Regression()
    with pytest.raises(ValueError, match="1 of 6 values of a batch are NaN or inf"):
        metric.update(*sides)
    assert metric.result().sums["count"].tolist() == []
    metric.update(*sides, np.array([1, 0, 1]))
    assert metric.result().sums["count"].tolist() == [2, 2]
    metric = Regression(nan="omit")
    metric.update(*sides)
    result = metric.result()
    assert result.omitted == 1
    assert result.sums["count"].tolist() == [2, 3]
    assert result.mse() == 1.0
    assert "omitted" in str(result.tables()[0])
    # Infinities on both sides have no difference.
    metric.update(np.array([[np.inf, 1]]), np.array([[np.inf, 0]]))
    assert metric.result().omitted == 2


@pytest.mark.parametrize(
    ("expected", "outputs", "weights", "error", "text"),
    [
        ([1, 2], [1, 2, 3], None, ValueError, "shape .3,. don't fit .*shape .2,."),
        ([[1, 2]], [[1], [2]], None, ValueError, "don't fit"),
        ([[1, 2]], [[1, 2]], None, ValueError, "2 columns.*has 1"),
        ([1, 2], [1, 2], [1, 2, 3], ValueError, "weights of a batch have shape .3,."),
        ([1, 2], [1, 2], [1, -2], ValueError, "not negative"),
        ([1, 2j], [1, 2], None, TypeError, "no real numbers"),
        ([1, 2], object(), None, TypeError, "array of numbers, not object"),
    ],
)
def test_bad_batches_are_errors_and_change_nothing(
    expected, outputs, weights, error, text
):
    metric = Regression()
    metric.update(np.array([1.0]), np.array([2.0]))
    if isinstance(outputs, list):
        outputs = np.array(outputs)
    weights = None if weights is None else np.array(weights)
    with pytest.raises(error, match=text):
        metric.update(np.array(expected), outputs, weights)
    assert metric.result().mse() == 1.0
    assert metric.result().sums["count"].tolist() == [1]


def test_a_first_batch_that_is_refused_does_not_choose_the_columns():
    metric = Regression()
    with pytest.raises(ValueError, match="2 of 2 values of a batch are NaN"):
        metric.update(np.zeros((1, 2)), np.full((1, 2), math.nan))
    metric.update(np.zeros(2), np.ones(2))
    assert metric.result().mse() == 1.0


def test_weights_whose_sum_overflows_are_refused():
    metric = Regression()
    with pytest.raises(ValueError, match="scale them"):
        metric.update(np.zeros(2), np.ones(2), np.array([1e308, 1e308]))
    assert math.isnan(metric.result().mse())


def test_resetting_and_results():
    metric = Regression()
    metric.update(np.array([1.0]), np.array([2.0]))
    result, copy = metric.result(), pickle.loads(pickle.dumps(metric))
    with pytest.raises(ValueError, match="valid are 'mean', and None"):
        result.mse("macro")
    metric.reset()
    assert math.isnan(metric.result().mse())
    assert result.mse() == copy.result().mse() == 1.0
    assert math.isnan(Regression().result().r2())
