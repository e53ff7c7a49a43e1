"""Assertions about arrays: dtype, shape and values, of any array library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndx._core import NDArray

if TYPE_CHECKING:
    from typing import Any

__all__ = ["assert_allclose", "assert_equal"]

CPU = 1  # DLPack's number for the CPU
SHOWN = 5  # positions in a message


def assert_equal(
    actual: Any, expected: Any, *, check_dtype: bool = True, err_msg: str = ""
) -> None:
    """Check that two arrays have the same dtype, shape and elements.

    Parameters
    ----------
    actual, expected : array-like
        NDArrays, arrays of another library, or Python scalars and nested lists of
        them, which have no dtype of their own to compare.
    check_dtype : bool, default: True
        Whether different dtypes are a failure.
    err_msg : str, optional
        Put at the beginning of the message.

    Raises
    ------
    AssertionError
        If dtype, shape or an element differ. NaNs are equal to each other, and 0.0
        to -0.0. Nothing is broadcast: a scalar is not equal to an array with axes.
    StaleArrayError
        If the scope that an array was made in has ended.

    See Also
    --------
    assert_allclose : the same, with tolerance for rounding errors.

    Examples
    --------
    >>> import ndx
    >>> from ndx.testing import assert_equal
    >>> assert_equal(ndx.asarray([1, 2]) + 1, [2, 3])
    >>> assert_equal(ndx.asarray([1.0, 2.0, 3.0]), ndx.asarray([1.0, 2.0, 4.0]))
    Traceback (most recent call last):
    AssertionError: arrays are not equal: 1 of 3 elements differs
      [2]: 3.0, expected 4.0
    """
    __tracebackhide__ = True  # pytest shows the line that called this one
    message = _difference(actual, expected, check_dtype, _equal, "equal")
    if message:
        raise AssertionError(_prefixed(err_msg, message))


def assert_allclose(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    check_dtype: bool = True,
    err_msg: str = "",
) -> None:
    """Check that two arrays have the same dtype, shape and nearly equal elements.

    Parameters
    ----------
    actual, expected : array-like
        As for `assert_equal`.
    rtol : float, optional
        Tolerated difference relative to the expected element. Default: the square
        root of the coarser dtype's precision, which is 1.5e-8 for float64 and 3.5e-4
        for float32.
    atol : float, default: 0.0
        Tolerated absolute difference, added to that.
    check_dtype : bool, default: True
        Whether different dtypes are a failure.
    err_msg : str, optional
        Put at the beginning of the message.

    Raises
    ------
    AssertionError
        If dtype or shape differ, or if an element differs by more than
        ``atol + rtol * abs(expected)``. NaNs are equal to each other, as are
        infinities of one sign.
    ValueError
        If a tolerance is negative or NaN.
    StaleArrayError
        If the scope that an array was made in has ended.

    See Also
    --------
    assert_equal : the same, without tolerance.

    Examples
    --------
    >>> import ndx
    >>> from ndx.testing import assert_allclose
    >>> assert_allclose(ndx.sqrt(ndx.asarray([2.0])) ** 2, [2.0])
    >>> assert_allclose(ndx.asarray([1.0]), [1.5], rtol=0.1)
    Traceback (most recent call last):
    AssertionError: arrays are not close (rtol=0.1, atol=0.0): 1 of 1 elements differs
      [0]: 1.0, expected 1.5
      largest difference: 0.5 absolute, 0.333 relative
    """
    __tracebackhide__ = True  # pytest shows the line that called this one
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not value >= 0:
            raise ValueError(f"{name} must not be negative; got {value!r}")

    def close(a, b):
        return _close(a, b, _default_rtol(a, b) if rtol is None else rtol, atol)

    given = "" if rtol is None else f"rtol={rtol}, "
    message = _difference(
        actual, expected, check_dtype, close, f"close ({given}atol={atol})"
    )
    if message:
        raise AssertionError(_prefixed(err_msg, message))


def _prefixed(err_msg, message):
    return f"{err_msg}: {message}" if err_msg else message


def _values(x):
    """Return a NumPy array of the elements, and whether `x` has a dtype of its own."""
    if isinstance(x, NDArray):
        return x.__array__(), True
    if not hasattr(x, "dtype"):
        # Nested lists may hold arrays, which raise errors of their own.
        return np.asarray(x), False
    where = getattr(x, "__dlpack_device__", None)
    if where is not None and (not hasattr(x, "__array__") or where()[0] != CPU):
        return np.from_dlpack(x, device="cpu"), True
    return np.asarray(x), True


# Views of the arrays live in these functions only; no traceback keeps them.
def _difference(actual, expected, check_dtype, matching, relation):
    """Return a description of the difference of two arrays; "" if there is none."""
    a, typed = _values(actual)
    b, other_typed = _values(expected)
    if a.shape != b.shape:
        return f"shapes differ: {a.shape}, expected {b.shape}"
    if check_dtype and typed and other_typed and a.dtype != b.dtype:
        return f"dtypes differ: {a.dtype}, expected {b.dtype}"
    with np.errstate(all="ignore"):
        wrong = np.atleast_1d(~matching(a, b))
        count = int(np.count_nonzero(wrong))
        if not count:
            return ""
        verb = "differs" if count == 1 else "differ"
        lines = [f"arrays are not {relation}: {count} of {a.size} elements {verb}"]
        for position in np.argwhere(wrong)[:SHOWN]:
            # Without axes there is one element, without a position.
            index = tuple(map(int, position)) if a.ndim else ()
            lines.append(
                f"{list(index)}: {a[index].item()}, expected {b[index].item()}"
            )
        if count > SHOWN:
            lines.append(f"... and {count - SHOWN} more")
        if relation != "equal":
            lines.append(_largest(a, b))
    return "\n  ".join(filter(None, lines))


def _nan(a):
    return np.isnan(a) if a.dtype.kind in "fc" else np.zeros(a.shape, bool)


def _equal(a, b):
    return np.asarray((a == b) | (_nan(a) & _nan(b)))


def _default_rtol(a, b):
    kinds = [x.dtype for x in (a, b) if x.dtype.kind in "fc"]
    return max((float(np.finfo(kind).eps) ** 0.5 for kind in kinds), default=0.0)


def _inexact(a):
    return a if a.dtype.kind in "fc" else a.astype(np.float64)


def _close(a, b, rtol, atol):
    same = _equal(a, b)
    a, b = _inexact(a), _inexact(b)
    # Infinities are close to themselves only, with any tolerance.
    finite = np.isfinite(a) & np.isfinite(b)
    return np.asarray(same | finite & (np.abs(a - b) <= atol + rtol * np.abs(b)))


def _largest(a, b):
    difference = np.abs(_inexact(a) - _inexact(b))
    relative = difference / np.abs(_inexact(b))
    found = [
        f"{values[np.isfinite(values)].max():.3g} {name}"
        for name, values in (("absolute", difference), ("relative", relative))
        if np.isfinite(values).any()
    ]
    return f"largest difference: {', '.join(found)}" if found else ""
