"""Names, limits and promotion of dtypes, casts, and what the namespace offers."""

import numpy as np
import pytest
from helpers import arrays, dtypes
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx


@pytest.mark.parametrize("name", dtypes.ALL)
def test_names(name):
    assert getattr(ndx, name) == np.dtype(name)
    assert isinstance(getattr(ndx, name), np.dtype)
    assert hash(getattr(ndx, name)) == hash(ndx.zeros(1, dtype=name).dtype)


@pytest.mark.parametrize("target", dtypes.ALL)
@given(pair=arrays.pairs(finite=True))
def test_astype(target, pair):
    a, x = pair
    dtype = getattr(ndx, target)
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        with pytest.raises(TypeError, match="imaginary"):
            ndx.astype(x, dtype)
        return
    found = ndx.astype(x, dtype)
    with np.errstate(invalid="ignore"):
        # ARM reports floats that an unsigned integer can't have.
        expected = a.astype(target)
    assert_same(found, expected)
    assert found is not x
    assert (ndx.astype(x, dtype, copy=False) is x) == (x.dtype == dtype)


@pytest.mark.parametrize("second", dtypes.ALL)
@pytest.mark.parametrize("first", dtypes.ALL)
def test_promotion(first, second):
    a, b = getattr(ndx, first), getattr(ndx, second)
    expected = np.result_type(first, second)
    assert ndx.result_type(a, b) == expected
    assert ndx.result_type(ndx.ones(1, dtype=a), b) == expected
    assert ndx.can_cast(a, b) == (expected == b)
    assert ndx.can_cast(ndx.ones(1, dtype=a), b) == (expected == b)


def test_result_type_with_scalars():
    assert ndx.result_type(ndx.int8, 1) == "int8"
    assert ndx.result_type(ndx.int8, 1.0) == "float64"
    assert ndx.result_type(1.0, ndx.float32, ndx.int8) == "float32"
    assert ndx.result_type(ndx.float32, 1j) == "complex64"
    assert ndx.result_type(True, ndx.uint8) == "uint8"
    with pytest.raises(ValueError, match="array or a dtype"):
        ndx.result_type(1, 2.0)
    with pytest.raises(TypeError, match="not a dtype"):
        ndx.result_type("no dtype")


@pytest.mark.parametrize("name", dtypes.FLOATS + dtypes.COMPLEX)
def test_finfo(name):
    found, expected = ndx.finfo(getattr(ndx, name)), np.finfo(name)
    assert (found.bits, found.dtype) == (expected.bits, expected.dtype)
    for key in ("eps", "max", "min", "smallest_normal"):
        assert type(getattr(found, key)) is float
        assert getattr(found, key) == getattr(expected, key)
    assert ndx.finfo(ndx.zeros(1, dtype=name)) == found
    with pytest.raises(TypeError, match="int8"):
        ndx.finfo(ndx.int8)


@pytest.mark.parametrize("name", dtypes.INTEGERS)
def test_iinfo(name):
    found, expected = ndx.iinfo(getattr(ndx, name)), np.iinfo(name)
    assert (found.bits, found.max, found.min) == (
        expected.bits,
        expected.max,
        expected.min,
    )
    assert found.dtype == name
    with pytest.raises(TypeError, match="float32"):
        ndx.iinfo(ndx.float32)


KINDS = {
    "bool": dtypes.BOOL,
    "signed integer": dtypes.SIGNED,
    "unsigned integer": dtypes.UNSIGNED,
    "integral": dtypes.INTEGERS,
    "real floating": dtypes.FLOATS,
    "complex floating": dtypes.COMPLEX,
    "numeric": dtypes.NUMERIC,
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind):
    info = ndx.__array_namespace_info__()
    standard = set(KINDS[kind]) & set(dtypes.STANDARD)
    assert set(info.dtypes(kind=kind)) == standard
    for name in dtypes.ALL:
        assert ndx.isdtype(getattr(ndx, name), kind) == (name in KINDS[kind])
        assert ndx.isdtype(getattr(ndx, name), ("bool", kind)) == (
            name in KINDS[kind] + dtypes.BOOL
        )


def test_isdtype_by_dtype():
    assert ndx.isdtype(ndx.int8, ndx.int8)
    assert not ndx.isdtype(ndx.int8, (ndx.int16, "real floating"))
    with pytest.raises(ValueError, match="no kind of dtypes 'integer'"):
        ndx.isdtype(ndx.int8, "integer")


def test_namespace_info():
    info = ndx.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert info.default_device() in info.devices()
    assert info.default_dtypes(device="cpu") == {
        "real floating": ndx.float64,
        "complex floating": ndx.complex128,
        "integral": ndx.int64,
        "indexing": ndx.int64,
    }
    assert list(info.dtypes()) == list(dtypes.STANDARD)
    with pytest.raises(ValueError, match="no device 'tpu'"):
        info.dtypes(device="tpu")


@given(arrays.pairs(dtypes.REALS, finite=True), st.data())
def test_clip(pair, data):
    a, x = pair
    low = data.draw(st.none() | st.integers(0, 3))
    high = data.draw(st.none() | st.integers(3, 5))
    expected = a.copy() if low is high is None else np.clip(a, low, high)
    assert_same(ndx.clip(x, low, high), expected)
    assert_same(
        ndx.clip(x, min=low, max=x),
        a if low is None else np.maximum(a, low).clip(max=a),
    )
    out = ndx.asarray(a, copy=True)
    assert ndx.clip(out, low, high, out=out) is out
    assert_same(out, expected)
