"""Fourier transforms."""

import numpy as np
from hypothesis import strategies as st

from differential.draws import arrays, axes, chosen, names, scarcely, with_axis
from differential.engine import Row, rows

NORM = st.sampled_from(["backward", "ortho", "forward"])
ROUNDED = {"ulps": 64, "overall": True}


@st.composite
def along_one(draw, kinds):
    x = draw(arrays(kinds, which="small", min_dims=1))
    kwargs = draw(chosen(norm=NORM, n=st.integers(1 - draw(scarcely), 6)))
    if draw(st.booleans()):
        kwargs["axis"] = draw(axes(x.ndim, one=True, none=False))
    return (x,), kwargs


@st.composite
def along_more(draw, kinds):
    x = draw(arrays(kinds, which="small", min_dims=1))
    kwargs = draw(chosen(norm=NORM))
    ndim = x.ndim
    item = st.integers(-ndim, ndim - 1)
    found = draw(st.lists(item, unique_by=lambda a: a % ndim, min_size=1))
    if draw(st.booleans()):
        kwargs["axes"] = tuple(found)
        if draw(st.booleans()):
            kwargs["s"] = tuple(draw(st.integers(1, 5)) for _ in found)
    return (x,), kwargs


@st.composite
def frequencies(draw):
    dtype = names("f").map(np.dtype)
    kwargs = draw(chosen(d=st.sampled_from([1.0, 0.5, 2.0, 0.3]), dtype=dtype))
    return (draw(st.integers(1, 9)),), kwargs


def cast_after(function):
    """Return a reference for a function that has no dtype in NumPy."""

    def reference(n, *, d=1.0, dtype=None):
        return function(n, d=d).astype(dtype or "float64")

    return reference


OUT_OF_BOUNDS = "of no elements NumPy reads one, beyond the array's end"


def has_elements(x, **kwargs):
    return x.size > 0


def padded(function):
    """Return a reference with a zero where there is no element to be padded."""

    def reference(x, *, axis=None, axes=None, **kwargs):
        if axes is not None:
            kwargs["axes"] = axes
        if axis is not None:
            kwargs["axis"] = axis
        if kwargs.keys() & {"n", "s"}:
            for which in axes if axes is not None else (-1 if axis is None else axis,):
                if -x.ndim <= which < x.ndim and not x.shape[which]:
                    shape = list(x.shape)
                    shape[which] = 1
                    x = np.zeros_like(x, shape=shape)
        return function(x, **kwargs)

    return reference


TABLE = (
    rows("fft.fft fft.ifft", along_one("fc"), **ROUNDED)
    | rows("fft.rfft fft.ihfft", along_one("f"), **ROUNDED)
    | {
        f"fft.{name}": Row(
            along_one("c"),
            padded(getattr(np.fft, name)),
            **ROUNDED,
            strict=has_elements,
            note=OUT_OF_BOUNDS,
        )
        for name in ("irfft", "hfft")
    }
    | rows("fft.fftn fft.ifftn", along_more("fc"), **ROUNDED)
    | rows("fft.rfftn", along_more("f"), **ROUNDED)
    | {
        "fft.irfftn": Row(
            along_more("c"),
            padded(np.fft.irfftn),
            **ROUNDED,
            strict=has_elements,
            note=OUT_OF_BOUNDS,
        )
    }
    | rows(
        "fft.fftshift fft.ifftshift",
        with_axis(name="axes", min_dims=1),
        note="NumPy fails for arrays without axes, which stay as they are",
    )
    | {
        "fft.fftfreq": Row(frequencies(), cast_after(np.fft.fftfreq), ulps=2),
        "fft.rfftfreq": Row(frequencies(), cast_after(np.fft.rfftfreq), ulps=2),
    }
)
