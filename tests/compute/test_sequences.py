"""Arrays of Python numbers in nested lists and tuples (`_compute.sequences`)."""

import contextvars

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same
from helpers.examples import examples
from helpers.midway import CanaryBackend
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy

NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.integers(-(2**31) - 1, 2**31),
    st.floats(width=32),
    st.floats(),
    st.complex_numbers(),
)
PLAIN = st.one_of(
    *[
        st.lists(st.one_of(*kinds), max_size=4)
        for kinds in (
            [st.booleans()],
            [st.booleans(), st.integers(-(2**63), 2**63 - 1)],
            [st.floats(), st.integers(-9, 9)],
            [NUMBERS],
        )
    ]
)
NESTED = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.tuples(inner)
)
TYPES = (None, "bool", "int32", "int64", "uint8", *dtypes.FLOATS, "complex128")


def numpys(values, dtype):
    """Return NumPy's array of values; None where it has none of the standard's."""
    try:
        with np.errstate(all="ignore"):
            found = np.array(values, dtype=dtype)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.dtype.kind in "biufc" else None


@examples(200)
@given(values=NESTED, dtype=st.sampled_from(TYPES))
def test_values_are_numpys(values, dtype):
    wanted = numpys(values, dtype)
    if wanted is None:
        with pytest.raises((ValueError, TypeError, OverflowError)):
            ndx.asarray(values, dtype=dtype)
        return
    assert_same(ndx.numpy.array(values, dtype), wanted)
    assert_same(ndx.asarray(values, dtype=dtype), wanted)


@pytest.mark.parametrize("dtype", ["bool", "float32", "float64", "complex128"])
@pytest.mark.parametrize("values", [[1, 2**64], [False, -(2**63) - 1], [[2**90], [0]]])
def test_integers_of_any_size(values, dtype):
    assert_same(ndx.asarray(values, dtype=dtype), np.array(values, dtype))


@pytest.mark.parametrize(
    ("values", "dtype", "error"),
    [
        ([1, 2**64], None, OverflowError),
        ([1, 2**64], "uint64", OverflowError),
        ([1, 10**400], "float64", OverflowError),
        ([2**64, 1j], "float64", TypeError),
        ([2**64, None], "float64", TypeError),
        ([2**64, "1"], "float64", TypeError),
    ],
)
def test_integers_that_do_not_fit(values, dtype, error):
    with pytest.raises(error):
        ndx.asarray(values, dtype=dtype)


@pytest.mark.parametrize("dtype", [None, "float32", "int32", "bool"])
def test_a_list_that_changes_during_the_allocation(dtype):
    values = [[True, False] * 50, [True, False] * 50]
    backend = CanaryBackend()
    backend.on_acquire = values[1].clear
    with ndx.use(backend), pytest.raises(ValueError, match="can't be made an array"):
        ndx.asarray(values, dtype=dtype)


def test_reports_wanted_elsewhere_change_nothing_here():
    """`seterr` in another context: the numbers are read here as before."""
    contextvars.Context().run(ndx.numpy.seterr, all="warn")
    test_a_list_that_changes_during_the_allocation("float32")


def test_of_scalars_without_arrays():
    assert isinstance(ndx.numpy.sqrt(4.0), np.float64)
    assert np.isnan(ndx.numpy.sqrt(-1.0))
    with ndx.numpy.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        ndx.numpy.sqrt(-1.0)
    with ndx.numpy.errstate(over="raise"), pytest.raises(FloatingPointError):
        ndx.numpy.array([1e300], "float32")
