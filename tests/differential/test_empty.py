"""Every function of arrays with axes of length 0: as NumPy, or an error."""

import contextlib
import os

import numpy as np
import pytest
from helpers.examples import examples
from helpers.numpy_versions import since
from helpers.patterns import empty_shapes
from hypothesis import given
from hypothesis import strategies as st

import ndx
from differential.engine import as_ours, compare_call
from differential.test_differential import TABLE
from differential.test_passes import places  # noqa: F401

RANKS = "matrices without elements have a rank"
# Where NumPy raises, there is nothing to compare with.
NAMES = sorted(TABLE.keys() - (set() if since(RANKS) else {"linalg.matrix_rank"}))


@pytest.mark.parametrize("name", NAMES)
@examples(12)
@given(data=st.data())
def test_as_numpy(name, data):
    with empty_shapes():
        args, kwargs = data.draw(TABLE[name].draws)
    scope = contextlib.nullcontext()
    if data.draw(st.booleans()):
        scope = ndx.workspace("empty", size="64KiB")
    with scope:
        compare_call(name, TABLE[name], args, kwargs, as_ours(data), with_strict=False)


@pytest.mark.skipif(os.name != "posix", reason="maps files")
@pytest.mark.parametrize("name", NAMES)
@examples(5)
@given(data=st.data())
def test_in_passes(places, name, data):  # noqa: F811
    with empty_shapes():
        args, kwargs = data.draw(TABLE[name].draws)
    change = places.change(data)
    with places.passing(data):
        compare_call(name, TABLE[name], args, kwargs, change, with_strict=False)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_nothing_has_no_extreme(name, keepdims):
    """Also where the result would have no elements."""
    function = getattr(ndx, name)
    for shape, axis in [
        ((0,), 0), ((0,), None), ((0, 0), 0), ((0, 0), 1), ((0, 0), None), ((3, 0), 1),
        ((0, 3), None), ((0, 2, 0), 2), ((2, 0, 0), 1),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="no |empty"):
            function(ndx.zeros(shape), axis=axis, keepdims=keepdims)
    for shape, axis in [((0, 3), 1), ((3, 0), 0), ((0, 2, 0), 1)]:
        found = function(ndx.zeros(shape), axis=axis, keepdims=keepdims)
        expected = getattr(np, name)(np.zeros(shape), axis=axis, keepdims=keepdims)
        assert found.shape == expected.shape
