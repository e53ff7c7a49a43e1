"""Receiver operating characteristics against scikit-learn."""

import math
import pickle
import warnings

import numpy as np
import pytest
from helpers.examples import examples
from helpers.metric_data import batches_of, closely, splits
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx.metrics import ROC

sk = pytest.importorskip("sklearn.metrics")

FEW = [0.0, 0.25, 0.29, 0.5, 1.0]  # 0.29 * 100 < 29 in floats


@st.composite
def samples(draw, columns=1):
    """Draw whether positive, scores with ties, weights or None, and sizes."""
    n = draw(st.integers(0, 30))
    score = st.sampled_from(FEW) if draw(st.booleans()) else st.floats(0, 1, width=32)
    scores = draw(st.lists(score, min_size=n * columns, max_size=n * columns))
    label = st.integers(0, draw(st.integers(0, max(1, columns - 1))))
    expected = draw(st.lists(label, min_size=n, max_size=n))
    weights = st.lists(st.sampled_from([0, 0.5, 1, 3]), min_size=n, max_size=n)
    weights = draw(st.none() | weights.map(lambda w: np.array(w, dtype=float)))
    scores = np.array(scores, dtype=float).reshape((n, columns))
    dtype = draw(st.sampled_from(["f4", "f8"]))
    return (
        np.array(expected, dtype=int),
        scores.astype(dtype) if columns > 1 else scores[:, 0].astype(dtype),
        weights,
        draw(splits(n)),
    )


def counted(metric, expected, scores, weights, sizes):
    for batch in batches_of(sizes, expected, scores, weights):
        with ndx.workspace("batch"):
            metric.update(*batch)
    return metric.result()


def areas(positive, scores, weights):
    """Return scikit-learn's areas, and NaN where it has none."""
    weights = np.ones(len(positive)) if weights is None else weights
    there = weights > 0
    positive, scores, weights = positive[there], scores[there], weights[there]
    area = precision = math.nan
    if positive.any():
        precision = sk.average_precision_score(positive, scores, sample_weight=weights)
        if not positive.all():
            area = sk.roc_auc_score(positive, scores, sample_weight=weights)
    return area, precision


@given(samples())
@examples(200)
def test_exact_binary_curves(data):
    expected, scores, weights, sizes = data
    (curve,) = counted(ROC(), expected, scores, weights, sizes).curves
    area, precision = areas(expected == 1, scores, weights)
    closely(curve.auc, area)
    closely(curve.average_precision, precision)
    if math.isnan(area):
        return
    fpr, tpr, thresholds = sk.roc_curve(
        expected, scores, sample_weight=weights, drop_intermediate=False
    )
    # Points on straight lines may be left out here.
    found = {
        tuple(np.round(p, 10))
        for p in zip(curve.fpr.tolist(), curve.tpr.tolist(), strict=True)
    }
    theirs = {tuple(np.round(p, 10)) for p in zip(fpr, tpr, strict=True)}
    assert found <= theirs
    closely(np.trapezoid(curve.tpr, curve.fpr), area)
    assert set(curve.thresholds.tolist()) <= set(thresholds.tolist())
    assert (curve.fpr[0], curve.tpr[0], curve.thresholds[0]) == (0, 0, math.inf)
    assert (float(curve.fpr[-1]), float(curve.tpr[-1])) == (1, 1)


@given(samples(columns=3), st.booleans(), st.booleans())
@examples(100)
def test_exact_curves_of_one_class_against_the_rest(data, columns, merged):
    expected, scores, weights, sizes = data
    given_ = np.eye(3)[expected] if columns else expected
    if merged:
        metric = ROC(classes=3)
        for batch in batches_of(sizes, given_, scores, weights):
            part = ROC(classes=3, capacity=2)
            part.update(*batch)
            metric.merge(part)
        result = metric.result()
    else:
        result = counted(ROC(classes=3), given_, scores, weights, sizes)
    found = [areas(expected == i, scores[:, i], weights) for i in range(3)]
    closely(result.auc(None), [area for area, _ in found])
    closely(result.average_precision(None), [each for _, each in found])
    defined = [area for area, _ in found if not math.isnan(area)]
    closely(result.auc(), np.mean(defined) if defined else math.nan)
    if len(defined) == 3:
        total = np.ones(len(expected)) if weights is None else weights
        support = [total[expected == i].sum() for i in range(3)]
        closely(result.auc("weighted"), np.average(defined, weights=support))


