"""Fourier transforms: what NumPy does not do right, and errors.

Their values are compared with NumPy's in tests/differential.
"""

import numpy as np
import pytest
from helpers.compare import assert_same

import ndx

COMPLEX = ("complex64", "complex128")


@pytest.mark.parametrize("dtype", COMPLEX)
def test_padding_no_elements_along_axes(dtype):
    x = ndx.zeros((2, 0), dtype=dtype)
    real = "float32" if dtype == "complex64" else "float64"
    assert_same(ndx.fft.irfftn(x, s=(3, 4), axes=(0, 1)), np.zeros((3, 4), real))
    assert_same(ndx.fft.irfftn(x, s=(4, 3), axes=(1, 0)), np.zeros((3, 4), real))


def test_arrays_without_axes_are_not_shifted():
    for function in (ndx.fft.fftshift, ndx.fft.ifftshift):
        assert_same(function(ndx.asarray(3.0)), np.array(3.0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32"])
def test_real_arrays_of_all_dtypes(dtype):
    x = ndx.asarray([1, 0, 1], dtype=dtype)
    precision = "complex64" if dtype == "float32" else "complex128"
    real = "float32" if dtype == "float32" else "float64"
    assert ndx.fft.fft(x).dtype == ndx.fft.rfft(x).dtype == precision
    assert ndx.fft.hfft(x).dtype == ndx.fft.irfft(x).dtype == real
    expected = np.fft.hfft(np.asarray(x, dtype=real))
    assert_same(ndx.fft.hfft(x), expected, rtol=1e-6)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_results_lie_in_the_workspace(name, norm):
    x = np.arange(1.0, 7.0).reshape(2, 3).astype(
        "float64" if name in ("rfft", "ihfft") else "complex128"
    )  # fmt: skip
    with ndx.workspace(size="64KiB") as workspace:
        before = workspace.stats()["spilled_count"]
        found = getattr(ndx.fft, name)(ndx.asarray(x), axis=0, norm=norm)
        assert workspace.stats()["spilled_count"] == before
        assert found.attached
        expected = getattr(np.fft, name)(x, axis=0, norm=norm)
        assert_same(found, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: ndx.fft.fft(ndx.ones(3), n=0), ValueError, "n=0 points"),
        (lambda: ndx.fft.fft(ndx.ones(0)), ValueError, "n=0 points"),
        (lambda: ndx.fft.irfft(ndx.ones(1)), ValueError, "n=0 points"),
        (lambda: ndx.fft.fft(ndx.ones(3), n=1.5), TypeError, "n must be an int"),
        (lambda: ndx.fft.fft(ndx.ones(3), axis=1), ValueError, "out of range"),
        (lambda: ndx.fft.fft(ndx.ones(3), norm="x"), ValueError, "unknown"),
        (lambda: ndx.fft.fft(ndx.ones(())), ValueError, "no axes"),
        (lambda: ndx.fft.rfft(ndx.asarray([1j])), TypeError, "takes real arrays"),
        (lambda: ndx.fft.ihfft(ndx.asarray([1j])), TypeError, "takes real arrays"),
        (lambda: ndx.fft.rfftn(ndx.asarray([1j])), TypeError, "takes real arrays"),
        (lambda: ndx.fft.fftn(ndx.ones(3), s=(2,)), ValueError, "needs axes"),
        (lambda: ndx.fft.fftn(ndx.ones(3), axes=(2,)), ValueError, "out of range"),
        (lambda: ndx.fft.fftfreq(0), ValueError, "1 or more"),
        (lambda: ndx.fft.rfftfreq(-1), ValueError, "1 or more"),
        (lambda: ndx.fft.fftshift(ndx.ones(3), axes=2), ValueError, "out of range"),
    ],
)
def test_errors(use, error, message):
    with pytest.raises(error, match=message):
        use()
