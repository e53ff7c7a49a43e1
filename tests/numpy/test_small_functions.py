"""Functions of few elements that ndx computes itself have NumPy's results."""

import sys
import warnings

import numpy as np
import pytest
from helpers.compare import assert_same
from helpers.examples import examples
from helpers.numpy_versions import needs_part
from helpers.small_arrays import arrays
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy


def changed(change):
    """Return a call that returns what another one changes."""

    def call(np, a, b, k):
        copy = np.array(a)
        change(np, copy, b, k)
        return copy

    return call


def mask_of(np, a):
    """Return a mask of the shape of an array."""
    return np.asarray(a) > 0


CALLS = {
    "accumulate": lambda np, a, b, k: np.maximum.accumulate(a),
    "accumulate less": lambda np, a, b, k: np.less.accumulate(a),
    "add.at": changed(lambda np, a, b, k: np.add.at(a, np.asarray(k), b[: len(k)])),
    "add.at 1": changed(lambda np, a, b, k: np.add.at(a, np.asarray(k), 1)),
    "angle": lambda np, a, b, k: np.angle(a),
    "append": lambda np, a, b, k: np.append(a, b),
    "append 1": lambda np, a, b, k: np.append(1.5, a),
    "argpartition": lambda np, a, b, k: np.argpartition(a, sum(k[:1])),
    "argsort": lambda np, a, b, k: np.argsort(a, kind="stable"),
    "average": lambda np, a, b, k: np.average(np.abs(b), weights=np.abs(b[::-1])),
    "bincount": lambda np, a, b, k: np.bincount(np.asarray(k)),
    "bincount 6": lambda np, a, b, k: np.bincount(np.asarray(k), minlength=6),
    "bincount weights": lambda np, a, b, k: np.bincount(np.asarray(k), b[: len(k)]),
    "concatenate": lambda np, a, b, k: np.concatenate(([1.5, 2], b, [True])),
    "diag_indices": lambda np, a, b, k: np.diag_indices(len(k)),
    "divmod": lambda np, a, b, k: np.divmod(a, b),
    "divmod 2": lambda np, a, b, k: np.divmod(a, 2),
    "divmod of 2": lambda np, a, b, k: np.divmod(2, a),
    "c_": lambda np, a, b, k: np.c_[a, a[::-1]],
    "fromiter list": lambda np, a, b, k: np.fromiter(k, "float32"),
    "fromiter": lambda np, a, b, k: np.fromiter(iter(k), float),
    "convolve": lambda np, a, b, k: np.convolve(a, b),
    "convolve list": lambda np, a, b, k: np.convolve(b, [1, 2.5, 1], "same"),
    "correlate": lambda np, a, b, k: np.correlate(b, a, "full"),
    "correlate same": lambda np, a, b, k: np.correlate(a, b, mode="same"),
    "cumsum 0": lambda np, a, b, k: np.cumsum(a, axis=0),
    "diff 2": lambda np, a, b, k: np.diff(b, 2),
    "histogram": lambda np, a, b, k: np.histogram(a, bins=3),
    "histogram range": lambda np, a, b, k: np.histogram(a, 7, (-1.5, 2)),
    "unravel_index": lambda np, a, b, k: np.unravel_index(sum(k), (2, 5)),
    "vander": lambda np, a, b, k: np.vander(a, len(k)),
    "vander up": lambda np, a, b, k: np.vander(b, increasing=True),
    "ix_": lambda np, a, b, k: np.ix_(np.asarray(k), np.asarray(k[:2]), b),
    "lexsort": lambda np, a, b, k: np.lexsort((b, a)),
    "lstsq": lambda np, a, b, k: np.linalg.lstsq(np.vander(b, 2), b, None),
    "polyfit": lambda np, a, b, k: np.polyfit(b[: len(k)], np.asarray(k) * 0.5, 1),
    "partition": lambda np, a, b, k: np.partition(a, sum(k[:1])),
    "r_": lambda np, a, b, k: np.r_[a, 1, b],
    "r_ half": lambda np, a, b, k: np.r_[0.5, a, sum(k)],
    "r_ element": lambda np, a, b, k: np.r_[b[0], b, b[:2].tolist()],
    "ravel_multi_index": lambda np, a, b, k: np.ravel_multi_index(
        (np.asarray(k), np.asarray(k[::-1])), (4, 5)
    ),
    "interp": lambda np, a, b, k: np.interp(np.real(a), np.sort(b), b),
    "interp 1": lambda np, a, b, k: np.interp(0.5, np.sort(a), a),
    "median": lambda np, a, b, k: np.median(a),
    "median 0": lambda np, a, b, k: np.median(a, axis=0),
    "median -1": lambda np, a, b, k: np.median(a, -1),
    "modf": lambda np, a, b, k: np.modf(a),
    # The sign of a sum of negative zeros is ndx's own.
    **{
        f"nan{name} {axis}": lambda np, a, b, k, name=name, axis=axis: getattr(
            np, f"nan{name}"
        )(np.add(a, 0), axis=axis)
        for name in ("argmin", "max", "mean", "median", "std", "sum", "var")
        for axis in (None, 0, -1)
    },
    "nanpercentile": lambda np, a, b, k: np.nanpercentile(a, 30),
    "percentile": lambda np, a, b, k: np.percentile(a, 30),
    "percentiles": lambda np, a, b, k: np.percentile(a, [0.0, 12.5, 100.0]),
    "place": changed(lambda np, a, b, k: np.place(a, mask_of(np, a), b)),
    "put": changed(lambda np, a, b, k: np.put(a, np.asarray(k), b)),
    "put 1": changed(lambda np, a, b, k: np.put(a, np.asarray(k), 1)),
    "putmask": changed(lambda np, a, b, k: np.putmask(a, mask_of(np, a), b)),
    "quantile": lambda np, a, b, k: np.quantile(a, 0.7),
    "repeat": lambda np, a, b, k: np.repeat(b[: len(k)], np.asarray(k)),
    "searchsorted": lambda np, a, b, k: np.searchsorted(np.sort(b), 1.5),
    "searchsorted 1": lambda np, a, b, k: np.searchsorted(np.sort(b), 1, "right"),
    "unique": lambda np, a, b, k: np.unique(a),
    "unique all": lambda np, a, b, k: np.unique(a, True, True, return_counts=True),
}
ERRORS = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
SHAPES = [(), (0,), (1,), (2,), (5,), (2, 3), (0, 3)]


