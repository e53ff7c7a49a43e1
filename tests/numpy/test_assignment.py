"""``x[key] = value`` casts as NumPy does; imaginary parts are never dropped."""

import numpy as np
import pytest

import ndx

KEYS = [0, slice(1, None), Ellipsis, [0, 2], np.array([True, False, True])]
DTYPES = [
    *("bool", "int8", "uint8", "int32", "int64"),
    *("float16", "float32", "float64", "complex128"),
]


def assigned(array, key, value):
    with np.errstate(all="ignore"):
        array[key] = value
    return np.asarray(array)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("into", DTYPES)
@pytest.mark.parametrize("value", [True, 3, 2.7, -0.0, np.float64(1.9), np.int64(7)])
def test_numbers_are_cast(into, key, value):
    expected = assigned(np.zeros(3, into), key, value)
    found = assigned(ndx.zeros(3, dtype=into), key, value)
    assert found.dtype == into
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("into", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("wrap", [np.asarray, ndx.asarray], ids=["NumPy", "ndx"])
def test_arrays_are_cast(into, dtype, key, wrap):
    value = np.array([1, 5.9, 120.5]).astype(dtype)
    expected = np.zeros(3, into)
    value = value[: expected[key].size] if expected[key].ndim else value[1]
    expected = assigned(expected, key, value)
    found = assigned(ndx.zeros(3, dtype=into), key, wrap(value))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("into", DTYPES[:-1])
@pytest.mark.parametrize("value", [1j, np.complex128(2), ndx.asarray(1j)], ids=repr)
def test_imaginary_parts_are_not_dropped(into, key, value):
    x = ndx.zeros(3, dtype=into)
    with pytest.raises(TypeError, match="can't be stored.*imaginary part"):
        x[key] = value
    assert not np.asarray(x).any()


@pytest.mark.parametrize(
    ("value", "error"),
    [(float("nan"), ValueError), (float("inf"), OverflowError), (1e30, OverflowError)],
)
def test_floats_that_are_no_integers_are_refused(value, error):
    x = ndx.zeros(3, dtype="int64")
    for key in KEYS:
        with pytest.raises(error):
            x[key] = value
    assert not np.asarray(x).any()


def test_augmented_assignment_of_a_part_casts_too():
    a, x = np.arange(5), ndx.asarray(np.arange(5), copy=True)
    for array in (a, x):
        array[1:3] = array[1:3] * 1.5
        array[[0, 4]] = array[[0, 4]] / 2
    np.testing.assert_array_equal(np.asarray(x), a)


def test_an_array_in_place_keeps_its_dtype_or_is_refused():
    x = ndx.ones(2, dtype="int64")
    with pytest.raises(TypeError, match="in place"):
        x += 0.5
    assert x.tolist() == [1, 1]


FOREIGN = {
    "strings": ["1", "2.5", "3"],
    "objects": np.array([1, 2, 0.5], object),
    "bytes": np.array([b"1", b"2", b"3"]),
    "longdouble": np.array([1, 0.5, 3], "longdouble"),
    "not numbers": ["1", "a", "3"],
}


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("into", ["bool", "int32", "float64", "complex128"])
@pytest.mark.parametrize("name", FOREIGN)
def test_values_of_other_dtypes_are_cast(into, name, key):
    values = FOREIGN[name]
    expected, found = np.zeros(3, into), ndx.zeros(3, dtype=into)
    if expected[key].ndim == 0:
        values = values[1]
    else:
        values = values[: expected[key].size]
    try:
        expected = assigned(expected, key, values)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            found[key] = values
        assert found.tolist() == [0] * 3
    else:
        np.testing.assert_array_equal(assigned(found, key, values), expected)


def test_imaginary_parts_of_other_dtypes_are_not_dropped():
    x = ndx.zeros(3)
    with pytest.raises(TypeError, match="clongdouble|complex256"):
        x[:] = np.ones(3, "clongdouble")


@pytest.mark.parametrize("into", ["bool", "int32", "float64"])
@pytest.mark.parametrize("number", [1 + 2j, np.complex64(1 + 2j), np.clongdouble(1)])
def test_imaginary_parts_of_objects_are_not_dropped(into, number):
    values = np.empty(3, object)
    values[:] = [number, None, 2]
    x = ndx.zeros(3, dtype=into)
    for each in (values, values.tolist()):
        with pytest.raises(TypeError, match="imaginary part"):
            x[:] = each
    assert x.tolist() == [0] * 3
