"""What holds for every function: whose memory, no warnings, what the standard says."""

import warnings

import array_api_strict as strict
import numpy as np
import pytest
from helpers.calls import CALLS, UNDEFINED, resolve, results

import ndx

strict.set_array_api_strict_flags(api_version="2025.12")
# Of an array of ours too, it gives a consumer's view, which pins.
OURS = sorted(set(CALLS) - {"from_dlpack"})
LAYOUTS = ("as it is", "transposed", "every other", "read-only")


def laid_out(operand, layout):
    """Return an NDArray of the values of a NumPy array, in some memory layout."""
    if layout == "transposed":
        return ndx.asarray(operand.T.copy(), copy=True).T if operand.ndim == 2 else (
            ndx.asarray(operand, copy=True)
        )  # fmt: skip
    if layout == "every other":
        spread = np.zeros([2 * length for length in operand.shape], operand.dtype)
        key = (slice(None, None, 2),) * operand.ndim
        spread[key] = operand
        return ndx.asarray(spread, copy=True)[key]
    if layout == "read-only":
        frozen = operand.copy()
        frozen.flags.writeable = False
        return ndx.asarray(frozen)
    return ndx.asarray(operand, copy=True)


@pytest.mark.parametrize("name", OURS)
def test_results_are_in_our_memory(name):
    operands, call = CALLS[name]
    arrays = [laid_out(operand, "as it is") for operand in operands]
    for result in results(call(resolve(ndx, name), *arrays)):
        assert isinstance(result, ndx.NDArray)
        assert result.backend is ndx.current_backend()


@pytest.mark.parametrize("name", OURS)
def test_results_belong_to_the_workspace(name):
    operands, call = CALLS[name]
    with ndx.workspace(size="64KiB") as workspace:
        arrays = [laid_out(operand, "as it is") for operand in operands]
        kept = results(call(resolve(ndx, name), *arrays))
        assert all(result.workspace == workspace.name for result in kept)
        assert all(result.in_scope for result in kept)
        assert all(result.backend is not None for result in kept)
    assert not any(result.in_scope for result in kept)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_no_layout_matters(name, layout):
    operands, call = CALLS[name]
    function = resolve(ndx, name)
    expected = results(call(function, *[ndx.asarray(operand) for operand in operands]))
    found = results(
        call(function, *[laid_out(operand, layout) for operand in operands])
    )
    if name in UNDEFINED:
        return
    for result, other in zip(found, expected, strict=True):
        assert result.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(result), np.asarray(other), rtol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_as_array_api_strict(name):
    if name in UNDEFINED:
        pytest.skip("its result is undefined or its order free")
    operands, call = CALLS[name]
    if name == "astype":
        call = lambda f, x: f(x, x.__array_namespace__().float32)  # noqa: E731
    expected = results(
        call(resolve(strict, name), *[strict.asarray(x) for x in operands])
    )
    found = results(call(resolve(ndx, name), *[ndx.asarray(x) for x in operands]))
    for result, other in zip(found, expected, strict=True):
        assert str(result.dtype) == str(other.dtype).rpartition(".")[2]
        assert result.shape == other.shape
        np.testing.assert_allclose(
            np.asarray(result), np.asarray(other), rtol=1e-12, atol=1e-12
        )


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
