"""pandas takes NDArrays as the values of its objects."""

import operator

import numpy as np
import pytest
from helpers.consumers import FEATURES

import ndx
import ndx.numpy as face
from ndx.testing import assert_equal

pd = pytest.importorskip("pandas")


@pytest.fixture
def frame():
    return pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 4.0, 5.0]})


def test_frames_and_series_hold_the_values():
    x = ndx.asarray(FEATURES)
    assert np.array_equal(pd.DataFrame(x).to_numpy(), FEATURES)
    assert np.array_equal(pd.DataFrame({"a": x[:, 1]})["a"], FEATURES[:, 1])
    assert np.array_equal(pd.Series(x[3]), FEATURES[3])
    assert pd.Series(x[3]).dtype == np.float64
    assert pd.Index(ndx.asarray([3, 1])).tolist() == [3, 1]


@pytest.mark.parametrize("dtype", [ndx.int8, ndx.uint64, ndx.float32, ndx.bool])
def test_series_keep_the_dtype(dtype):
    assert pd.Series(ndx.ones(3, dtype=dtype)).dtype == dtype


def test_columns_and_elements_are_assigned(frame):
    frame["c"] = ndx.asarray([7.0, 8.0, 9.0])
    frame.loc[:, "a"] = ndx.ones(3)
    frame.iloc[0] = ndx.asarray([0.0, 1.0, 2.0])
    assert frame.to_numpy().tolist() == [[0, 1, 2], [1, 4, 8], [1, 5, 9]]


def test_rows_are_selected(frame):
    mask = ndx.asarray([True, False, True])
    assert frame.iloc[ndx.asarray([0, 2])]["a"].tolist() == [1.0, 3.0]
    assert frame[np.asarray(mask)]["a"].tolist() == [1.0, 3.0]


def test_functions_take_ndarrays(frame):
    x = ndx.asarray([0.0, 1.0, 2.0, 3.0])
    assert pd.cut(x, 2).codes.tolist() == [0, 0, 1, 1]
    assert pd.cut(x, ndx.asarray([-1.0, 1.0, 4.0])).codes.tolist() == [0, 0, 1, 1]
    assert pd.qcut(x, 2).codes.tolist() == [0, 0, 1, 1]
    assert frame.where(ndx.asarray([[True, False]] * 3))["b"].isna().all()


def test_operators_give_series(frame):
    x = ndx.asarray([1.0, 1.0, 1.0])
    for found in (frame["a"] + x, x + frame["a"], np.add(x, frame["a"])):
        assert isinstance(found, pd.Series)
        assert found.tolist() == [2.0, 3.0, 4.0]


def test_ndx_takes_what_pandas_holds(frame):
    assert_equal(ndx.asarray(frame), frame.to_numpy())
    assert_equal(ndx.asarray(frame["a"]), frame["a"].to_numpy())
    found = np.interp(ndx.asarray([1.5]), frame["a"], frame["b"])
    assert_equal(found, np.asarray([3.5]))


def test_stale_arrays_are_refused():
    with ndx.workspace():
        x = ndx.ones(3)
    with pytest.raises(ndx.StaleArrayError):
        pd.Series(x)


@pytest.mark.parametrize("name", ["iadd", "imul", "isub", "ior", "iand", "ixor"])
@pytest.mark.parametrize("kind", ["Series", "DataFrame", "Index"])
def test_operators_in_place_are_those_of_numpys_arrays(name, kind):
    """pandas declines arrays of other classes, and is given NumPy's."""
    operation = getattr(operator, name)
    values = [[1], [2], [3]] if kind == "DataFrame" else [1, 2, 3]

    def computed(xp):
        other = getattr(pd, kind)(values)
        x = xp.asarray([[4], [5], [6]] if kind == "DataFrame" else [4, 5, 6])
        try:
            return operation(x, other), x
        except TypeError as error:
            return type(error), x

    (expected, before), (found, x) = computed(np), computed(face)
    if expected is before:
        assert found is x
    elif not isinstance(expected, type):
        assert type(found) is type(expected)
        assert np.asarray(found).tolist() == np.asarray(expected).tolist()
    assert x.tolist() == before.tolist()


@pytest.mark.parametrize(
    "make",
    [
        pd.Series,
        pd.Index,
        pd.array,
        lambda x: pd.Series(x, copy=False),
        lambda x: pd.Series(pd.Index(x)),
        lambda x: pd.DataFrame({"a": x}),
        lambda x: pd.DataFrame(x[:, None]),
        lambda x: pd.DataFrame(x[:, None], copy=False),
        lambda x: pd.DataFrame({"b": [1, 2]}).assign(a=x)[["a"]],
    ],
)
def test_memory_is_shared_where_numpys_is(make):
    """pandas 3 copies arrays of NumPy, which may be written, and no others."""
    found = []
    for xp in (np, ndx):
        x = xp.asarray([1.0, 2.0])
        made = make(x)
        x[0] = 9.0
        found.append(np.asarray(made).ravel().tolist())
    assert found[0] == found[1]


def test_results_outlive_the_workspace():
    with ndx.workspace():
        x = ndx.asarray([1.0, 2.0])
        frame = pd.DataFrame([{"loss": x.sum(), "all": x}])
        frame["d"] = x.mean()
        series = pd.Series([x.sum(), x.max()])
    assert frame["loss"].tolist() == [3.0]
    assert frame["all"][0].tolist() == [1.0, 2.0]
    assert frame.mean(numeric_only=True).tolist() == [3.0, 1.5]
    assert series.describe()["mean"] == 2.5
