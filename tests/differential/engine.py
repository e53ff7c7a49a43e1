"""How a drawn call is made in three namespaces, and how the answers are compared."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import array_api_strict as strict
import numpy as np
from helpers.calls import resolve
from hypothesis import strategies as st

import ndx

strict.set_array_api_strict_flags(api_version="2025.12")

# Errors of one family are the same error: NumPy's AxisError is both of two.
FAMILIES = (TypeError, ValueError, IndexError, OverflowError, BufferError)


@dataclass(frozen=True)
class Row:
    """How calls of one function are drawn, and what is known of its answers.

    Attributes
    ----------
    draws : strategy
        Of ``(args, kwargs)``; NumPy arrays and dtypes in them, at any depth, are
        changed for those of the namespace that is called.
    numpy : callable, optional
        What NumPy's answer is computed by, where it is not the function of that name.
    ulps : float
        How many units in the last place floats may differ by; 0: not at all, the sign
        of zero included. Loops for contiguous data round otherwise than others.
    overall : bool
        Whether `ulps` are those of the largest element, not of each.
    strict : bool or callable
        Whether array-api-strict's answer counts, for these arguments.
    standard : callable, optional
        For the arguments: a mask of the elements where NumPy's answer is the
        standard's; `tests/compute/test_special_values.py` has the others.
    values : bool
        Whether the values are defined.
    zeros : bool
        Whether it is defined which zero comes, 0.0 or -0.0.
    refuses : callable, optional
        Whether ndx raises for these arguments where NumPy computes.
    note : str
        The reason for what is said of any of these.
    """

    draws: st.SearchStrategy
    numpy: Callable | None = None
    ulps: float = 0.0
    overall: bool = False
    strict: bool | Callable = True
    standard: Callable | None = None
    values: bool = True
    zeros: bool = True
    refuses: Callable | None = None
    note: str = ""


def rows(names, draws, **kwargs):
    """Return a table of rows that are alike."""
    return dict.fromkeys(names.split(), Row(draws, **kwargs))


def mapped(value, change):
    """Return arguments with their arrays and dtypes changed, at any depth."""
    if isinstance(value, (np.ndarray, np.dtype)):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)([mapped(item, change) for item in value])
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def plain(value):
    """Return a copy in C order, aligned and native: no layout changes an answer."""
    if isinstance(value, np.dtype):
        return value
    return np.array(value, value.dtype.newbyteorder("="), order="C", copy=True)


def has_half(value):
    """Whether a dtype in arguments, at any depth, is float16, which strict lacks."""
    found = []
    mapped(value, lambda item: found.append(np.dtype(getattr(item, "dtype", item))))
    return any(dtype.newbyteorder("=") == np.float16 for dtype in found)


def as_strict(value):
    if isinstance(value, np.dtype):
        return getattr(strict, value.name)
    return strict.asarray(plain(value))


def spread_out(array):
    """Return an NDArray with room between its elements."""
    native = array.dtype.newbyteorder("=")
    room = ndx.zeros([2 * length + 1 for length in array.shape], dtype=native)
    view = room[(*[slice(1, None, 2)] * array.ndim, ...)]
    view[...] = array
    return view


# How ndx is given an array: over its memory, copied, with room, or as it is.
WAYS = {
    "shared": ndx.asarray,
    "copied": lambda array: ndx.asarray(array, copy=True),
    "spread": spread_out,
    "foreign": lambda array: array,
}
A_WAY = st.sampled_from(list(WAYS))


def as_ours(data):
    """Return the change of arguments to ndx's, in ways that are drawn."""

    def change(value):
        return value if isinstance(value, np.dtype) else WAYS[data.draw(A_WAY)](value)

    return change


def outcome(function, args, kwargs):
    """Return ``(what the function returns, None)`` or ``(None, what it raises)``."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs), None
        except Exception as error:
            return None, error


def alike(error, other):
    if "out of range" in str(error) and isinstance(other, IndexError):
        # What some of NumPy's functions raise for an axis that there is not.
        return isinstance(error, (ValueError, IndexError))
    return any(isinstance(error, f) and isinstance(other, f) for f in FAMILIES)


def compare(data, name, row):
    """Make a drawn call in all namespaces, and compare their answers or errors."""
    args, kwargs = data.draw(row.draws)
    compare_call(name, row, args, kwargs, as_ours(data))


def compare_call(name, row, args, kwargs, change, with_strict=True):
    """Make a call in all namespaces; `change` makes ndx's arrays of NumPy's."""
    native = mapped(args, plain), mapped(kwargs, plain)
    reference = row.numpy or resolve(np, name)
    expected, refusal = outcome(reference, *native)
    given = mapped(args, change), mapped(kwargs, change)
    found, error = outcome(resolve(ndx, name), *given)
    if row.refuses is not None and row.refuses(*native[0], **native[1]):
        assert isinstance(error, FAMILIES), (error, found)
        return
    if refusal is not None:
        assert error is not None, f"NumPy raises {refusal!r}; found {found!r}"
        assert alike(error, refusal), f"{error!r}, but NumPy raises {refusal!r}"
    elif error is not None:
        raise AssertionError(f"an error where NumPy returns {expected!r}") from error
    else:
        mask = True
        if row.standard is not None:
            mask = row.standard(*native[0], **native[1])
        assert_alike(found, expected, row, mask)
    wanted = row.strict if with_strict and not has_half((args, kwargs)) else False
    if callable(wanted):
        wanted = wanted(*native[0], **native[1])
    if wanted:
        standard, refusal = outcome(
            resolve(strict, name), mapped(args, as_strict), mapped(kwargs, as_strict)
        )
        if refusal is None:
            assert error is None, f"array-api-strict returns {standard!r}"
            mask = True if row.standard is None else row.standard(*native[0])
            assert_alike(found, standard, row, mask)


def assert_alike(found, expected, row, mask=True):
    """Check an answer, or each of several, against another namespace's."""
    if isinstance(expected, (tuple, list)):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for item, other in zip(found, expected, strict=True):
            assert_alike(item, other, row, mask)
        return
    if not isinstance(expected, (np.ndarray, np.generic, strict._array_object.Array)):
        if "array_api_strict" in type(expected).__module__:
            expected = np.dtype(str(expected).rpartition(".")[2])
        assert found == expected
        return
    expected = np.asarray(expected)
    assert isinstance(found, ndx.NDArray)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if row.values:
        assert_close(np.asarray(found), expected, row, mask)


def assert_close(found, expected, row, mask):
    if expected.dtype.kind not in "fc" or not row.ulps:
        np.testing.assert_array_equal(found[mask], expected[mask])
        if expected.dtype.kind == "f":
            real = ~np.isnan(expected) & mask & (row.zeros | (expected != 0))
            np.testing.assert_array_equal(
                np.signbit(found[real]), np.signbit(expected[real])
            )
        return
    finite = np.isfinite(expected)
    for part in ("real", "imag"):
        one, other = getattr(found, part), getattr(expected, part)
        unlike = ~finite & mask
        np.testing.assert_array_equal(one[unlike], other[unlike])
    finite &= mask
    found, expected = found[finite], expected[finite]
    info = np.finfo(expected.dtype)
    size = np.abs(expected).astype(np.float64)  # float16 has no such limits
    if row.overall and size.size:
        size = size.max()
    with np.errstate(all="ignore"):
        error = np.abs(found - expected)
        smallest = float(info.smallest_subnormal)
        limit = row.ulps * float(info.eps) * size + row.ulps * smallest
        assert np.all(error <= limit), (found, expected, np.max(error))
