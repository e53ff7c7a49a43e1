"""What NumPy's programs do that has other results where an array is no scalar."""

import collections
import warnings

import numpy
import pytest
from helpers.numpy_versions import needs_part

import ndx
import ndx.numpy as np

VALUES = numpy.arange(6.0).reshape(2, 3)


def indices():
    """Return integers without axes, in the ways that programs get them."""
    return [
        next(iter(np.arange(1, 2))),
        np.array([1, 7]).argmin() + 1,
        np.array([3, 1])[1],
        ndx.asarray(1),
        ndx.asarray(1, dtype="uint8"),
    ]


@pytest.mark.parametrize("index", indices(), ids=str)
def test_elements_of_arrays_are_indices_of_views(index):
    x = np.array(VALUES)
    x[index][1] = 10
    x[:, index][0] = 11
    x[index, :][2] = 12
    x[..., index][1] = 13
    assert x.tolist() == [[0, 11, 2], [3, 13, 12]]
    row = x[index]
    row += 1
    assert x[1].tolist() == [4, 14, 13]
    assert x[index, 0] == 4
    x[index] = 0
    assert x[1].tolist() == [0, 0, 0]
    assert x[[index]].shape == (1, 3)


def test_stale_elements_are_no_indices():
    with ndx.workspace("w"):
        index = ndx.asarray(1)
    with pytest.raises(ndx.StaleArrayError):
        np.array(VALUES)[index]
    mask = ndx.asarray(True)
    assert np.array(VALUES)[mask].shape == (1, 2, 3)


LISTS = [
    ("u8", [2**63 + 1, 1]), ("u8", [2**64 - 1, 1]), ("i8", [2**62 + 1, 0.5]),
    ("f4", [1.5, 10**50]), ("u1", [1, 2.9]), ("?", [2, 0]), ("i8", [float("nan"), 1]),
    ("i8", [1e20, 1]), ("u1", [300, -1]), ("i4", [2**31, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "values"), LISTS)
@pytest.mark.parametrize("key", [slice(None), [0, 1], (Ellipsis,), "flat"], ids=str)
def test_lists_are_assigned_in_the_dtype_of_the_array(dtype, values, key):
    def assign(namespace):
        x = namespace.zeros(2, dtype)
        target, where = (x.flat, slice(None)) if key == "flat" else (x, key)
        try:
            with numpy.errstate(all="ignore"):
                target[where] = values
        except (ValueError, OverflowError) as error:
            return type(error)
        return x.tolist()

    assert assign(np) == assign(numpy)


def test_imaginary_parts_of_lists_are_not_dropped():
    with pytest.raises(TypeError, match="complex"):
        np.zeros(2)[:] = [1j, 2]


def test_arrays_in_another_order_of_bytes_stay_with_numpy():
    x = np.array([1, 258], dtype="i4")
    for found in (
        x.astype(">i4"), np.array([1, 258], dtype=">i4"), np.asarray([1, 258], ">i4"),
        x.byteswap().view(">i4"),
    ):  # fmt: skip
        assert type(found) is numpy.ndarray
        assert found.tobytes() == bytes([0, 0, 0, 1, 0, 0, 1, 2])
    view = x.view(">i4")
    view[0] = 1
    assert x[0] == 1 << 24
    # So does data of others: a copy would have other bytes.
    swapped = numpy.arange(3, dtype=">f8")
    for function in (np.asarray, np.sort, np.flip, np.copy, np.zeros_like, np.unique):
        assert type(function(swapped)) is numpy.ndarray
        assert function(swapped).dtype == ">f8"
        numpy.testing.assert_array_equal(
            function(swapped), getattr(numpy, function.__name__)(swapped)
        )


class OtherList(list):
    pass


@pytest.mark.parametrize("kind", [list, OtherList, collections.deque])
@pytest.mark.parametrize("keyword", [False, True])
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_lists_of_arrays_are_shuffled(make, kind, keyword):
    arrays = kind([np.full(2, i) for i in range(6)])
    numbers = list(range(6))
    if keyword:
        make(0).shuffle(x=arrays)
    else:
        make(0).shuffle(arrays)
    make(0).shuffle(numbers)
    assert [int(x[0]) for x in arrays] == numbers != list(range(6))
    x = np.arange(5)
    make(0).shuffle(x)
    y = numpy.arange(5)
    make(0).shuffle(y)
    assert x.tolist() == y.tolist()


class Units(numpy.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        raise TypeError("units")


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "@"])
def test_other_classes_refuse_in_place_operators(sign):
    names = {"x": np.ones((2, 2)), "q": numpy.ones((2, 2)).view(Units)}
    with pytest.raises(TypeError, match="units"):
        exec(f"x {sign}= q", names)
    assert names["x"].tolist() == [[1, 1], [1, 1]]


