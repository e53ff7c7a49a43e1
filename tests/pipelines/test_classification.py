"""Classification against scikit-learn, in batches of any shape."""

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
from ndx.metrics import Classification

sk = pytest.importorskip("sklearn.metrics")


@st.composite
def samples(draw):
    """Draw expected classes, predicted ones, weights or None, classes, and sizes."""
    classes = draw(st.integers(1, 5))
    n = draw(st.integers(0, 30))
    # Of few classes of those there are: some are absent.
    label = st.integers(0, draw(st.integers(0, classes - 1)))
    expected = draw(st.lists(label, min_size=n, max_size=n))
    predicted = draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    weights = st.lists(st.sampled_from([0, 0.5, 1, 3]), min_size=n, max_size=n)
    return (
        np.array(expected, dtype=int),
        np.array(predicted, dtype=int),
        draw(st.none() | weights.map(lambda w: np.array(w, dtype=float))),
        classes,
        draw(splits(n)),
    )


def counted(metric, expected, outputs, weights, sizes):
    for batch in batches_of(sizes, expected, outputs, weights):
        with ndx.workspace("batch"):
            metric.update(*batch)
    return metric.result()


AVERAGES = st.sampled_from(["macro", "micro", "weighted", None])


@given(samples(), AVERAGES, st.sampled_from([0.0, 1.0, math.nan]))
@examples(200)
def test_measures_are_those_of_scikit_learn(data, average, zero):
    expected, predicted, weights, classes, sizes = data
    result = counted(Classification(classes), expected, predicted, weights, sizes)
    some = weights is None or weights.sum() > 0
    if not len(expected) or not some:
        assert math.isnan(result.accuracy)
        assert result.f1() == 0.0
        assert math.isnan(result.f1(zero_division=math.nan))
        return
    labels = range(classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        closely(
            result.confusion,
            sk.confusion_matrix(
                expected, predicted, labels=labels, sample_weight=weights
            ),
        )
        closely(
            result.accuracy,
            sk.accuracy_score(expected, predicted, sample_weight=weights),
        )
        closely(
            result.matthews_correlation,
            sk.matthews_corrcoef(expected, predicted, sample_weight=weights),
        )
        closely(
            result.balanced_accuracy,
            sk.balanced_accuracy_score(expected, predicted, sample_weight=weights),
        )
        found = sk.precision_recall_fscore_support(
            expected,
            predicted,
            labels=labels,
            average=average,
            sample_weight=weights,
            zero_division=zero,
        )
    for mine, theirs in zip(
        (result.precision, result.recall, result.f1), found, strict=False
    ):
        closely(mine(average, zero_division=zero), theirs)


@given(samples(), st.sampled_from(["scores", "float32", "columns", "time", "merged"]))
@examples(100)
def test_all_forms_of_a_batch_count_the_same(data, form):
    expected, predicted, weights, classes, sizes = data
    plain = counted(Classification(classes), expected, predicted, weights, sizes)
    scores = np.eye(classes)[predicted] + 0.25 * np.eye(classes)[expected]
    if classes == 1:
        scores = np.full((len(expected), 1), 0.25)  # below the threshold: class 0
        classes = 2
        plain = counted(Classification(2), expected, predicted, weights, sizes)
    metric = Classification(classes)
    if form == "scores":
        result = counted(metric, expected, scores, weights, sizes)
    elif form == "float32":
        scores, floats = scores.astype("f4"), expected.astype("f4")
        result = counted(metric, floats, scores, weights, sizes)
    elif form == "columns":
        result = counted(metric, np.eye(classes)[expected], scores, weights, sizes)
    elif form == "time":
        metric.update(
            expected[None], scores[None], None if weights is None else weights[None]
        )
        result = metric.result()
    else:
        other = Classification(classes)
        half = len(expected) // 2
        w = [None] * 2 if weights is None else [weights[:half], weights[half:]]
        metric.update(expected[:half], scores[:half], w[0])
        other.update(expected[half:], scores[half:], w[1])
        metric.merge(other)
        result = metric.result()
    assert result.confusion.tolist() == plain.confusion.tolist()


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_binary_scores_are_compared_with_the_threshold(shape):
    scores = np.array([0.1, 0.5, 0.6, 0.7]).reshape(shape)
    for expected in (np.array([0, 1, 0, 1]), np.array([[False], [True]] * 2)):
        metric = Classification()
        metric.update(expected, scores)
        assert metric.result().confusion.tolist() == [[1, 1], [0, 2]]
        metric = Classification(threshold=0.65)
        metric.update(expected, scores)
        assert metric.result().confusion.tolist() == [[2, 0], [1, 1]]


def test_bools_are_classes():
    metric = Classification(["no", "yes"])
    metric.update(np.array([True, False]), np.array([True, True]))
    assert metric.result().confusion.tolist() == [[0, 1], [0, 1]]


def test_a_masked_sample_may_hold_anything():
    metric = Classification(3)
    scores = np.array([[0, 1, 0], [np.nan] * 3, [1, 0, 0]])
    metric.update(np.array([1, -7, 0]), scores, np.array([True, False, True]))
    metric.update(np.array([1, np.nan, 0]), scores, np.array([1, 0, 1]))
    assert metric.result().accuracy == 1.0
    assert metric.result().omitted == 0
    assert float(ndx.sum(metric.result().support)) == 4


def test_nan_is_an_error_or_left_out():
    scores = np.array([[0, 1.0], [np.nan, 1.0], [1.0, 0]])
    expected = np.array([1, 1, 1])
    metric = Classification()
    with pytest.raises(
        ValueError, match="1 of 3 values of a batch are NaN.*nan='omit'"
    ):
        metric.update(expected, scores)
    metric = Classification(nan="omit")
    metric.update(expected, scores)
    metric.update(np.array([1, np.nan]), scores[[0, 2]])
    result = metric.result()
    assert (result.omitted, result.accuracy) == (2, 2 / 3)
    assert "omitted" in str(result.tables()[0])
    metric.reset()
    assert metric.result().omitted == 0
    with pytest.raises(ValueError, match="'raise', 'omit'"):
        Classification(nan="ignore")


@pytest.mark.parametrize(
    ("expected", "outputs", "weights", "error", "text"),
    [
        ([0, 3], np.eye(3)[:2], None, ValueError, "1 of 2 expected ones.*such as 3"),
        ([0, -1], np.eye(3)[:2], None, ValueError, "such as -1; 3 classes"),
        ([0, 0.5], np.eye(3)[:2], None, ValueError, "such as 0.5"),
        ([0, 1], [0, 9], None, ValueError, "outputs are no classes, such as 9"),
        ([0, 1, 2], np.eye(3)[:2], None, ValueError, "shape .3,. don't fit"),
        ([0, 1], np.eye(4)[:2], None, ValueError, "4 classes.*has 3 classes"),
        ([0, 1], np.ones((2, 0)), None, ValueError, "0 classes"),
        ([0, 1], np.eye(3)[:2], [1, 2, 3], ValueError, "weights.*.3,., not .2,."),
        ([0, 1], np.eye(3)[:2], [1, -1], ValueError, "not negative"),
        ([0, 1], np.eye(3)[:2], [1, np.nan], ValueError, "finite"),
        ([0, 1], np.eye(3)[:2], [1j, 1], TypeError, "not complex128"),
        ([0, 1], np.eye(3)[:2] * 1j, None, TypeError, "complex128 are neither"),
        ([0, 1], {"a": 1}, None, TypeError, "outputs of a batch must be an array"),
        (None, np.eye(3)[:2], None, TypeError, "expected values of a batch must"),
        (["a", "b"], np.eye(3)[:2], None, TypeError, "<U1.*by their numbers"),
    ],
)
def test_bad_batches_are_errors_and_change_nothing(
    expected, outputs, weights, error, text
):
    metric = Classification(3)
    metric.update(np.array([0]), np.eye(3)[:1])
    arrays = [
        x if x is None or isinstance(x, dict) else np.array(x)
        for x in (expected, outputs, weights)
    ]
    with pytest.raises(error, match=text):
        metric.update(*arrays)
    assert metric.result().confusion.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("dtype", ["bool", "i8", "u1"])
def test_columns_of_ints_that_may_be_classes_are_refused(dtype):
    metric, columns = Classification(3), np.eye(3, dtype=dtype)[[0, 2, 1, 1]]
    with pytest.raises(ValueError, match=r"12 class numbers.*columns of floats"):
        metric.update(columns, columns)
    metric.update(columns, columns.astype(float))
    assert metric.result().confusion.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 1]]
    # An axis of time as long as there are classes: weights say so, or the numbers.
    for weights in (np.ones((4, 3)), [[1.0] * 3] * 4):
        metric.reset()
        metric.update(columns, columns, weights)
        assert metric.result().confusion.tolist() == [[8, 0, 0], [0, 4, 0], [0, 0, 0]]
    # Whatever the values are: another batch would be counted otherwise.
    with pytest.raises(ValueError, match="one_hot=False"):
        metric.update(columns, columns[::-1] * 0)


