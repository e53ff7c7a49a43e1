"""Reading and writing by all kinds of keys, against NumPy's."""

import random

import numpy as np
import pytest
from helpers import dtypes, patterns
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx


@st.composite
def basic_keys(draw, shape):
    """Draw a key of integers, slices, newaxis and at most one ellipsis."""
    items = []
    for side in shape[: draw(st.integers(0, len(shape)))]:
        kinds = ["slice"] + ["int"] * (side > 0)
        if draw(st.sampled_from(kinds)) == "int":
            items.append(draw(st.integers(-side, side - 1)))
        else:
            bound = st.one_of(st.none(), st.integers(-side - 2, side + 2))
            step = st.sampled_from([None, 1, 2, 3, -1, -2, 10, -10])
            items.append(slice(draw(bound), draw(bound), draw(step)))
    if draw(st.booleans()):
        # Those after the ellipsis count from the end: any will do for each axis.
        at = draw(st.integers(0, len(items)))
        items[at:] = [Ellipsis]
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    return tuple(items)


@st.composite
def index_arrays(draw, side, shape):
    """Draw integers for an axis, as an NDArray, a NumPy array or a list."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from(["int64", "int32", "int8", "uint8", "uint64"]))
    low = 0 if dtype.startswith("u") else -side
    index = rng.integers(low, side, size=shape).astype(dtype)
    as_list = [np.ndarray.tolist] * bool(index.size)
    return index, draw(st.sampled_from([ndx.asarray, np.asarray, *as_list]))


@st.composite
def advanced_keys(draw, shape):
    """Draw (a key for NumPy, the same for ndx)."""
    if draw(st.integers(0, 3)) == 0:
        ndim = draw(st.integers(0, len(shape)))
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        mask = rng.random(shape[:ndim]) < 0.5
        as_ours = draw(st.sampled_from([ndx.asarray, np.asarray]))
        return mask, as_ours(mask)
    theirs, ours = [], []
    (common,) = [draw(patterns.shapes(max_dims=2, max_side=3))]
    for side in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["array", "array", "slice", "int"]))
        if kind == "slice" or not side:
            item = converted = slice(None, None, draw(st.sampled_from([1, 2, -1])))
        elif kind == "int":
            item = converted = draw(st.integers(-side, side - 1))
        else:
            item, convert = draw(index_arrays(side, common))
            converted = convert(item)
        theirs.append(item)
        ours.append(converted)
    if draw(st.booleans()) and len(theirs) == 1:
        return theirs[0], ours[0]
    return tuple(theirs), tuple(ours)


def shares(x, y):
    return np.shares_memory(np.asarray(x), np.asarray(y)) or not y.size


@given(st.data(), st.sampled_from(dtypes.ALL))
def test_get_by_a_basic_key(data, dtype):
    shape = data.draw(patterns.shapes(max_dims=4))
    a = data.draw(patterns.arrays(dtype, shape))
    key = data.draw(basic_keys(shape))
    if len(key) == 1 and data.draw(st.booleans()):
        key = key[0]
    x = ndx.asarray(a)
    view = x[key]
    expected = a[key]
    assert_same(view, expected)
    whole = key if isinstance(key, tuple) else (key,)
    if len(whole) == a.ndim and all(isinstance(item, int) for item in whole):
        assert not np.shares_memory(np.asarray(x), np.asarray(view))
        return
    assert shares(x, view)
    if np.asarray(expected).ndim and np.asarray(expected).size:
        for step, other, side in zip(
            view.strides, expected.strides, view.shape, strict=True
        ):
            assert step == other or side == 1


@given(st.data())
def test_set_by_a_basic_key(data):
    shape = data.draw(patterns.shapes(max_dims=3))
    a = data.draw(patterns.arrays("float64", shape, broadcast=False)).copy(order="K")
    b = a.copy(order="K")
    key = data.draw(basic_keys(shape))
    target = a[key].shape if np.asarray(a[key]).ndim else ()
    kept = target[data.draw(st.integers(0, len(target))) :]
    source = tuple(1 if data.draw(st.booleans()) else n for n in kept)
    dtype = data.draw(st.sampled_from(["float64", "float32", "int16", "bool"]))
    value = data.draw(patterns.arrays(dtype, source))
    given_as = data.draw(st.sampled_from([ndx.asarray, np.asarray, np.ndarray.tolist]))
    if value.size == 0:
        given_as = np.asarray
    x = ndx.asarray(b)
    a[key] = value
    x[key] = given_as(value)
    np.testing.assert_array_equal(b, a)


@given(st.data(), st.sampled_from(["float64", "int16", "bool", "complex64"]))
def test_get_by_an_advanced_key(data, dtype):
    shape = data.draw(patterns.shapes(max_dims=3, min_dims=1))
    a = data.draw(patterns.arrays(dtype, shape))
    theirs, ours = data.draw(advanced_keys(shape))
    found = ndx.asarray(a)[ours]
    assert_same(found, a[theirs])


@given(st.data())
def test_set_by_an_advanced_key(data):
    shape = data.draw(patterns.shapes(max_dims=3, min_dims=1))
    a = data.draw(patterns.arrays("float64", shape, broadcast=False)).copy(order="K")
    b = a.copy(order="K")
    theirs, ours = data.draw(advanced_keys(shape))
    x = ndx.asarray(b)
    scalar = data.draw(st.booleans())
    if scalar:
        value = data.draw(st.sampled_from([1, 2.5, True, -0.0]))
        a[theirs] = value
        x[ours] = value
    else:
        target = np.asarray(a[theirs]).shape
        value = data.draw(patterns.arrays("float32", target))
        # Where an element is written twice the order is not defined.
        value = np.broadcast_to(value.ravel()[:1].reshape([1] * len(target)), target)\
            if value.size else value  # fmt: skip
        a[theirs] = value
        x[ours] = ndx.asarray(value)
    np.testing.assert_array_equal(b, a)


# ---- kinds of keys -----------------------------------------------------------


def test_elements_are_arrays_without_axes():
    x = ndx.asarray([[1, 2], [3, 4]])
    assert_same(x[1, 0], np.array(3))
    assert_same(x[()], np.array([[1, 2], [3, 4]]))
    assert_same(x[1, 1][()], np.array(4))
    assert_same(x[1, 1][...], np.array(4))
    y = x[0, 0, ...]
    y[...] = 7
    assert x.tolist() == [[7, 2], [3, 4]]


KEYS_OF_ELEMENTS = [(1, 0), (np.int64(1), 0), (-1, np.uint8(0)), (True + 0, -2)]


@pytest.mark.parametrize("key", KEYS_OF_ELEMENTS)
@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_an_element_is_independent_of_its_array(key, dtype):
    a = np.arange(4).reshape(2, 2).astype(dtype)
    x = ndx.asarray(a)
    found, expected = x[key], np.array(a[key])
    assert_same(found, expected)
    x[...] = ndx.zeros((), dtype=dtype)
    assert_same(found, expected)
    with pytest.raises(TypeError, match="can't be changed"):
        found[...] = ndx.ones((), dtype=dtype)
    assert not np.asarray(x).any()


def test_an_element_keeps_no_array_alive():
    backend = ndx.backends.get("host", limit="16MiB")
    with ndx.use(backend):
        kept = [ndx.ones(100_000)[0] for _ in range(5)]
    assert sum(kept) == 5.0
    assert backend.stats()["allocated_bytes"] < 100_000


def test_an_element_of_a_read_only_array_can_be_written():
    x = ndx.broadcast_to(ndx.asarray(3.0), (2,))
    found = x[1]
    found += 1
    assert float(found) == 4.0
    assert float(x[1]) == 3.0


def test_an_array_without_axes_is_copied_by_an_empty_key():
    x = ndx.asarray(1.0)
    found = x[()]
    x[...] = 2.0
    assert float(found) == 1.0
    x[...][...] = 3.0
    assert float(x) == 3.0


def test_elements_are_exchanged_and_shuffled_as_those_of_numpy():
    x = ndx.arange(3.0)
    x[0], x[2] = x[2], x[0]
    assert x.tolist() == [2.0, 1.0, 0.0]
    for seed in range(20):
        y = ndx.arange(5)
        random.Random(seed).shuffle(y)  # type: ignore[arg-type]
        assert sorted(y.tolist()) == [0, 1, 2, 3, 4]
    old = x[0]
    x += 10
    assert float(old) == 2.0


@pytest.mark.parametrize("key", [1, (1,), -2])
def test_an_element_is_changed_in_place(key):
    x = ndx.arange(3)
    x[key] += 5
    x[key] *= 2
    assert x.tolist() == [0, 12, 2]


def test_iteration_gives_independent_elements():
    x = ndx.arange(3)
    found = list(x)
    x[...] = 7
    assert [int(each) for each in found] == [0, 1, 2]
    backwards = x[::-1]
    x[0] = 1
    assert [int(each) for each in backwards] == [7, 7, 1]


def test_iteration_stops_where_the_scope_ends():
    with ndx.workspace("iterated"):
        found = iter(ndx.arange(3))
        next(found)
    with pytest.raises(ndx.StaleArrayError):
        next(found)


def test_integers_of_all_kinds():
    x = ndx.arange(5)

    class Two:
        def __index__(self):
            return 2

    for key in (2, -3, np.int8(2), np.uint64(2), Two(), ndx.asarray(2), np.asarray(2)):
        assert_same(x[key], np.array(2))
        y = ndx.arange(5)
        y[key] = 9
        assert y.tolist() == [0, 1, 9, 3, 4]
    assert_same(x[ndx.asarray(1) : ndx.asarray(3)], np.array([1, 2]))
    assert_same(x[np.int64(1) : Two() : Two()], np.array([1]))


def test_lists_tuples_and_masks():
    x = ndx.asarray(np.arange(12).reshape(3, 4))
    a = np.arange(12).reshape(3, 4)
    for key in (
        [0, 2],
        [[0, 1], [2, 0]],
        ([0, 1], [1, 2]),
        [True, False, True],
        (slice(None), [True, False, True, False]),
        [],
        (0, []),
        True,
        False,
        np.True_,
        (True, 0),
        (Ellipsis, [0, 1]),
        (None, [0, 1]),
        ([0, 1], None, slice(1, 3)),
    ):
        assert_same(x[key], a[key])
    mask = a > 5
    assert_same(x[ndx.asarray(mask)], a[mask])
    assert_same(x[x > 5], a[mask])
    assert_same(x[mask.tolist()], a[mask])
    x[x > 5] = 0
    a[mask] = 0
    assert_same(x, a)


@pytest.mark.parametrize("size", [3, 600, 40_000])
def test_a_mask_that_shares_memory_with_its_target(size):
    """It is read before anything is written; NumPy reads it meanwhile."""
    a = np.arange(size) % 11 != 5
    x, y = ndx.asarray(a, copy=True), ndx.asarray(a, copy=True)
    expected = np.where(a[::-1], False, a)
    x[::-1][x] = False
    assert_same(x, expected)
    y[::-1][y] = ndx.zeros(int(a.sum()), dtype="bool")
    assert_same(y, expected)


def test_a_mask_of_an_array_without_axes():
    x = ndx.asarray(3.0)
    assert_same(x[ndx.asarray(True)], np.array([3.0]))
    assert_same(x[ndx.asarray(False)], np.array([], dtype=float))
    x[ndx.asarray(True)] = 4.0
    assert float(x) == 4.0


# ---- errors ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "match"),
    [
        (3, r"index 3 is out of bounds for axis 0 with size 3.*\(3, 4\)"),
        (-4, "index -4 is out of bounds for axis 0 with size 3"),
        ((0, 4), "index 4 is out of bounds for axis 1 with size 4"),
        ((Ellipsis, -5), "index -5 .* axis 1"),
        (10**30, "."),
        ((0, 0, 0), r"too many indices: 3 for an array of shape \(3, 4\)"),
        ((0, slice(None), slice(None)), "too many indices"),
        ((Ellipsis, Ellipsis), "single ellipsis"),
        ([3], "out of bounds"),
        (([0, 1], [0, 7]), "out of bounds"),
        (([0, 1], [0, 1, 2]), "."),
        (np.ones((3, 3), bool), "."),
        (np.ones((4,), bool), "."),
        (1.0, "can't be indexed by float.*valid are integers, slices"),
        ([0.5], "can't be indexed by float64"),
        ("a", r"array of shape \(3, 4\) can't be indexed by str"),
        (1j, "complex"),
        ({}, "dict"),
        (object(), "object"),
        (np.array([1.0]), "float64"),
        (["a"], "can't be indexed by"),
        ((None,) * 70, "axes"),
    ],
)
def test_bad_keys(key, match):
    x = ndx.asarray(np.arange(12.0).reshape(3, 4))
    with pytest.raises(IndexError, match=match):
        x[key]
    with pytest.raises(IndexError, match=match):
        x[key] = 1.0
    assert_same(x, np.arange(12.0).reshape(3, 4))


def test_a_step_of_zero():
    with pytest.raises(ValueError, match="zero"):
        ndx.ones(3)[::0]


def test_slices_must_be_of_integers():
    for key in (slice(0.5, None), slice("a"), slice(None, None, 1.0)):
        with pytest.raises(TypeError):
            ndx.ones(3)[key]


def test_an_array_without_axes_has_no_elements_to_take():
    x = ndx.asarray(1.0)
    for key in (0, slice(None), [0]):
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(TypeError):
        iter(x)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int64", 1j),
        ("float32", 1j),
        ("bool", np.complex64(1)),
        ("float64", ndx.ones(3, dtype="complex64")),
        ("uint8", [1j, 2, 3]),
        ("float64", "a"),
        ("float64", ["a", "b", "c"]),
        ("float64", None),
        ("float64", object()),
        ("int64", np.array(["2020-01-01"] * 3, "M8[D]")),
    ],
)
@pytest.mark.parametrize("key", [0, slice(None), [0, 1, 2], np.ones(3, bool)])
def test_values_of_kinds_that_do_not_fit(dtype, value, key):
    x = ndx.ones(3, dtype=dtype)
    with pytest.raises((TypeError, ValueError)) as caught:
        x[key] = value
    if isinstance(caught.value, TypeError) and "stored" in str(caught.value):
        assert f"dtype {dtype}" in str(caught.value)
        assert ("NaN" if value is None else "ndx.real(x)") in str(caught.value)
    assert_same(x, np.ones(3, dtype))


@pytest.mark.parametrize("key", [0, slice(None), [0, 1, 2], np.ones(3, bool)])
def test_numbers_that_do_not_fit(key):
    x = ndx.ones(3, dtype="uint8")
    for value in (256, -1, 10**30):
        with pytest.raises(OverflowError, match="uint8"):
            x[key] = value
    assert_same(x, np.ones(3, "uint8"))


def test_shapes_of_values_that_do_not_fit():
    x = ndx.zeros((3, 4))
    with pytest.raises(ValueError, match=r"from shape \(3,\).*shape \(3, 4\)"):
        x[...] = ndx.ones(3)
    with pytest.raises(ValueError, match=r"shape \(2, 3, 4\)"):
        x[...] = np.ones((2, 3, 4))
    with pytest.raises(ValueError, match="shape"):
        x[0] = [1.0, 2.0]
    with pytest.raises(ValueError, match="shape"):
        x[[0, 1]] = np.ones((3, 4))
    with pytest.raises(ValueError, match="5 input values"):
        x[x == 0] = np.ones(5)
    x[...] = np.ones((1, 1, 3, 4))
    assert_same(x, np.ones((3, 4)))


def test_a_read_only_array():
    a = np.zeros(3)
    a.flags.writeable = False
    x = ndx.asarray(a)
    for key in (0, slice(None), [0], np.ones(3, bool), slice(0, 0)):
        with pytest.raises(ValueError, match="read-only"):
            x[key] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        x[1:][0] = 1.0
    with pytest.raises(TypeError):
        del x[0]


# ---- overlap -----------------------------------------------------------------


@pytest.mark.parametrize("size", [5, 5000])
def test_writing_an_array_to_itself(size):
    for target, source in (
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:-1], np.s_[1:]),
        (np.s_[:], np.s_[::-1]),
        (np.s_[::2], np.s_[: (size + 1) // 2]),
        (np.arange(size), np.s_[::-1]),
        (np.arange(size)[::-1], np.s_[:]),
        (np.s_[:], np.s_[0]),
    ):
        a = np.arange(size)
        x = ndx.arange(size)
        a[target] = a[source].copy()
        x[target] = x[source]
        assert_same(x, a)


def test_iteration():
    x = ndx.asarray(np.arange(6).reshape(3, 2))
    rows = list(x)
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    rows[0][0] = 9
    assert x.tolist()[0] == [9, 1]
    assert [float(v) for v in ndx.arange(3)] == [0.0, 1.0, 2.0]
    assert list(ndx.zeros((0, 3))) == []
    assert len(x) == 3
    _, b, _ = x
    assert b.tolist() == [2, 3]
    assert 5 in x
    assert 7 not in x
    assert "a" not in x
    assert [row.tolist() for row in reversed(x)] == [[4, 5], [2, 3], [9, 1]]
