"""Set functions of the standard."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from ndx._api.creation_from_data import asarray
from ndx._api.data_types import astype
from ndx._api.elementwise import (
    equal,
    greater_equal,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from ndx._api.manipulation import reshape
from ndx._api.searching import where
from ndx._api.utility import any as any_of
from ndx._compute.numpy_calls import argument, call, on_device
from ndx._compute.sorting import unique_parts
from ndx._lib.device import CPU
from ndx._lib.numpy_private import part

if TYPE_CHECKING:
    from ndx._typing import (
        Array,
        NDArray,
        Operand,
        UniqueAllResult,
        UniqueCountsResult,
        UniqueInverseResult,
    )

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

# The numbers of elements up to which comparisons with each of them are faster than
# NumPy's ways, and from which NumPy's table is faster.
FEW, MANY = 16, 100_000

_AllResult, _CountsResult, _InverseResult = part("sets") or (
    type(function(np.empty(0)))
    for function in (np.unique_all, np.unique_counts, np.unique_inverse)
)


def unique_all(x: Array, /) -> UniqueAllResult:
    """Return the distinct elements, their indices, and their numbers of occurrences.

    Parameters
    ----------
    x : NDArray
        Flattened first.

    Returns
    -------
    UniqueAllResult
        A named tuple of `values`, shape (n,), sorted; `indices`, shape (n,), of their
        first occurrences in the flattened `x`; `inverse_indices`, of the shape of `x`,
        so that ``values[inverse_indices]`` is `x`; and `counts`, shape (n,). The last
        three are int64.

    Notes
    -----
    Array API 2025.12, `unique_all`. Each NaN is distinct.

    Examples
    --------
    >>> import ndx
    >>> ndx.unique_all(ndx.asarray([5, 3, 5])).counts
    NDArray([1, 2])
    """
    x = argument(x, "unique_all")
    found = unique_parts(x, True, True, True)
    return call("unique_all", x) if found is None else _AllResult(*found)


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """Return the distinct elements and their numbers of occurrences.

    Parameters
    ----------
    x : NDArray
        Flattened first.

    Returns
    -------
    UniqueCountsResult
        A named tuple of `values`, shape (n,), sorted, and `counts`, shape (n,), int64.

    Notes
    -----
    Array API 2025.12, `unique_counts`. Each NaN is distinct.

    Examples
    --------
    >>> import ndx
    >>> values, counts = ndx.unique_counts(ndx.asarray([5, 3, 5]))
    >>> values, counts
    (NDArray([3, 5]), NDArray([1, 2]))
    """
    x = argument(x, "unique_counts")
    found = unique_parts(x, False, False, True)
    if found is None:
        return call("unique_counts", x)
    return _CountsResult(found[0], found[3])


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """Return the distinct elements and the indices that restore the array.

    Parameters
    ----------
    x : NDArray
        Flattened first.

    Returns
    -------
    UniqueInverseResult
        A named tuple of `values`, shape (n,), sorted, and `inverse_indices`, int64, of
        the shape of `x`.

    Notes
    -----
    Array API 2025.12, `unique_inverse`. Each NaN is distinct.

    Examples
    --------
    >>> import ndx
    >>> ndx.unique_inverse(ndx.asarray([5, 3, 5])).inverse_indices
    NDArray([1, 0, 1])
    """
    x = argument(x, "unique_inverse")
    found = unique_parts(x, False, True, False)
    if found is None:
        return call("unique_inverse", x)
    return _InverseResult(found[0], found[2])


def unique_values(x: Array, /) -> NDArray:
    """Return the distinct elements.

    Parameters
    ----------
    x : NDArray
        Flattened first.

    Returns
    -------
    NDArray, shape (n,)
        Sorted.

    Notes
    -----
    Array API 2025.12, `unique_values`. Each NaN is distinct.

    Examples
    --------
    >>> import ndx
    >>> ndx.unique_values(ndx.asarray([5, 3, 5]))
    NDArray([3, 5])
    """
    x = argument(x, "unique_values")
    found = unique_parts(x, False, False, False)
    if found is not None:
        return found[0]
    if x.device != CPU:
        return on_device("unique_values", x)
    # `np.unique` would import it on first use, with its constants in memory of ndx.
    import numpy.ma  # noqa: F401

    return call("unique", x, equal_nan=False)


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> NDArray:
    """Return whether each element of the first array is in the second.

    Parameters
    ----------
    x1, x2 : NDArray, or one of them a Python scalar
        Of any shapes.
    invert : bool
        Whether to return the opposite.

    Returns
    -------
    NDArray of bool
        Of the shape of `x1`.

    Raises
    ------
    TypeError
        If neither is an array.

    Notes
    -----
    Array API 2025.12, `isin`. NaN is in no array.

    Examples
    --------
    >>> import ndx
    >>> ndx.isin(ndx.asarray([1, 2, 3]), ndx.asarray([3, 1]))
    NDArray([ True, False,  True])
    """
    if isinstance(x1, (bool, int, float, complex)):
        x2 = argument(x2, "isin")
        x1 = as_its_kind(x1, x2)
    elif isinstance(x2, (bool, int, float, complex)):
        x1 = argument(x1, "isin")
        x2 = as_its_kind(x2, x1)
    else:
        x1, x2 = argument(x1, "isin"), argument(x2, "isin")
    if hasattr(x1, "dtype") and hasattr(x2, "dtype"):
        if x1.dtype == x2.dtype:
            # NumPy looks up many integers in a table.
            few = 0 < x2.size <= FEW and (x1.size < MANY or x1.dtype.kind not in "biu")
            if few and x1.device == x2.device == CPU:
                return is_one_of(x1, x2, invert)
        elif np.uint64 in (x1.dtype, x2.dtype) and "i" in x1.dtype.kind + x2.dtype.kind:
            return is_in_signed(x1, x2, invert)
    return call("isin", x1, x2, invert=invert)


def as_its_kind(scalar, x: NDArray):
    """Return a scalar in the dtype of an array of floats, where it takes that dtype."""
    kind = x.dtype.kind
    if kind == "c" or (kind == "f" and not isinstance(scalar, complex)):
        with contextlib.suppress(OverflowError):
            return asarray(scalar, dtype=x.dtype, device=x.device)
    return scalar


def is_in_signed(x: NDArray, others: NDArray, invert: bool) -> NDArray:
    """Compare uint64 with signed integers, which no dtype holds together.

    As floats, as NumPy compares them, some different integers are equal.
    """
    if x.dtype.kind == "u":
        fits, dtype = greater_equal(others, 0), np.uint64
    else:
        fits, dtype = less_equal(others, 2**63 - 1), np.int64
    # Values outside the dtype can't occur in `x`: replace them by 0, and undo a false
    # match below.
    within = astype(where(fits, others, 0), dtype)
    found = isin(astype(x, dtype), within)
    found = logical_and(found, logical_or(not_equal(x, 0), any_of(equal(others, 0))))
    return logical_not(found, out=found) if invert else found


def is_one_of(x: NDArray, few: NDArray, invert: bool) -> NDArray:
    """Return whether each element of an array is one of a few, by comparisons."""
    found = None
    for value in reshape(few, (-1,)):
        same = equal(x, value)
        found = same if found is None else logical_or(found, same, out=found)
    return logical_not(found, out=found) if invert else found
