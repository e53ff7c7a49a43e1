"""Every function, of arrays of no axes up to as many as there can be."""

import numpy as np
import pytest
from helpers.calls import CALLS, UNDEFINED, resolve, results

import ndx

COUNTS = [0, 1, 2, 3, 31, 32, 33, 34, 61, 62, 63, 64]


def with_axes(x, ndim):
    """Return an array of `ndim` axes, with the elements of `x` if it has no more."""
    if ndim < x.ndim:
        return x.reshape(-1)[:1].reshape((1,) * ndim)
    return x.reshape((1,) * (ndim - x.ndim) + x.shape)


@pytest.mark.parametrize("ndim", COUNTS)
@pytest.mark.parametrize("name", CALLS)
def test_every_function(name, ndim):
    operands, call = CALLS[name]
    operands = [with_axes(operand, ndim) for operand in operands]
    given = [ndx.asarray(operand) for operand in operands]
    try:
        found = results(call(resolve(ndx, name), *given))
    except (ValueError, IndexError) as error:
        said = str(error)
        # Python's own, or NumPy's, of what they were about to do.
        assert said
        assert "list index" not in said
        assert "empty sequence" not in said
        return
    if name in UNDEFINED:
        return
    try:
        with np.errstate(all="ignore"):
            expected = results(call(resolve(np, name), *operands))
    except (AttributeError, ValueError, TypeError, IndexError, RuntimeError):
        # It has no such function, or takes not so many axes.
        return
    if len(found) == len(expected):
        for x, y in zip(found, expected, strict=True):
            assert x.shape == np.shape(y)
            np.testing.assert_allclose(np.asarray(x), y, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("count", [65, 66, 70, 100, 1000])
def test_more_than_there_can_be(count):
    y = ndx.broadcast_to(ndx.ones(1), (1,) * 64)
    more = count - 64
    for function in (
        lambda: ndx.zeros((1,) * count),
        lambda: ndx.reshape(y, (1,) * count),
        lambda: ndx.broadcast_to(y, (1,) * count),
        lambda: ndx.expand_dims(y, tuple(range(more))),
        lambda: ndx.meshgrid(*[ndx.ones(1)] * count),
        lambda: y[(None,) * more],
        lambda: ndx.random.default_rng(0).random((1,) * count),
    ):
        with pytest.raises(ValueError, match=rf"\b{count} axes; .* at most 64"):
            function()


def test_repeating_arrays_of_as_many_axes_as_there_can_be():
    a = np.arange(6.0).reshape((1,) * 61 + (2, 1, 3))
    x = ndx.asarray(a)
    for axis in (None, 0, 61, 62, -1):
        expected = np.repeat(a, 3, axis=axis)
        assert np.array_equal(np.asarray(ndx.repeat(x, 3, axis=axis)), expected)
    for counts in ((2,), (2, 1), (3, 2, 1, 2), (2,) * 2 + (1,) * 62, (0, 1)):
        assert np.array_equal(np.asarray(ndx.tile(x, counts)), np.tile(a, counts))