def test_an_error_while_the_output_is_written_is_raised():
    """A second try would read what the first has written."""
    x = np.array([0, -2, -1])
    with pytest.raises(ValueError, match="negative integer powers"):
        np.power(x[:2], x[:2], out=x[1:])
    larger = np.zeros((3, 2))
    assert np.add(np.ones(2), 1, out=larger).tolist() == [[2, 2]] * 3


@needs_part("loops")
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u4"])
@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 8, 16])
def test_negative_of_columns(dtype, step):
    values = numpy.arange(40 * step).reshape(40, step).astype(dtype)
    for out_step in (1, 2, 4, 8):
        x = ndx.asarray(values, copy=True)
        out = ndx.zeros((40, out_step), dtype=dtype)
        numpy.testing.assert_array_equal(
            ndx.negative(x[:, 0], out=out[:, 0]), -values[:, 0].copy()
        )
    x = ndx.asarray(values, copy=True)
    numpy.testing.assert_array_equal(
        numpy.negative(x[:, 0], out=x[:, 0]), -values[:, 0].copy()
    )


@pytest.mark.parametrize(
    "function",
    [np.nancumsum, np.nancumprod, np.cumulative_sum, np.cumulative_prod]
    + [ufunc.accumulate for ufunc in (np.maximum, np.logaddexp, np.logical_and)],
)
def test_other_running_totals_into_an_output_without_axes(function):
    with pytest.raises(ValueError, match="out has no axes"):
        function([1.0, 2.0], out=ndx.asarray(0.0))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_totals_into_an_output_without_axes(name):
    """NumPy's own function crashes."""
    x, out = np.arange(6), np.asarray(5)
    for call in (getattr(x, name), lambda out: getattr(np, name)(x, out=out)):
        with pytest.raises(ValueError, match="out has no axes"):
            call(out=out)


def test_numpys_assertions_take_arrays():
    x = np.array([1.0, 2.0])
    np.testing.assert_equal(x, np.array([1.0, 2.0]))
    np.testing.assert_equal([x, {"a": x[0]}], [x, {"a": 1}])
    np.testing.assert_equal(x[0], 1)
    np.testing.assert_almost_equal(x, x + 1e-9)
    with pytest.raises(AssertionError):
        np.testing.assert_equal(x, x + 1)
    with pytest.raises(AssertionError):
        np.testing.assert_almost_equal([x[0]], [2.0])


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("ddof", [0, 1, 2, 3, 4, 2.5])
def test_more_degrees_of_freedom_than_elements(name, ddof):
    values = numpy.array([1.0, 2.0, 4.0])
    functions = [
        lambda a: getattr(a, name)(ddof=ddof),
        lambda a: getattr(numpy, name)(a, ddof=ddof),
    ]
    with numpy.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        for function in functions:
            numpy.testing.assert_allclose(
                numpy.asarray(function(np.asarray(values))), function(values)
            )


def test_more_keys_than_there_can_be():
    """NumPy's function crashes: it does not check that their indices fit."""
    many = ndx.broadcast_to(ndx.asarray(3, dtype=ndx.int8), (2**62,))
    with pytest.raises(ValueError, match="can be in memory"):
        np.lexsort(many[None])
    assert np.lexsort((np.array([3, 1, 2]),)).tolist() == [1, 2, 0]
