"""Fourier transforms: the extension `fft` of the standard."""

from collections.abc import Sequence

from ndx._core import NDArray
from ndx._typing import Array, Axes, DeviceLike, DTypeLike, Norm

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

def fft(
    x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> NDArray: ...
def fftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
) -> NDArray: ...
def fftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> NDArray: ...
def fftshift(x: Array, /, *, axes: Axes | None = None) -> NDArray: ...
def hfft(
    x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> NDArray: ...
def ifft(
    x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> NDArray: ...
def ifftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> NDArray: ...
def ifftshift(x: Array, /, *, axes: Axes | None = None) -> NDArray: ...
def ihfft(
    x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> NDArray: ...
def irfft(
    x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> NDArray: ...
def irfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> NDArray: ...
def rfft(
    x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> NDArray: ...
def rfftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
) -> NDArray: ...
def rfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> NDArray: ...