@pytest.mark.parametrize("dtype", ["bool", "i8", "u1"])
@pytest.mark.parametrize("rows", [0, 1, 2, 4, 5, 20])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_what_columns_of_ints_are_is_said_and_not_guessed(rows, classes, dtype):
    labels = np.arange(rows) % classes
    expected, outputs = (
        np.eye(classes, dtype=dtype)[x] for x in (labels, labels[::-1])
    )
    counts = {}
    for one_hot in (True, False):
        metric = Classification(classes, one_hot=one_hot)
        metric.update(expected, outputs)
        counts[one_hot] = metric.result().confusion
    plain = Classification(classes)
    plain.update(labels, labels[::-1])
    assert counts[True].tolist() == plain.result().confusion.tolist()
    assert counts[False].sum() == rows * classes
    with pytest.raises(ValueError, match="one_hot=False"):
        Classification(classes).update(expected, outputs)


@pytest.mark.parametrize(
    ("classes", "row"), [(4, [0, 1, 0]), (3, [0, 0, 5]), (3, [1, 1, 0]), (3, [0, 0, 0])]
)
def test_outputs_that_are_not_one_hot_are_refused(classes, row):
    metric = Classification(classes, one_hot=True)
    with pytest.raises(ValueError, match="not one-hot"):
        metric.update(np.array([[0, 1, 0]]), np.array([row]))
    with pytest.raises(TypeError, match="one_hot='no'"):
        Classification(3, one_hot="no")