@given(samples(), st.sampled_from([1, 4, 100, (0.29, 0.3), (0.25, 0.5, 2.0)]))
@examples(100)
def test_histograms_are_exact_for_scores_in_steps(data, thresholds):
    """The curve of a histogram is that of scores rounded down to a threshold.

    Thresholds are first rounded to the dtype of the scores.
    """
    expected, scores, weights, sizes = data
    result = counted(ROC(thresholds), expected, scores, weights, sizes)
    if isinstance(thresholds, int):
        thresholds = np.arange(thresholds + 1) / thresholds
    steps = np.array(list(thresholds))
    rounded = (scores[:, None] >= steps.astype(scores.dtype)).sum(axis=1)
    (curve,) = result.curves
    area, precision = areas(expected == 1, rounded, weights)
    closely(curve.auc, area)
    closely(curve.average_precision, precision)


def test_columns_that_are_independent_of_each_other():
    rng = np.random.default_rng(0)
    scores, expected = rng.random((50, 3)), rng.random((50, 3)) < 0.4
    for metric in (ROC(), ROC(1000)):
        metric.update(expected, scores)
        metric.update(expected[None].astype(int), scores[None])
    exact = ROC()
    exact.update(expected, scores)
    closely(exact.result().auc(), sk.roc_auc_score(expected, scores))


def test_no_samples_no_curve():
    for metric in (ROC(), ROC(10), ROC(classes=["a", "b"]), ROC(10, classes=2)):
        result = metric.result()
        assert math.isnan(result.auc())
        assert all(math.isnan(curve.auc) for curve in result.curves)
        assert str(result.tables()[0])
    metric = ROC()
    metric.update(np.array([1]), np.array([0.5]))
    assert math.isnan(metric.result().auc())
    assert metric.result().average_precision() == 1.0


def test_infinite_scores_are_ranked():
    metric = ROC()
    metric.update(np.array([0, 1, 1]), np.array([-np.inf, 0.0, np.inf]))
    assert metric.result().auc() == 1.0


def test_a_masked_sample_may_hold_anything_and_nan_is_an_error_or_left_out():
    scores, expected = np.array([0.1, np.nan, 0.9]), np.array([0, 7, 1])
    for thresholds in (None, 10):
        metric = ROC(thresholds)
        metric.update(expected, scores, np.array([1, 0, 2]))
        assert metric.result().auc() == 1.0
        assert metric.result().curves[0].positives == 2
        with pytest.raises(ValueError, match="1 of 3 values of a batch are NaN"):
            metric.update(np.array([0, 1, 1]), scores)
        metric = ROC(thresholds, nan="omit")
        metric.update(np.array([0, 1, 1]), scores)
        assert (metric.result().auc(), metric.result().omitted) == (1.0, 1)
        assert "omitted" in str(metric.result().tables()[0])
        metric.reset()
        assert math.isnan(metric.result().auc())
        assert metric.result().omitted == 0


@pytest.mark.parametrize(
    ("expected", "scores", "error", "text"),
    [
        ([0, 2], [0.1, 0.2], ValueError, "no classes, such as 2"),
        ([0, 1, 1], [0.1, 0.2], ValueError, "don't fit scores"),
        ([0, 1], [[0.1], [0.2], [0.3]], ValueError, "don't fit scores"),
        ([0, 1], [0.1, 1.2], ValueError, "not between 0 and 1"),
        ([0, 1], [-0.1, 0.2], ValueError, "not between 0 and 1"),
        ([0, 1], [[0.1, 0.2]] * 2, ValueError, "2 columns of scores.*has 1"),
        ([0, 1], [1j, 0], TypeError, "scores are real"),
        ([0, 1], 0.5, ValueError, "of shape .. have 0 columns"),
    ],
)
def test_bad_batches_are_errors_and_change_nothing(expected, scores, error, text):
    metric = ROC(10)
    metric.update(np.array([0, 1]), np.array([0.1, 0.9]))
    with pytest.raises(error, match=text):
        metric.update(np.array(expected), np.array(scores))
    assert metric.result().auc() == 1.0
    assert metric.result().curves[0].positives == 1


def test_indicators_are_0_and_1():
    with pytest.raises(ValueError, match="as bools, or 0 and 1"):
        ROC().update(np.array([[0, 2]]), np.array([[0.1, 0.2]]))


