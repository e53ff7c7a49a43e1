"""Rounding to decimal digits, for Python's `round`."""

from math import log10
from operator import index

__all__ = ["rounded"]


def rounded(namespace, x, ndigits):
    """Return a new array, rounded to a number of decimal digits; halves to even.

    Elements that are too large for that many digits stay unchanged.
    """
    digits = 0 if ndigits is None else index(ndigits)
    if x.dtype.kind in "bc":
        msg = f"round() is of real numbers, not of {x.dtype}"
        raise TypeError(msg)
    if digits == 0 or (digits > 0 and x.dtype.kind in "iu"):
        return namespace.round(x)
    if x.dtype.kind in "iu":
        # Units of more digits are beyond all integers, and take long to compute.
        return _round_integers(namespace, x, 10 ** min(-digits, 20))
    if abs(digits) > log10(namespace.finfo(x.dtype).max):
        return +x if digits > 0 else namespace.where(namespace.isfinite(x), x * 0, x)
    scale = 10.0 ** abs(digits)
    if digits < 0:
        return namespace.round(x / scale) * scale
    scaled = x * scale
    near = namespace.round(scaled) / scale
    return namespace.where(namespace.isfinite(scaled), near, x)


def _round_integers(namespace, x, unit):
    info = namespace.iinfo(x.dtype)
    if unit > info.max:
        if unit // 2 > info.max:
            return x * 0
        msg = f"multiples of {unit} are beyond {x.dtype}; convert to floats first"
        raise OverflowError(msg)
    count, rest = x // unit, x % unit
    up = (rest > unit - rest) | ((rest == unit - rest) & (count % 2 == 1))
    return (count + namespace.astype(up, x.dtype)) * unit