def test_masked_arrays_are_refused():
    """Their values would count as if there were no mask."""
    labels = np.ma.masked_array([0, 1], mask=[False, True])
    metric = Classification(2)
    for given_ in ((labels, np.array([0, 1])), (np.array([0, 1]), labels)):
        with pytest.raises(TypeError, match="weights of 0"):
            metric.update(*given_)
    metric.update(labels.data, np.array([0, 0]), ~labels.mask)
    assert metric.result().accuracy == 1.0
    metric.update(np.ma.masked_array([1]), np.array([1]))  # nothing is masked
    assert metric.result().confusion.tolist() == [[1, 0], [0, 1]]


def test_a_batch_that_is_refused_omits_nothing():
    metric = Classification(2, nan="omit")
    with pytest.raises(ValueError, match="are no classes"):
        metric.update(np.array([0, 7]), np.array([math.nan, 0.2]))
    assert metric.result().omitted == 0


def test_bad_options():
    with pytest.raises(TypeError, match="neither a number nor a list"):
        Classification("ab")
    for bad in (2.5, True):
        with pytest.raises(TypeError, match="neither a number nor a list"):
            Classification(bad)
    with pytest.raises(ValueError, match="number of classes"):
        Classification(-1)
    with pytest.raises(ValueError, match="a name twice"):
        Classification(["a", "a"])
    with pytest.raises(ValueError, match="give Classification.classes"):
        Classification().update(np.array([0]), np.array([1]))
    result = Classification(2).result()
    with pytest.raises(ValueError, match="'macro', 'micro', 'weighted', and None"):
        result.f1("binary")
    with pytest.raises(ValueError, match="not negative"):
        result.fbeta(-1)


def test_results_stay_when_the_metric_goes_on():
    metric = Classification(2)
    metric.update(np.array([1]), np.array([1.0]))
    with ndx.workspace("mine"):
        result = metric.result()
    metric.update(np.array([0]), np.array([1.0]))
    metric.reset()
    assert result.confusion.tolist() == [[0, 0], [0, 1]]
    copy = pickle.loads(pickle.dumps(metric))
    copy.update(np.array([1]), np.array([1.0]))
    assert copy.result().accuracy == 1.0
    assert math.isnan(metric.result().accuracy)


def test_missing_values_in_one_hot_ones():
    expected = np.array([[0, 1], [np.nan, np.nan], [1, np.nan]])
    scores = np.array([[0.1, 0.9]] * 3)
    with pytest.raises(ValueError, match="2 of 3"):
        Classification(2).update(expected, scores)
    metric = Classification(2, nan="omit")
    metric.update(expected, scores)
    assert metric.result().confusion.tolist() == [[0, 0], [0, 1]]
    assert metric.result().omitted == 2


def test_correlation_with_a_constant():
    """The sums of many weights are rounded, so that they tell nothing of it."""
    rng = np.random.default_rng(983)
    labels = rng.integers(0, 11, 20)
    weights = np.where(labels == 0, rng.random(20) * 1e6, rng.random(20) * 1e-9)
    for expected, predicted, counts in [
        (np.arange(9), np.zeros(9, int), np.full(9, 0.1)),
        (np.zeros(9, int), np.arange(9), np.full(9, 0.1)),
        (labels, np.zeros(20, int), weights),
    ]:
        metric = Classification(11)
        metric.update(expected, predicted, counts)
        assert metric.result().matthews_correlation == 0.0
