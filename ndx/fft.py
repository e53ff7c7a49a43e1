"""Fourier transforms: the extension `fft` of the standard.

Like the elementwise functions, the transforms are made from a table. They share their
code, and their docstrings are made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndx._api.creation import arange, empty, placed, zeros
from ndx._api.data_types import astype, complex64, finfo, float64, result_type
from ndx._api.elementwise import conj, divide
from ndx._api.manipulation import concat, roll
from ndx._api.public import name_functions
from ndx._compute.gufuncs import frequencies, transform, transform_axes
from ndx._compute.numpy_calls import (
    argument,
    as_int,
    axes_of,
    axis_index,
    call,
    into,
)
from ndx._lib.device import CPU

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ndx._typing import Array, Axes, DeviceLike, DTypeLike, NDArray, Norm

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

_ONE_AXIS = """Return {what} along an axis.

    Parameters
    ----------
    x : NDArray
        {takes}, with one axis or more.
    n : int, optional
        {n_is}
    axis : int
        In ``[-x.ndim, x.ndim)``.
    norm : {{'backward', 'ortho', 'forward'}}
        {norm}

    Returns
    -------
    NDArray
        {gives}, of the precision of `x`, with length {length} along `axis`.

    Raises
    ------
    ValueError
        If `axis` is out of range, `n` is not positive, or `norm` is unknown.

    Notes
    -----
    Array API 2025.12, `fft.{name}`.

    Examples
    --------
    >>> import ndx
    >>> {call}
    {answer}
    """
_MORE_AXES = """Return {what} along axes.

    Parameters
    ----------
    x : NDArray
        {takes}.
    s : sequence of int, optional
        {n_is} -1: the length of `x`. It needs `axes`.
    axes : sequence of int, optional
        Each in ``[-x.ndim, x.ndim)``. Default: all.
    norm : {{'backward', 'ortho', 'forward'}}
        {norm}

    Returns
    -------
    NDArray
        {gives}, of the precision of `x`, with the lengths {length} along `axes`.

    Raises
    ------
    ValueError
        If an axis is out of range, a length is not positive, `s` is given without
        `axes`, or `norm` is unknown.

    Notes
    -----
    Array API 2025.12, `fft.{name}`.

    Examples
    --------
    >>> import ndx
    >>> {call}
    {answer}
    """
_FORWARD = (
    "Where to divide by the number of points: in the inverse transform, by its square "
    "root\n        in each, or in this one."
)
_INVERSE = (
    "Where to divide by the number of points: in this transform, by its square root\n"
    "        in each, or in the other one."
)
_CUT = "Length to which `x` is cut or padded with zeros. Default: its own."
_CUTS = "Lengths to which `x` is cut or padded with zeros. Default: its own."
_LENGTH = "Length of the result. Default: ``2 * (m - 1)``, where m is that of `x`."
_LENGTHS = "Lengths of the result. Default: those of `x`, the last ``2 * (m - 1)``."
_TWO = "ndx.asarray([3.0, 1.0])"
_TWO_COMPLEX = "ndx.asarray([3.0 + 0j, 1.0])"


# The other functions run on devices through the functions that they call.
TRANSFORMS = [name for name in __all__ if not name.endswith(("freq", "shift"))]
_MANY = 2**20  # points: arrays in files may have as many
_FROM_REAL = ("rfft", "rfftn", "ihfft")
_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
_TO_REAL = ("irfft", "irfftn", "hfft")


def _result_dtype(name, dtype):
    """Return the dtype of a transform, which has the precision of its argument."""
    real = finfo(dtype).dtype if dtype.kind in "fc" else float64
    return real if name in _TO_REAL else result_type(real, complex64)


def _complex_error(name):
    return TypeError(f"{name} takes real arrays, not complex ones; take ndx.real(x)")


def _not_empty(x, axes):
    """Return zeros for an array without elements along axes to be padded.

    NumPy's transforms to real numbers always read the first element.
    """
    if all(x.shape[axis] for axis in axes):
        return x
    chosen = {axis for axis in axes if not x.shape[axis]}
    shape = tuple(1 if i in chosen else n for i, n in enumerate(x.shape))
    return zeros(shape, dtype=x.dtype, device=CPU)


def _lengths(name, s, x, axes):
    """Return a length for each axis; -1 stands for that of the array."""
    lengths = axes_of(s, "s")
    if len(lengths) != len(axes):
        msg = f"{name}: s={s} has {len(lengths)} lengths, for {len(axes)} axes"
        raise ValueError(msg)
    found = tuple(
        x.shape[axis] if length == -1 else length
        for axis, length in zip(axes, lengths, strict=True)
    )
    if any(length < 1 for length in found):
        msg = f"{name}: s={s} of shape {x.shape}; each length is 1 or more, or -1"
        raise ValueError(msg)
    return found


def _check_norm(norm, name):
    if norm not in ("backward", "ortho", "forward"):
        msg = f"{name}: norm={norm!r} is unknown; valid: 'backward', 'ortho', 'forward'"
        raise ValueError(msg)


def _one_axis(name, what, call_with, answer, *, takes, gives, n_is, length, norm):
    def function(
        x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> NDArray:
        x = argument(x, name)
        found = transform(name, x, n, axis, norm)
        if found is not None:
            return found
        _check_norm(norm, name)
        axis = axis_index(axis, x.ndim)
        length = x.shape[axis]
        if n is not None:
            n = as_int(n, "n")
        elif name in _TO_REAL:
            n = 2 * (length - 1)
        else:
            n = length
        if n < 1:
            msg = (
                f"{name}: n={n} points along axis {axis} of shape {x.shape}; 1 or more"
            )
            raise ValueError(msg)
        if name in _FROM_REAL and x.dtype.kind == "c":
            raise _complex_error(name)
        if x.device != CPU:
            return call(f"fft.{name}", x, n=n, axis=axis, norm=norm)
        shape = list(x.shape)
        shape[axis] = n // 2 + 1 if name in _FROM_REAL else n
        dtype = _result_dtype(name, x.dtype)
        out = empty(tuple(shape), dtype=dtype, device=CPU)
        x = _not_empty(x, (axis,))
        if name == "hfft":
            # NumPy's `hfft` ignores `out`.
            x = conj(x) if x.dtype.kind == "c" else x
            norm = _OPPOSITE[norm]
            return into(out, "fft.irfft", x, n=n, axis=axis, norm=norm)
        return into(out, f"fft.{name}", x, n=n, axis=axis, norm=norm)

    example = f"ndx.fft.{name}({call_with})"
    return _named(function, _ONE_AXIS, name, what, example, answer, locals())


def _more_axes(name, what, call_with, answer, *, takes, gives, n_is, length, norm):
    def function(
        x: Array,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> NDArray:
        x = argument(x, name)
        _check_norm(norm, name)
        if s is not None and axes is None:
            msg = f"{name}: s={s} needs axes, one for each length"
            raise ValueError(msg)
        if axes is not None:
            axes = _axes(axes, x.ndim)
        if name in _TO_REAL + _FROM_REAL and not (x.ndim if axes is None else axes):
            msg = f"{name} needs an axis; the array has shape {x.shape}"
            raise ValueError(msg)
        if name in _FROM_REAL and x.dtype.kind == "c":
            raise _complex_error(name)
        if s is not None:
            s = _lengths(name, s, x, axes)
            if name in _TO_REAL and x.device == CPU:
                x = _not_empty(x, axes)
        found = transform_axes(name, x, s, axes, norm)
        if found is not None:
            return found
        return call(f"fft.{name}", x, s=s, axes=axes, norm=norm)

    example = f"ndx.fft.{name}({call_with})"
    return _named(function, _MORE_AXES, name, what, example, answer, locals())


def _named(function, template, name, what, example, answer, words):
    function.__name__ = function.__qualname__ = name
    function.__module__ = "ndx.fft"
    keys = ("takes", "gives", "n_is", "length", "norm")
    function.__doc__ = template.format(
        name=name,
        what=what,
        call=example,
        answer=answer,
        **{key: words[key] for key in keys},
    )
    return function


fft = _one_axis(
    "fft",
    "the discrete Fourier transform",
    _TWO_COMPLEX,
    "NDArray([4.+0.j, 2.+0.j])",
    takes="Complex. A real array is converted to complex",
    gives="Complex",
    n_is=_CUT,
    length="`n`",
    norm=_FORWARD,
)
ifft = _one_axis(
    "ifft",
    "the inverse discrete Fourier transform",
    _TWO_COMPLEX,
    "NDArray([2.+0.j, 1.+0.j])",
    takes="Complex. A real array is converted to complex",
    gives="Complex",
    n_is=_CUT,
    length="`n`",
    norm=_INVERSE,
)
fftn = _more_axes(
    "fftn",
    "the discrete Fourier transform",
    _TWO_COMPLEX,
    "NDArray([4.+0.j, 2.+0.j])",
    takes="Complex. A real array is converted to complex",
    gives="Complex",
    n_is=_CUTS,
    length="`s`",
    norm=_FORWARD,
)
ifftn = _more_axes(
    "ifftn",
    "the inverse discrete Fourier transform",
    _TWO_COMPLEX,
    "NDArray([2.+0.j, 1.+0.j])",
    takes="Complex. A real array is converted to complex",
    gives="Complex",
    n_is=_CUTS,
    length="`s`",
    norm=_INVERSE,
)
rfft = _one_axis(
    "rfft",
    "the discrete Fourier transform of real numbers",
    _TWO,
    "NDArray([4.+0.j, 2.+0.j])",
    takes="Real floating-point",
    gives="Complex, only the frequencies that are not negative",
    n_is=_CUT,
    length="``n // 2 + 1``",
    norm=_FORWARD,
)
irfft = _one_axis(
    "irfft",
    "the inverse of `rfft`",
    _TWO_COMPLEX,
    "NDArray([2., 1.])",
    takes="Complex, only the frequencies that are not negative",
    gives="Real",
    n_is=_LENGTH,
    length="`n`",
    norm=_INVERSE,
)
rfftn = _more_axes(
    "rfftn",
    "the discrete Fourier transform of real numbers",
    _TWO,
    "NDArray([4.+0.j, 2.+0.j])",
    takes="Real floating-point",
    gives="Complex, only frequencies that are not negative along the last axis",
    n_is=_CUTS,
    length="`s`, the last ``s[-1] // 2 + 1``,",
    norm=_FORWARD,
)
irfftn = _more_axes(
    "irfftn",
    "the inverse of `rfftn`",
    _TWO_COMPLEX,
    "NDArray([2., 1.])",
    takes="Complex, only frequencies that are not negative along the last axis",
    gives="Real",
    n_is=_LENGTHS,
    length="`s`",
    norm=_INVERSE,
)
hfft = _one_axis(
    "hfft",
    "the discrete Fourier transform of a signal with Hermitian symmetry",
    _TWO_COMPLEX,
    "NDArray([4., 2.])",
    takes="Complex, one half of the signal",
    gives="Real",
    n_is=_LENGTH,
    length="`n`",
    norm=_FORWARD,
)
ihfft = _one_axis(
    "ihfft",
    "the inverse of `hfft`",
    _TWO,
    "NDArray([2.-0.j, 1.-0.j])",
    takes="Real floating-point",
    gives="Complex, one half of the signal",
    n_is=_CUT,
    length="``n // 2 + 1``",
    norm=_INVERSE,
)


def _frequencies(positive, negative, n, d, dtype, device, name):
    """Return step numbers, the positive ones first, divided by the span, ``n * d``."""
    if n <= 0:
        msg = f"{name}: n={n} is the length of the window; it is 1 or more"
        raise ValueError(msg)
    span = float(n * d)
    result = None if n >= _MANY else frequencies(positive, negative, span)
    if result is None:
        steps = arange(positive, dtype=float64, device=CPU)
        if negative:
            below = arange(-negative, 0, dtype=float64, device=CPU)
            steps = concat([steps, below])
        result = divide(steps, span, out=steps)
    result = result if dtype is None else astype(result, dtype)
    return placed(result, device)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike = None, device: DeviceLike = None
) -> NDArray:
    """Return the frequencies of the elements of an `fft`.

    Parameters
    ----------
    n : int
        Length of the window; 1 or more.
    d : float
        Distance of the samples.
    dtype : dtype, optional
        Real floating-point. Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray, shape (n,)
        In cycles per unit of `d`: 0, the positive ones, the negative ones.

    Raises
    ------
    ValueError
        If `n` is not positive.

    Notes
    -----
    Array API 2025.12, `fft.fftfreq`.

    Examples
    --------
    >>> import ndx
    >>> ndx.fft.fftfreq(4)
    NDArray([ 0.  ,  0.25, -0.5 , -0.25])
    """
    n = as_int(n, "n")
    return _frequencies((n + 1) // 2, n // 2, n, d, dtype, device, "fftfreq")


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike = None, device: DeviceLike = None
) -> NDArray:
    """Return the frequencies of the elements of an `rfft`.

    Parameters
    ----------
    n : int
        Length of the window; 1 or more.
    d : float
        Distance of the samples.
    dtype : dtype, optional
        Real floating-point. Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray, shape (n // 2 + 1,)
        In cycles per unit of `d`, ascending from 0.

    Raises
    ------
    ValueError
        If `n` is not positive.

    Notes
    -----
    Array API 2025.12, `fft.rfftfreq`.

    Examples
    --------
    >>> import ndx
    >>> ndx.fft.rfftfreq(4)
    NDArray([0.  , 0.25, 0.5 ])
    """
    n = as_int(n, "n")
    return _frequencies(n // 2 + 1, 0, n, d, dtype, device, "rfftfreq")


def fftshift(x: Array, /, *, axes: Axes | None = None) -> NDArray:
    """Return an array with the frequency 0 moved to the middle.

    Parameters
    ----------
    x : NDArray
    axes : int or sequence of int, optional
        Each in ``[-x.ndim, x.ndim)``. Default: all.

    Returns
    -------
    NDArray
        A new array of the shape and the dtype of `x`.

    Raises
    ------
    ValueError
        If an axis is out of range.

    Notes
    -----
    Array API 2025.12, `fft.fftshift`.

    Examples
    --------
    >>> import ndx
    >>> ndx.fft.fftshift(ndx.fft.fftfreq(4))
    NDArray([-0.5 , -0.25,  0.  ,  0.25])
    """
    x = argument(x, "fftshift")
    axes = _axes(axes, x.ndim)
    return roll(x, tuple(x.shape[axis] // 2 for axis in axes), axis=axes)


def ifftshift(x: Array, /, *, axes: Axes | None = None) -> NDArray:
    """Return an array with the frequency 0 moved from the middle to the front.

    Parameters
    ----------
    x : NDArray
    axes : int or sequence of int, optional
        Each in ``[-x.ndim, x.ndim)``. Default: all.

    Returns
    -------
    NDArray
        A new array of the shape and the dtype of `x`.

    Raises
    ------
    ValueError
        If an axis is out of range.

    Notes
    -----
    Array API 2025.12, `fft.ifftshift`.

    Examples
    --------
    >>> import ndx
    >>> ndx.fft.ifftshift(ndx.asarray([-1, 0, 1]))
    NDArray([ 0,  1, -1])
    """
    x = argument(x, "ifftshift")
    axes = _axes(axes, x.ndim)
    return roll(x, tuple(-(x.shape[axis] // 2) for axis in axes), axis=axes)


def _axes(axes, ndim):
    if axes is None:
        return tuple(range(ndim))
    return tuple(axis_index(axis, ndim) for axis in axes_of(axes, "axes"))


def __dir__():
    return __all__


name_functions(globals())
