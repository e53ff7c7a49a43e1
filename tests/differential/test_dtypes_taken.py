"""Which dtypes each function takes: at least those of array-api-strict."""

import numpy as np
import pytest
from helpers import dtypes
from helpers.calls import CALLS, UNDEFINED, resolve, results

import ndx
from differential.engine import outcome, strict

CLEAR = (TypeError, np.linalg.LinAlgError)
# A float is no value for integers, of which NumPy makes one.
REFUSED = {"full_like"}


def cast(operand, name):
    """Return an operand in another dtype, of values that every dtype has."""
    if operand.dtype.kind in "ib" and np.dtype(name).kind != "u":
        return operand.astype(name)
    with np.errstate(all="ignore"):
        return np.abs(operand).astype(name)


@pytest.mark.parametrize("name", sorted(set(CALLS) - UNDEFINED - REFUSED - {"astype"}))
def test_as_array_api_strict_or_more(name):
    operands, call = CALLS[name]
    for dtype in dtypes.STANDARD:
        arrays = [cast(operand, dtype) for operand in operands]
        expected, refusal = outcome(
            call, (resolve(strict, name), *map(strict.asarray, arrays)), {}
        )
        given = (resolve(ndx, name), *map(ndx.asarray, arrays))
        found, error = outcome(call, given, {})
        if refusal is not None:
            # What the standard does not ask for is computed, or is a clear error.
            assert error is None or isinstance(error, CLEAR), (dtype, error, refusal)
            continue
        assert error is None, (dtype, error)
        for item, other in zip(results(found), results(expected), strict=True):
            assert str(item.dtype) == str(other.dtype).rpartition(".")[2], dtype
            assert item.shape == other.shape
            np.testing.assert_allclose(
                np.asarray(item), np.asarray(other), rtol=1e-4, atol=1e-4
            )