@pytest.mark.parametrize("bad", [0, -3, [], [0.5, 0.5], [0.5, 0.1], [[0.1]], "ten"])
def test_bad_thresholds(bad):
    with pytest.raises(ValueError, match="is not valid"):
        ROC(bad)


def test_bad_averages_and_merges():
    with pytest.raises(ValueError, match="valid are 'macro', 'weighted', and None"):
        ROC(classes=2).result().auc("micro")
    for other in (ROC(), ROC(11), ROC([0.1])):
        with pytest.raises(ValueError, match="same options"):
            ROC(10).merge(other)


def test_exact_scores_keep_their_memory_for_the_next_epoch():
    rng = np.random.default_rng(0)
    metric, scores = ROC(capacity=100), rng.random((64, 3))
    expected = rng.integers(0, 3, 64)

    def epoch():
        metric.reset()
        for _ in range(5):
            with ndx.workspace("batch"):
                metric.update(expected, scores)

    epoch()
    epoch()
    before = ndx.memory.stats("host")["total_allocations"]
    epoch()
    assert ndx.memory.stats("host")["total_allocations"] == before
    copy = pickle.loads(pickle.dumps(metric))
    assert copy.result().auc() == metric.result().auc()


def test_dtypes_of_later_batches_may_be_wider():
    metric = ROC()
    metric.update(np.array([0, 1]), np.array([0.5, 0.6], dtype="f4"))
    value = 0.5 + 1e-12
    metric.update(np.array([1, 0]), np.array([value, 0.1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sk.roc_auc_score([0, 1, 1, 0], [0.5, np.float32(0.6), value, 0.1])
    closely(metric.result().auc(), theirs)


def test_columns_of_one_score_in_many_batches():
    metric = ROC()
    for _ in range(3):
        metric.update(np.array([[0], [1]]), np.array([[0.2], [0.7]]), np.ones(2))
        metric.update(np.array([0, 1]), np.array([0.2, 0.7]), np.ones(2))
    assert metric.result().auc() == 1.0
    assert ROC(classes=1).update(np.array([[0]]), np.array([[0.5]]), np.ones(1)) is None


@pytest.mark.parametrize("columns", [False, True])
def test_missing_expected_values(columns):
    expected, scores = np.array([0.0, 1.0, np.nan]), np.array([0.1, 0.9, 0.5])
    if columns:
        expected, scores = np.stack([expected] * 2, 1), np.stack([scores] * 2, 1)
    with pytest.raises(ValueError, match="1 of 3"):
        ROC().update(expected, scores)
    metric = ROC(nan="omit")
    metric.update(expected, scores)
    assert metric.result().omitted == 1
    assert metric.result().auc() == 1.0


def test_a_batch_that_is_refused_changes_nothing():
    metric = ROC()
    with pytest.raises(ValueError, match="fit"):
        metric.update(np.zeros(3, int), np.zeros((4, 5)))
    metric.update(np.array([0, 1]), np.array([0.1, 0.2]))
    assert metric.result().auc() == 1.0


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("steps", [7, 10, 100, 1000])
def test_scores_at_a_threshold_reach_it_in_every_dtype(steps, dtype):
    """0.7 is less in float32 than in float64: thresholds are rounded alike."""
    scores = (np.arange(steps + 1) / steps).astype(dtype)
    metric = ROC(steps)
    metric.update(np.arange(steps + 1) % 2, scores)
    curve = metric.result().curves[0]
    exact = ROC()
    exact.update(np.arange(steps + 1) % 2, scores)
    assert curve.auc == pytest.approx(exact.result().curves[0].auc, abs=0)
    metric.update(np.array([1]), np.array([1]))  # integers, too
    metric.merge(ROC(np.int16(steps)))


def test_thresholds_beyond_a_dtype_are_not_reached_by_its_ends():
    """A positive one that rounds to 0, and a finite one that rounds to -inf."""
    scores = np.array([-np.inf, -1.0, 0.0, 1e-30, 1.0, np.inf])
    expected = np.array([1, 0, 1, 0, 1, 0])
    for thresholds in ([-1e300, 0.0, 1e300], [1e-60, 1e-50], [-1e300, 1e-60, 0.5]):
        curves = []
        for dtype in ("f4", "f8"):
            metric = ROC(thresholds)
            metric.update(expected, scores.astype(dtype))
            curves.append(metric.result().curves[0])
        assert curves[0].auc == curves[1].auc
        assert curves[0].fpr.tolist() == curves[1].fpr.tolist()
