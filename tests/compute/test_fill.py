"""Filling with one value, bit for bit, of any size, offset and layout."""

import numpy as np
import pytest
from helpers import dtypes
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ndx

# Fills of so many bytes go past the caches, in parts of 1 MiB.
LARGE = 32 * 2**20
GUARD = 64


def bits(x):
    """Return the bytes of an array, in its order."""
    return np.ascontiguousarray(x).view(np.uint8)


def assert_filled(x, value):
    """Assert that each element has exactly the bits of `value`, a NumPy scalar."""
    unsigned = np.dtype(f"u{min(value.nbytes, 8)}")
    wanted = np.atleast_1d(value).view(unsigned)
    found = np.ascontiguousarray(x).reshape(-1).view(unsigned)
    assert (found.reshape(-1, len(wanted)) == wanted).all()


def values(name):
    return hnp.from_dtype(np.dtype(name)).map(np.dtype(name).type)


@given(data=st.data(), name=st.sampled_from(dtypes.ALL))
def test_each_way_to_fill(data, name):
    value = data.draw(values(name))
    length = data.draw(st.one_of(st.integers(0, 80), st.sampled_from([32767, 32768])))
    start = data.draw(st.integers(0, 20))
    for given_value in (value, ndx.asarray(value), np.full((1, 1), value)):
        room = ndx.zeros(start + length + GUARD, dtype=name)
        room[start : start + length] = given_value
        assert_filled(room[start : start + length], value)
        assert_filled(room[:start], np.zeros((), name))
        assert_filled(room[start + length :], np.zeros((), name))


@given(data=st.data(), name=st.sampled_from(dtypes.ALL))
def test_python_scalars(data, name):
    # A NaN's payload need not outlive its way through a Python float.
    value = data.draw(values(name).filter(lambda v: v == v))
    length = data.draw(st.integers(0, 80))
    x = ndx.empty(length, dtype=name)
    x[...] = value.item()
    assert_filled(x, value)
    assert_filled(ndx.full(length, value.item(), dtype=name), value)


@pytest.mark.parametrize("name", ["bool", "int16", "float32", "uint64", "complex128"])
@pytest.mark.parametrize("less", [16, 0, -(2**20) - 48])
def test_around_the_size_that_goes_past_the_caches(name, less):
    itemsize = np.dtype(name).itemsize
    pattern = np.frombuffer(bytes(range(1, itemsize + 1)), np.uint8)
    value = np.bool_(True) if name == "bool" else pattern.view(name)[0]
    length = (LARGE - less) // itemsize
    room = ndx.zeros(length + 2 * GUARD, dtype=name)
    for start in (0, 3):
        room[start : start + length] = value
        found = np.asarray(room)
        assert not found[:start].any()
        assert_filled(found[start : start + length], value)
        assert not found[start + length :].any()
        room[start : start + length] = np.zeros((), name)


@pytest.mark.parametrize("start", [0, 8, 24])
def test_half_elements_before_a_boundary(start):
    """NumPy aligns complex128 to 8 bytes, but the stores take 16."""
    room = np.zeros(LARGE + 4096, np.uint8)
    start += -room.ctypes.data % 64
    given_array = room[start : start + LARGE + 160].view(np.complex128)
    x = ndx.asarray(given_array, copy=False)
    x[...] = 1.25 - 2j
    assert (given_array == 1.25 - 2j).all()
    assert not room[:start].any()
    assert not room[start + LARGE + 160 :].any()


@pytest.mark.parametrize("nbytes", [64, LARGE])
def test_signs_and_payloads_are_kept(nbytes):
    for pattern in (0x7FF8_0000_0000_1234, 0xFFF8_0000_0000_0001, 1 << 63):
        value = np.uint64(pattern).view(np.float64)
        x = ndx.zeros(nbytes // 8)
        for given_value in (value, float(value)):
            x[...] = given_value
            assert (np.asarray(x).view(np.uint64) == pattern).all()


@given(data=st.data(), name=st.sampled_from(dtypes.ALL))
def test_views_of_any_layout(data, name):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=9))
    key = data.draw(hnp.basic_indices(shape))
    value = data.draw(values(name))
    room = ndx.zeros(shape, dtype=name)
    expected = np.zeros(shape, name)
    room[key] = value
    expected[key] = value
    assert bits(np.asarray(room)).tolist() == bits(expected).tolist()


def test_new_and_used_memory():
    """Pages that the system has yet to give are filled in another way."""
    backend = ndx.backends.HostBackend()
    with ndx.use(backend):
        part = ndx.ones(LARGE // 16)
        assert bool(ndx.all(part == 1.0))
        del part
        for value in (2.5, 0.0, 3.5):
            x = ndx.full(2 * LARGE // 8, value)
            assert bool(ndx.all(x == value))
            del x


def test_one_element_of_itself():
    x = ndx.arange(100_000.0)
    x[...] = x[7]
    assert bool(ndx.all(x == 7.0))


def test_a_read_only_array_is_not_filled():
    given_array = np.zeros(10)
    given_array.flags.writeable = False
    x = ndx.asarray(given_array, copy=False)
    with pytest.raises(ValueError, match="read-only"):
        x[...] = 1.0
    assert not given_array.any()