def outcome(call, *args):
    """Return the result of a call, or the class of its error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(*args)
        except ERRORS as error:
            return type(error)


@examples(600)
@given(
    name=st.sampled_from(sorted(CALLS)),
    a=arrays(SHAPES),
    b=arrays([(0,), (1,), (4,), (6,)]),
    k=st.lists(st.integers(-3, 6), max_size=6),
)
def test_results_are_numpys(name, a, b, k):
    expected = outcome(CALLS[name], np, a, b, k)
    found = outcome(CALLS[name], ndx.numpy, ndx.asarray(a), ndx.asarray(b), k)
    if isinstance(expected, type):
        assert isinstance(found, type)
        assert issubclass(found, expected)
    elif isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert_same(found, expected)


@pytest.mark.parametrize("name", ["integers", "normal", "random", "permutation"])
def test_draws_are_numpys(name):
    args = {"integers": (9,), "permutation": (9,)}.get(name, ())
    ours, theirs = ndx.numpy.random.default_rng(5), np.random.default_rng(5)
    for size in (None, 3, (2, 0), (40, 50)):
        more = {} if name == "permutation" else {"size": size}
        found = getattr(ours, name)(*args, **more)
        expected = getattr(theirs, name)(*args, **more)
        assert type(found).__name__ == (
            "NDArray" if isinstance(expected, np.ndarray) else type(expected).__name__
        )
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_an_iterator_is_read_once():
    read = []

    def items():
        for i in range(3):
            read.append(i)
            yield i

    assert ndx.numpy.fromiter(items(), int).tolist() == [0, 1, 2]
    assert read == [0, 1, 2]
    with pytest.raises((TypeError, ValueError)):
        ndx.numpy.fromiter(iter([1, "x"]), float)
    assert ndx.numpy.fromiter(iter(range(10**5)), float).sum() == sum(range(10**5))


def test_counts_of_an_array_that_is_stale():
    with ndx.workspace("loop"):
        x = ndx.arange(3)
        y = ndx.ones(3)
    for call in (
        lambda: ndx.numpy.bincount(x),
        lambda: ndx.numpy.add.at(y, x, 1.0),
        lambda: ndx.numpy.median(y),
        lambda: ndx.numpy.interp(1.0, y, y),
        lambda: ndx.numpy.modf(y),
        lambda: ndx.numpy.maximum.accumulate(y),
    ):
        with pytest.raises(ndx.StaleArrayError):
            call()


@needs_part("loops")
def test_numbers_of_numbers_are_numbers():
    x = ndx.numpy.exp(0.5)
    assert type(x) is type(ndx.numpy.asarray([1.0])[0])
    assert x == np.exp(0.5)
    assert ndx.numpy.sqrt(2) == np.sqrt(2)
    assert type(ndx.numpy.sqrt(2)) is type(x)
    with ndx.numpy.errstate(all="raise"), pytest.raises(FloatingPointError):
        ndx.numpy.log(0)


@pytest.mark.parametrize("error", [ValueError, TimeoutError])
def test_what_interrupts_the_steps_of_a_function_is_raised(error):
    """As by the handler of a signal, which runs between two steps."""
    x = ndx.numpy.arange(3.0)
    ndx.numpy.polyval(x, x)

    def interrupt(frame, event, argument):
        if frame.f_code.co_name == "polyval":
            raise error("time is up")

    previous = sys.getprofile()
    sys.setprofile(interrupt)
    try:
        with pytest.raises(error, match="time is up"):
            ndx.numpy.polyval(x, x)
    finally:
        sys.setprofile(previous)
