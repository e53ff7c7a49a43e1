"""pandas answers for our arrays what it does for NumPy's, or refuses; never otherwise.

The expressions are in `pandas_expressions.txt`: `sr`, `df` and `ix` are a Series, a
DataFrame and an Index, `x`, `i`, `m` and `ids` arrays of floats, ints, bools and keys,
`M` and `K` matrices of floats and bools. `s`, `t` and `b` are a float, an int and a
bool, results of reductions: with NumPy scalars, with ndx arrays without dimensions.
"raises" says which error our arrays get, in some version of pandas. "as an array" says
that the question is about the object, which is an array without dimensions with ndx.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from helpers.answers import differences

import ndx

pd = pytest.importorskip("pandas")

HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
ARRAYS = {
    "x": np.array([1.0, 2.0, 4.0, 3.0]),
    "i": np.array([0, 2, 1, 2]),
    "ids": np.array([3, 1]),
    "m": np.array([True, False, True, False]),
    "m2": np.array([True, False, True]),
    "M": np.arange(12.0).reshape(4, 3),
    "K": np.arange(12).reshape(4, 3) % 3 == 0,
}


def names(xp, element):
    """Return the names in expressions, with arrays of a namespace."""
    arrays = {name: xp.asarray(array.copy()) for name, array in ARRAYS.items()}
    elements = {"s": xp.asarray([1.0, 2.0]), "t": xp.asarray([1, 2]), "b": arrays["m"]}
    sums = {"s": xp.sum, "t": xp.sum, "b": xp.any}
    return (
        arrays
        | {name: element(sums[name](each)) for name, each in elements.items()}
        | {
            "pd": pd,
            "df": pd.DataFrame(
                {"a": [1, 2, 3, 4], "b": [1.5, 2.5, 3.5, 4.5], "c": [3, 1, 3, 1]}
            ),
            "sr": pd.Series([3, 1, 2, 1]),
            "ix": pd.Index([3, 1, 2, 5]),
        }
    )


def numpys():
    return names(np, lambda x: x)


def numpys_arrays():
    return names(np, np.asarray)


def ours():
    return names(ndx, lambda x: x)


def chapters():
    """Return the expressions of each chapter: pairs of it and what is said of it."""
    found = {}
    text = (Path(__file__).parent / "pandas_expressions.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            chapter = found.setdefault(line.strip("[]"), [])
        elif line and (HAS_PYARROW or "pyarrow" not in line):
            expression, _, remark = line.partition("  # ")
            chapter.append((expression, remark))
    return found


CHAPTERS = chapters()
OF_ARRAYS = CHAPTERS.pop("q, an extension array")
OF_INDEXES = CHAPTERS.pop("q, an index")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_answers_and_warnings_are_those_of_numpys_arrays(chapter):
    """pandas warns of arrays of other classes where it will take them for lists."""
    plain, objects = [], []
    for expression, remark in CHAPTERS[chapter]:
        (objects if remark == "as an array" else plain).append((expression, remark))
    found = differences(plain, numpys, ours)
    found += differences(objects, numpys_arrays, ours)
    assert not found, "\n".join(found)


EXTENSION_ARRAYS = [
    "pd.array([1, 2, None, 3], dtype='Int64')",
    "pd.array([1.5, 2, None, 3], dtype='Float64')",
    "pd.array([True, None, False, True], dtype='boolean')",
    "pd.array(['a', 'b', 'c', 'a'], dtype='str')",
    "pd.Categorical([3, 1, 2, 3])",
    "pd.arrays.SparseArray([3, 0, 0, 1])",
    "pd.arrays.NumpyExtensionArray(np.array([3, 1, 2, 1]))",
    "pd.date_range('2020', periods=4).array",
    "pd.to_timedelta([1, 2, 3, 4], unit='D').array",
    "pd.period_range('2020', periods=4, freq='D').array",
    "pd.IntervalIndex.from_breaks([0, 1, 2, 3, 4]).array",
]
INDEXES = [
    "pd.Index([3, 1, 2, 5])",
    "pd.RangeIndex(4)",
    "pd.Index([1.5, 3, 2, 4])",
    "pd.Index([True, False, True, True])",
    "pd.Index(['a', 'b', 'c', 'd'])",
    "pd.Index([1, 'b', 2.0, 3], dtype=object)",
    "pd.CategoricalIndex([3, 1, 2, 3])",
    "pd.date_range('2020', periods=4)",
    "pd.to_timedelta([1, 2, 3, 4], unit='D')",
    "pd.period_range('2020', periods=4, freq='D')",
    "pd.IntervalIndex.from_breaks([0, 1, 2, 3, 4])",
    "pd.MultiIndex.from_arrays([[1, 2, 3, 3], [1, 1, 3, 3]])",
    "pd.Index([1, 2, 3, 4], dtype='Int64')",
]


@pytest.mark.parametrize("kind", EXTENSION_ARRAYS)
def test_extension_arrays_answer_as_with_numpys_arrays(kind):
    expressions = [(f"q = {kind}; {each}", "may raise") for each, _ in OF_ARRAYS]
    found = differences(expressions, numpys, ours)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", INDEXES)
def test_indexes_answer_as_with_numpys_arrays(kind):
    expressions = [(f"q = {kind}; {each}", "may raise") for each, _ in OF_INDEXES]
    found = differences(expressions, numpys, ours)
    assert not found, "\n".join(found)


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
