"""Comparisons of uint64 with signed integers are exact, as NumPy's."""

import operator

import numpy as np
import pytest
from helpers import dtypes
from helpers.numpy_versions import warns

import ndx
import ndx.numpy as nn

SIGNED = np.array([2**53 + 1, 2**63 - 1, -1, 0, -(2**63), 2**62, 5], np.int64)
UNSIGNED = np.array([2**53, 2**63, 2**64 - 1, 0, 2**63, 2**62 + 1, 5], np.uint64)
NAMES = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
PAIRS = [
    (SIGNED, UNSIGNED),
    (np.tile(SIGNED, 6000), np.tile(UNSIGNED, 6000)),
    (SIGNED[::-1], UNSIGNED),
    (SIGNED[:, None], UNSIGNED),
    (np.array([-1, 5, 127], np.int8), UNSIGNED[[2, 6, 0]]),
    (np.array([-1, 5, -(2**31)], np.int32)[::-1], UNSIGNED[[2, 6, 4]]),
    (SIGNED[:0], UNSIGNED[:0]),
]


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(params=range(len(PAIRS)))
def pair(request):
    return PAIRS[request.param]


def test_arrays(name, pair):
    for a, b in (pair, pair[::-1]):
        expected = getattr(np, name)(a, b)
        x, y = ndx.asarray(a), ndx.asarray(b)
        out = ndx.empty(expected.shape, dtype=bool)
        found = [
            getattr(ndx, name)(x, y),
            getattr(ndx, name)(x, y, out=out),
            NAMES[name](x, y),
            NAMES[name](x, b),
            getattr(np, name)(x, y),
            getattr(np, name)(a, y),
            getattr(nn, name)(x, y),
        ]
        for result in found:
            assert result.dtype == bool
            np.testing.assert_array_equal(np.asarray(result), expected)


def test_scalars_of_numpy(name):
    for scalar in SIGNED:
        found = NAMES[name](ndx.asarray(UNSIGNED), scalar)
        np.testing.assert_array_equal(np.asarray(found), NAMES[name](UNSIGNED, scalar))
    for scalar in UNSIGNED:
        found = getattr(ndx, name)(scalar, ndx.asarray(SIGNED))
        np.testing.assert_array_equal(
            np.asarray(found), getattr(np, name)(scalar, SIGNED)
        )


def test_out_that_overlaps(name):
    """The result is written over the integers that it is made of."""
    bits = np.resize(SIGNED, 64).copy()
    expected = getattr(np, name)(bits, UNSIGNED[0])
    x = ndx.asarray(bits)
    out = ndx.asarray(bits.view(bool)[1:65])
    getattr(ndx, name)(x, ndx.asarray(UNSIGNED[:1]), out=out)
    np.testing.assert_array_equal(np.asarray(out), expected)


def test_files(name, tmp_path):
    a, b = PAIRS[1]
    ndx.save(tmp_path / "a.npy", ndx.asarray(a))
    ndx.save(tmp_path / "b.npy", ndx.asarray(b))
    with ndx.passes(threshold=0):
        found = getattr(ndx, name)(
            ndx.open(tmp_path / "a.npy"), ndx.open(tmp_path / "b.npy")
        )
    np.testing.assert_array_equal(np.asarray(found), getattr(np, name)(a, b))


def test_fused(name):
    function = NAMES[name]
    fused = ndx.fuse(lambda x, y: function(x, y))
    for _ in range(3):
        found = fused(ndx.asarray(SIGNED), ndx.asarray(UNSIGNED))
        np.testing.assert_array_equal(np.asarray(found), function(SIGNED, UNSIGNED))


def test_other_operations_compute_floats():
    x, y = ndx.asarray(SIGNED), ndx.asarray(UNSIGNED)
    for function in (ndx.add, ndx.maximum, ndx.divide):
        assert function(x, y).dtype == np.float64
    np.testing.assert_array_equal(
        np.asarray(ndx.logical_and(x, y)), np.logical_and(SIGNED, UNSIGNED)
    )
    with pytest.raises(TypeError, match="bitwise_and does not take float64"):
        ndx.bitwise_and(x, y)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("sorter", [False, True])
def test_searchsorted_takes_scalars_in_the_dtype_of_the_array(side, sorter):
    for values in (
        np.array([2**53, 2**53 + 1, 2**53 + 2, 2**64 - 1], np.uint64),
        np.array([-(2**63), 2**53, 2**53 + 1, 2**63 - 1], np.int64),
        np.array([0, 3, 255], np.uint8),
    ):
        x = ndx.asarray(values)
        how = {"side": side, "sorter": ndx.arange(len(values)) if sorter else None}
        for scalar in (2**53 + 1, 0, -1, 3, 255, 256, 2**63, 2**64, -(2**70)):
            less = operator.lt if side == "left" else operator.le
            expected = sum(less(int(value), scalar) for value in values)
            found = ndx.searchsorted(x, scalar, **how)
            assert found.shape == ()
            assert found.dtype == np.int64
            assert int(found) == expected
    assert int(ndx.searchsorted(ndx.asarray([1, 2, 3]), 2.5, side=side)) == 2
    assert int(ndx.searchsorted(ndx.asarray([1.0, 2.0, 3.0]), 2, side=side)) in (1, 2)


# ---- ints out of range and a mask: NumPy's own ufuncs crash ---------------------

MASK = np.array([True, False, True, True])


def masked_forms(name, x, bound, mask):
    """Yield what each form of a call with a mask writes, and the operands' order."""
    for namespace in (np, nn):
        ufunc = getattr(namespace, name)
        for swapped in (False, True):
            args = (bound, x) if swapped else (x, bound)
            for out in (ndx.zeros(4, dtype=bool), ndx.ones(4, dtype=bool)):
                before = out.tolist()
                yield swapped, before, ufunc(*args, where=mask, out=out).tolist()
            out = ndx.zeros(4, dtype=bool)
            yield swapped, [False] * 4, ufunc(*args, out, where=mask).tolist()
            masked = "masks without an output are warned of"
            with warns(masked, UserWarning, match="without 'out'"):
                result = ufunc(*args, where=mask)
            assert isinstance(result, ndx.NDArray)
            yield swapped, None, result.tolist()


@pytest.mark.parametrize("dtype", dtypes.INTEGERS)
def test_ints_out_of_range_with_a_mask(dtype, name):
    info = np.iinfo(dtype)
    values = [info.min, 1, 2, info.max]
    x = ndx.asarray(np.array(values, dtype))
    for bound in (info.max + 1, info.min - 1, 2**70, -(2**70), info.max, info.min):
        for mask in (MASK, ndx.asarray(MASK)):
            for swapped, before, found in masked_forms(name, x, bound, mask):
                for i, value in enumerate(values):
                    pair = (bound, value) if swapped else (value, bound)
                    if MASK[i]:
                        assert found[i] is NAMES[name](*pair)
                    elif before is not None:
                        assert found[i] is before[i]


def test_other_operands_out_of_range_with_a_mask(name):
    """One of NumPy's arrays, a scalar, a list, a subclass of int."""

    class Number(int):
        pass

    mask = ndx.asarray(MASK)
    for x in (np.uint8(3), np.arange(4, dtype="i1"), [1] * 4):
        for bound in (300, Number(300), -300, 2**70):
            for args in ((x, bound), (bound, x)):
                exact = [np.asarray(each, object) for each in args]
                expected = getattr(np, name)(*exact).astype(bool)
                found = getattr(nn, name)(
                    *args, where=mask, out=ndx.zeros(4, dtype=bool)
                )
                assert found.tolist() == (expected & MASK).tolist()
