"""NumPy's functions where its own arithmetic loses numbers, computed exactly.

NumPy compares uint64 with signed integers as floats, subtracts narrow integers modulo
2**n, and adds float32 in float32. The functions here have the parameters of NumPy's,
get and return NumPy's arrays, and leave to NumPy what it computes right.
"""

import functools
import math
from operator import index

import numpy as np

__all__ = ["EXACT", "MANY", "integers_between", "require_integers"]

# NumPy's function -> the function that computes it exactly.
EXACT = {}

_INT64 = np.iinfo(np.int64)
# From this integer on, not all integers are floats.
_PRECISE = 2**53
# From this number of terms on, sums in float32 are off by more than their last digits.
MANY = 1024
# Masked arrays, matrices and others have rules of their own.
_PLAIN = (np.ndarray, np.memmap)
# Methods of `quantile` that return elements.
_CHOOSING = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


def _computes(function):
    """Register the exact function for one of NumPy's; subclasses stay NumPy's."""

    def register(exact):
        @functools.wraps(function)
        def compute(*args, **kwargs):
            for x in (*args, *kwargs.values()) if kwargs else args:
                if isinstance(x, np.ndarray) and type(x) not in _PLAIN:
                    return function(*args, **kwargs)
            return exact(*args, **kwargs)

        EXACT[function] = compute
        return exact

    return register


# ---------------------------------------------------------------- two integer types


def _are_mixed(*arrays):
    """Whether arrays are integers which no integer dtype holds together."""
    kinds = {x.dtype.kind for x in arrays}
    return kinds == {"i", "u"} and np.result_type(*arrays).kind == "f"


def _in_one_dtype(*operands):
    """Return operands in one integer dtype, if one holds all of their elements."""
    arrays = [np.asarray(x) for x in operands]
    if _are_mixed(*arrays):
        if all(x.dtype.kind == "u" or not (x < 0).any() for x in arrays):
            return [x.astype(np.uint64) for x in arrays]
        if all(x.dtype.kind == "i" or not (x > _INT64.max).any() for x in arrays):
            return [x.astype(np.int64) for x in arrays]
    return operands


def _within(x, dtype):
    """Return which integers of an array a dtype can hold."""
    limits = np.iinfo(dtype)
    return (x >= limits.min) & (x <= limits.max)


@_computes(np.ndarray.searchsorted)
@_computes(np.searchsorted)
def _searchsorted(a, v, side="left", sorter=None):
    a = np.asarray(a)
    if isinstance(v, (list, tuple)):
        v = np.asarray(v)
    if not isinstance(v, (np.ndarray, np.generic)) or not _are_mixed(a, v):
        return a.searchsorted(v, side, sorter)
    fits = _within(v, a.dtype)
    # Integers that the dtype lacks are smaller than all of its integers, or larger.
    beyond = 0 if v.dtype.kind == "i" else a.size
    found = np.searchsorted(a, np.where(fits, v, 0).astype(a.dtype), side, sorter)
    return np.where(fits, found, np.intp(beyond))[()]


@_computes(np.digitize)
def _digitize(x, bins, right=False):
    x, bins = np.asarray(x), np.asarray(bins)
    if not _are_mixed(x, bins) or not bins.size:
        return np.digitize(x, bins, right)
    # NumPy says what is wrong with the bins.
    np.digitize(bins[:1], bins)
    side = "left" if right else "right"
    if bins[0] <= bins[-1]:
        return _searchsorted(bins, x, side)
    return len(bins) - _searchsorted(bins[::-1], x, side)


@_computes(np.histogram)
def _histogram(a, bins=10, range=None, density=None, weights=None):
    edges = None if isinstance(bins, str) else np.asarray(bins)
    values = np.asarray(a)
    if edges is not None and edges.ndim == 1 and _are_mixed(values, edges):
        # Values that do not fit the dtype of the edges are in none of the bins.
        fits = _within(values, edges.dtype)
        a = values[fits].astype(edges.dtype)
        weights = None if weights is None else np.asarray(weights)[fits]
    return np.histogram(a, bins, range, density, weights)


@_computes(np.interp)
def _interp(x, xp, fp, left=None, right=None, period=None):
    if period is None:
        x, xp = _near_zero(np.asarray(x), np.asarray(xp))
    return np.interp(x, xp, fp, left, right, period)


