"""The whole namespace on a GPU: each function, drawn calls, as on the CPU."""

import numpy as np
import pytest
from differential.engine import alike, mapped, outcome, plain
from differential.test_differential import TABLE
from helpers.calls import resolve
from helpers.examples import examples
from helpers.numpy_versions import since
from hypothesis import given
from hypothesis import strategies as st

import ndx

# What the CPU of ndx takes and CuPy does not, or the other way; docs/gpu.md lists them.
TOLERANCE = {
    "float16": 4e-3, "float32": 1e-4, "float64": 1e-9,
    "complex64": 1e-4, "complex128": 1e-9,
}  # fmt: skip
# Of infinite complex numbers, whose sign the standard leaves open.
FINITE = {"sign"}
# What values would have to be looked at for, which are on the GPU.
UNSEEN = {
    "pow": "negative integer powers",
    "take": "out of bounds",
    "take_along_axis": "out of bounds",
}


def on_gpu(value):
    if isinstance(value, np.dtype):
        return value
    return ndx.asarray(plain(value), device="cuda:0", copy=True)


def on_cpu(value):
    return value if isinstance(value, np.dtype) else ndx.asarray(plain(value))


def assert_alike(found, expected, values, mask=True):
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        for item, other in zip(found, expected, strict=True):
            assert_alike(item, other, values, mask)
        return
    if not isinstance(expected, ndx.NDArray):
        assert found == expected
        return
    assert isinstance(found, ndx.NDArray)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if values:
        tolerance = TOLERANCE.get(found.dtype.name, 0)
        np.testing.assert_allclose(
            np.asarray(found.to_device("cpu"))[mask],
            np.asarray(expected)[mask],
            rtol=tolerance,
            atol=tolerance,
        )


def arrays_in(value):
    if isinstance(value, ndx.NDArray):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from arrays_in(item)


@pytest.mark.parametrize("name", sorted(TABLE))
@examples(10)
@given(data=st.data())
def test_as_on_the_cpu(gpu, name, data):
    row = TABLE[name]
    args, kwargs = data.draw(row.draws)
    function = resolve(ndx, name)
    # Some of NumPy's keep what they made in their first call.
    outcome(row.numpy or resolve(np, name), mapped(args, plain), mapped(kwargs, plain))
    expected, refusal = outcome(function, mapped(args, on_cpu), mapped(kwargs, on_cpu))
    given = mapped(args, on_gpu)
    with ndx.use("cuda:0"):
        found, error = outcome(function, given, mapped(kwargs, on_gpu))
    if refusal is not None:
        if error is None and name in UNSEEN and UNSEEN[name] in str(refusal):
            return
        assert error is not None, f"the CPU raises {refusal!r}; found {found!r}"
        assert alike(error, refusal), f"{error!r}, but the CPU raises {refusal!r}"
        return
    if error is not None:
        raise AssertionError(f"an error where the CPU returns {expected!r}") from error
    for array in arrays_in(found):
        assert array.device == "cuda:0"
    if type(found) is int and not since("count_nonzero returns NumPy's integers"):
        pytest.skip("NumPy, which stands in for CuPy, returns Python's int")
    mask = True
    if row.standard is not None:
        mask = row.standard(*mapped(args, plain), **mapped(kwargs, plain))
    if name in FINITE:
        mask = np.isfinite(plain(args[0]))
    assert_alike(found, expected, row.values, mask)
    if gpu is not None:
        assert gpu.default_mallocs == 0, "CuPy took memory of its own"


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_nothing(gpu, name):
    """An axis of length 0 has no extreme, even if no element is asked for."""
    x = ndx.zeros((0, 3, 0), device="cuda:0", dtype=ndx.float32)
    found = getattr(ndx, name)(x, axis=1)
    assert (found.shape, found.dtype, str(found.device)) == (
        (0, 0),
        ndx.float32,
        "cuda:0",
    )
    for axis in (0, None):
        with pytest.raises(ValueError, match=name):
            getattr(ndx, name)(x, axis=axis, keepdims=True)


@pytest.mark.parametrize("shape", [0, 3, (0, 2)])
def test_repeats_are_not_negative(gpu, shape):
    x = ndx.ones(shape, device="cuda:0")
    for repeats in (-1, ndx.asarray([-1] * x.shape[0] or [-1], device="cuda:0")):
        with pytest.raises(ValueError, match="negative"):
            ndx.repeat(x, repeats, axis=0)
