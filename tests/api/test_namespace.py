"""What holds for every function: whose memory, no warnings, operands as they were."""

import warnings

import numpy as np
import pytest
from helpers.calls import CALLS, resolve, results

import ndx

# Of an array of ours too, it gives a consumer's view, which pins.
OURS = sorted(set(CALLS) - {"from_dlpack"})


def ours(operands):
    return [ndx.asarray(operand, copy=True) for operand in operands]


@pytest.mark.parametrize("name", OURS)
def test_results_are_in_our_memory(name):
    operands, call = CALLS[name]
    arrays = ours(operands)
    for result in results(call(resolve(ndx, name), *arrays)):
        assert isinstance(result, ndx.NDArray)
        assert result.backend is ndx.current_backend()


@pytest.mark.parametrize("name", OURS)
def test_results_belong_to_the_workspace(name):
    operands, call = CALLS[name]
    with ndx.workspace(size="64KiB") as workspace:
        arrays = ours(operands)
        kept = results(call(resolve(ndx, name), *arrays))
        assert all(result.workspace == workspace.name for result in kept)
        assert all(result.in_scope for result in kept)
        assert all(result.backend is not None for result in kept)
    assert not any(result.in_scope for result in kept)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -1e308, 1e308])
@pytest.mark.parametrize("name", CALLS)
def test_no_warning_gets_out(name, value):
    operands, call = CALLS[name]
    arrays = []
    for operand in operands:
        floating = operand.dtype.kind in "fc"
        arrays.append(
            ndx.asarray(np.full_like(operand, value) if floating else operand)
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            call(resolve(ndx, name), *arrays)
        except (np.linalg.LinAlgError, ValueError):
            # Singular, or not finite: an error, not a warning.
            assert name.startswith("linalg.") or name == "repeat"


@pytest.mark.parametrize("name", CALLS)
def test_operands_stay_as_they_are(name):
    operands, call = CALLS[name]
    before = [operand.copy() for operand in operands]
    call(resolve(ndx, name), *[ndx.asarray(operand) for operand in operands])
    for operand, copy in zip(operands, before, strict=True):
        np.testing.assert_array_equal(operand, copy)


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"asarray", "from_dlpack"}))
def test_no_array_is_a_type_error(name):
    operands, call = CALLS[name]
    with pytest.raises(TypeError):
        call(resolve(ndx, name), *["no array"] * len(operands))