def _near_zero(x, xp):
    """Return large integers less the first of the second array, where that is exact."""
    if (
        not x.size
        or not xp.size
        or x.dtype.kind not in "iu"
        or xp.dtype.kind not in "iu"
    ):
        return x, xp
    low = min(int(x.min()), int(xp.min()))
    high = max(int(x.max()), int(xp.max()))
    if max(-low, high) <= _PRECISE or high - low > _INT64.max:
        return x, xp
    # Modulo 2**64, where the differences are what they are.
    start = np.uint64(int(xp.flat[0]) % 2**64)
    return [(each.astype(np.uint64) - start).view(np.int64) for each in (x, xp)]


@_computes(np.intersect1d)
def _intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    first, second = np.ravel(ar1), np.ravel(ar2)
    if not _are_mixed(first, second):
        return np.intersect1d(ar1, ar2, assume_unique, return_indices)
    # Only values that fit both dtypes can be common.
    places = [
        np.flatnonzero(_within(first, second.dtype)),
        np.flatnonzero(_within(second, first.dtype)),
    ]
    common, *found = np.intersect1d(
        first[places[0]].astype(np.int64),
        second[places[1]].astype(np.int64),
        assume_unique,
        return_indices=True,
    )
    if not return_indices:
        return common
    return common, *[kept[k] for kept, k in zip(places, found, strict=True)]


@_computes(np.union1d)
def _union1d(ar1, ar2):
    return np.union1d(*_in_one_dtype(ar1, ar2))


@_computes(np.setxor1d)
def _setxor1d(ar1, ar2, assume_unique=False):
    first, second = _in_one_dtype(ar1, ar2)
    return np.setxor1d(first, second, assume_unique)


# ---------------------------------------------------------------- ranges


def require_integers(dtype, *numbers):
    """Raise for numbers that become elements of a dtype of integers and don't fit."""
    limits = np.iinfo(dtype)
    for number in numbers:
        if not math.isfinite(number):
            msg = f"{number} can't be stored in an array of dtype {np.dtype(dtype)}"
            raise ValueError(msg) if math.isnan(number) else OverflowError(msg)
        if not limits.min <= int(number) <= limits.max:
            msg = (
                f"the range has {number}, which does not fit {np.dtype(dtype)} (from "
                f"{limits.min} to {limits.max}); use a wider dtype"
            )
            raise OverflowError(msg)


def integers_between(start, stop, num, endpoint, dtype):
    """Return evenly spaced integers, the exact values rounded down, as NumPy's array.

    All arguments are ints.

    Raises
    ------
    OverflowError
        If the first or the last does not fit the dtype.
    """
    parts = max(num - 1 if endpoint else num, 1)
    if num:
        require_integers(dtype, start, start + (stop - start) * (num - 1) // parts)
    step, rest = divmod(stop - start, parts)
    places = np.arange(num, dtype=np.uint64)
    # Modulo 2**64; `num` squared is below that.
    more = places * np.uint64(rest) // np.uint64(parts)
    found = np.uint64(start % 2**64) + places * np.uint64(step % 2**64) + more
    return found.astype(dtype)


def _as_ints(*ends):
    """Return integers without axes as Python's ints; None for anything else."""
    found = []
    for end in ends:
        if isinstance(end, np.ndarray) and end.ndim == 0:
            end = end[()]
        if isinstance(end, (bool, np.bool)) or not isinstance(end, (int, np.integer)):
            return None
        found.append(int(end))
    return found


def _integer_dtype(dtype):
    """Return a dtype of integers; None if it is another, or none."""
    dtype = None if dtype is None else np.dtype(dtype)
    return dtype if dtype is not None and dtype.kind in "iu" else None


@_computes(np.linspace)
def _linspace(
    start,
    stop,
    num=50,
    endpoint=True,
    retstep=False,
    dtype=None,
    axis=0,
    *,
    device=None,
):
    whole = _integer_dtype(dtype)
    ends = None if whole is None else _as_ints(start, stop)
    if ends is None or not 0 <= index(num) < 2**31:
        return np.linspace(
            start, stop, num, endpoint, retstep, dtype, axis, device=device
        )
    found = integers_between(*ends, index(num), endpoint, whole)
    if not retstep:
        return found
    return found, np.linspace(*ends, num, endpoint, True)[1]


def _is_endless(numbers):
    """Whether a range is longer than an array can be."""
    return (numbers.stop - numbers.start) // numbers.step >= 2**60


@_computes(np.arange)
def _arange(*args, **kwargs):
    whole = _integer_dtype(args[3] if len(args) > 3 else kwargs.get("dtype"))
    given = list(args[:3])
    given += [kwargs[name] for name in ("start", "stop", "step")[len(given) :]
              if kwargs.get(name) is not None]  # fmt: skip
    ends = None if whole is None or "start" in kwargs else _as_ints(*given)
    if not ends or (len(ends) == 3 and ends[2] == 0):
        return np.arange(*args, **kwargs)
    numbers = range(*ends)
    if not numbers:
        return np.empty(0, whole)
    require_integers(whole, numbers[0], numbers[-1])
    if max(map(abs, ends)) <= _PRECISE or _is_endless(numbers):
        return np.arange(*args, **kwargs)
    # NumPy takes the length from floats. Modulo 2**64 the numbers are what they are.
    places = np.arange(len(numbers), dtype=np.uint64)
    first, step = numbers[0] % 2**64, numbers.step % 2**64
    return (np.uint64(first) + places * np.uint64(step)).astype(whole)


# ---------------------------------------------------------------- narrow integers


def _spans(x):
    """Whether differences of the integers in an array may be beyond 64 bits."""
    return x.size > 0 and int(x.max()) - int(x.min()) > _INT64.max


def _roomy(x):
    """Return integers in a dtype that can hold their differences; others unchanged."""
    if x.dtype.kind not in "iu":
        return x
    if x.dtype.itemsize < 8:
        return x.astype(np.int32 if x.dtype.itemsize < 4 else np.int64)
    return x.astype(np.float64) if _spans(x) else x


def _quantiles(function, whole):
    """Register what computes quantiles, which for `q` of a kind `whole` are ends."""

    @_computes(function)
    def quantile(a, q, *args, **kwargs):
        method = args[3] if len(args) > 3 else kwargs.get("method", "linear")
        method = kwargs.get("interpolation", method)
        if method not in _CHOOSING and np.asarray(q).dtype.kind != whole:
            a = _roomy(np.asarray(a))
        return function(a, q, *args, **kwargs)


for _function in (np.quantile, np.nanquantile):
    _quantiles(_function, "i")
for _function in (np.percentile, np.nanpercentile):
    _quantiles(_function, None)


@_computes(np.trapezoid)
def _trapezoid(y, x=None, dx=1.0, axis=-1):
    y = np.asanyarray(y)
    if y.dtype.kind in "iu":
        y = y.astype(np.float64)
    if x is not None:
        x = _roomy(np.asanyarray(x))
        if x.dtype == np.uint64:
            x = (x - x.min()).astype(np.int64) if x.size else x
    return np.trapezoid(y, x, dx, axis)


# ---------------------------------------------------------------- sums of float32


def _terms(x, axis):
    """Return how many elements are added up for one result."""
    if axis is None or not x.ndim:
        return x.size
    axes = axis if isinstance(axis, tuple) else (axis,)
    return math.prod([x.shape[each] for each in axes if -x.ndim <= each < x.ndim])


def _summing(function):
    @_computes(function)
    def summed(a, axis=None, dtype=None, out=None, *args, **kwargs):
        x = np.asanyarray(a)
        wide = np.result_type(x.dtype, np.float64)
        if (
            dtype is not None
            or out is not None
            or x.dtype.char not in "fF"
            or type(x) is not np.ndarray
            or _terms(x, axis) < MANY
        ):
            return function(a, axis, dtype, out, *args, **kwargs)
        found = function(x, axis, wide, None, *args, **kwargs)
        # `nanvar` of complex numbers is real.
        narrow = np.float32 if found.dtype.kind == "f" else x.dtype
        return found.astype(narrow)


for _function in (np.nansum, np.nanmean, np.nanvar, np.nanstd):
    _summing(_function)


@_computes(np.average)
def _average(a, axis=None, weights=None, returned=False, **kwargs):
    x = np.asanyarray(a)
    if x.dtype != np.float32 or type(x) is not np.ndarray or _terms(x, axis) < MANY:
        return np.average(a, axis, weights, returned, **kwargs)
    if weights is None:
        found = np.mean(x, axis, np.float64, **kwargs)
        total = np.full_like(found, x.size / max(np.size(found), 1))
        narrow = np.float32
    else:
        weights = np.asanyarray(weights)
        narrow = np.result_type(x.dtype, weights.dtype)
        wide = np.result_type(narrow, np.float64)
        found, total = np.average(
            x, axis, weights.astype(wide), returned=True, **kwargs
        )
    found = found.astype(narrow)
    return (found, total.astype(narrow)) if returned else found
