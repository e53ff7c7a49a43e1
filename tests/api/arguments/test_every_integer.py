"""Integers whose reading does something, wherever a function takes one."""

import contextlib

import numpy as np
import pytest
from helpers.calls import results
from helpers.hostile import Index

import ndx

X = np.arange(1.0, 28.0).reshape(3, 3, 3)
# Of what takes an integer: a call with an array of shape (3, 3, 3) and that.
CALLS = {
    "x[i]": lambda x, i: x[i],
    "x[i, :]": lambda x, i: x[i, :],
    "x[..., i]": lambda x, i: x[..., i],
    "x[i:]": lambda x, i: x[i:],
    "x[:i]": lambda x, i: x[:i],
    "x[::i]": lambda x, i: x[::i],
    "x[0, :i]": lambda x, i: x[0, :i],
    "x[i, [0]]": lambda x, i: x[i, [0]],
    "x[i] =": lambda x, i: x.__setitem__(i, 5.0),
    "x[:i] =": lambda x, i: x.__setitem__(slice(i), ndx.ones(3)),
    "argmax": lambda x, i: ndx.argmax(x, axis=i),
    "argmin": lambda x, i: ndx.argmin(x, axis=i),
    "argsort": lambda x, i: ndx.argsort(x, axis=i),
    "broadcast_to": lambda x, i: ndx.broadcast_to(x[:1], (i, 3, 3)),
    "concat": lambda x, i: ndx.concat([x, x], axis=i),
    "count_nonzero": lambda x, i: ndx.count_nonzero(x, axis=i),
    "cumulative_prod": lambda x, i: ndx.cumulative_prod(x, axis=i),
    "cumulative_sum": lambda x, i: ndx.cumulative_sum(x, axis=i),
    "diff": lambda x, i: ndx.diff(x, axis=i),
    "diff n": lambda x, i: ndx.diff(x, n=i),
    "empty": lambda x, i: ndx.zeros(i) + x[0, 0, 0],
    "expand_dims": lambda x, i: ndx.expand_dims(x, i),
    "eye": lambda x, i: ndx.eye(i) + x[0, 0, 0],
    "eye k": lambda x, i: ndx.eye(3, 3, k=i) + x,
    "flip": lambda x, i: ndx.flip(x, axis=i),
    "full": lambda x, i: ndx.full((2, i), 7.0) + x[0, 0, 0],
    "linspace": lambda x, i: ndx.linspace(0.0, 1.0, i) + x[0, 0, 0],
    "moveaxis": lambda x, i: ndx.moveaxis(x, i, 0),
    "moveaxis to": lambda x, i: ndx.moveaxis(x, 0, (i,)),
    "permute_dims": lambda x, i: ndx.permute_dims(x, (i, 0, 2)),
    "repeat": lambda x, i: ndx.repeat(x, i),
    "repeat axis": lambda x, i: ndx.repeat(x, 2, axis=i),
    "reshape": lambda x, i: ndx.reshape(x, (i, 27)),
    "roll": lambda x, i: ndx.roll(x, i),
    "roll axis": lambda x, i: ndx.roll(x, 1, axis=(i,)),
    "sort": lambda x, i: ndx.sort(x, axis=i),
    "squeeze": lambda x, i: ndx.squeeze(x[:, :1], i),
    "stack": lambda x, i: ndx.stack([x, x], axis=i),
    "take": lambda x, i: ndx.take(x, ndx.asarray([0, 2]), axis=i),
    "take_along_axis": lambda x, i: ndx.take_along_axis(x, ndx.argsort(x), axis=i),
    "tensordot": lambda x, i: ndx.tensordot(x, x, axes=i),
    "tensordot axes": lambda x, i: ndx.tensordot(x, x, axes=([i], [0])),
    "tile": lambda x, i: ndx.tile(x, i),
    "tile axes": lambda x, i: ndx.tile(x, (2, i)),
    "tril": lambda x, i: ndx.tril(x, k=i),
    "triu": lambda x, i: ndx.triu(x, k=i),
    "unstack": lambda x, i: ndx.unstack(x, axis=i),
    "vecdot": lambda x, i: ndx.vecdot(x, x, axis=i),
    **{
        f"{name}{label}": lambda x, i, name=name, many=many: getattr(ndx, name)(
            x, axis=(i,) if many else i
        )
        for name in ["all", "any", "max", "mean", "min", "prod", "std", "sum", "var"]
        for label, many in (("", False), (" of many", True))
    },
    "linalg.cross": lambda x, i: ndx.linalg.cross(x, x, axis=i),
    "linalg.diagonal": lambda x, i: ndx.linalg.diagonal(x, offset=i),
    "linalg.matrix_power": lambda x, i: ndx.linalg.matrix_power(x, i),
    "linalg.trace": lambda x, i: ndx.linalg.trace(x, offset=i),
    "linalg.vecdot": lambda x, i: ndx.linalg.vecdot(x, x, axis=i),
    "linalg.vector_norm": lambda x, i: ndx.linalg.vector_norm(x, axis=i),
    **{
        f"fft.{name}{label}": lambda x, i, name=name, key=key: getattr(ndx.fft, name)(
            x, **{key: i}
        )
        for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
        for label, key in ((" n", "n"), (" axis", "axis"))
    },
    **{
        f"fft.{name}": lambda x, i, name=name: getattr(ndx.fft, name)(
            x, s=(i, 2), axes=(i, 0)
        )
        for name in ["fftn", "ifftn", "rfftn", "irfftn"]
    },
    "fft.fftshift": lambda x, i: ndx.fft.fftshift(x, axes=i),
    "fft.ifftshift": lambda x, i: ndx.fft.ifftshift(x, axes=(i,)),
    "fft.fftfreq": lambda x, i: ndx.fft.fftfreq(i) + x[0, 0, 0],
    "fft.rfftfreq": lambda x, i: ndx.fft.rfftfreq(i) + x[0, 0, 0],
    "random.random": lambda x, i: rng().random((i, 2)) + x[0, 0, 0],
    "random.normal": lambda x, i: rng().normal(size=i) + x[0, 0, 0],
    "random.integers": lambda x, i: rng().integers(9, size=(i,)) + x[0, 0, 0],
    "random.permutation": lambda x, i: rng().permutation(x, axis=i),
    "random.choice": lambda x, i: rng().choice(x, i),
    "random.choice axis": lambda x, i: rng().choice(x, 2, axis=i),
    "random.shuffle": lambda x, i: rng().shuffle(x, axis=i),
}
# They read an integer once for each of two arguments.
TWICE = {"fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn"}


def rng():
    return ndx.random.default_rng(7)


def fresh():
    return ndx.asarray(X, copy=True)


def call(name, x, i):
    """Return the results as NumPy's; what was written to, where there are none."""
    found = CALLS[name](x, i)
    return [np.array(x if item is None else item) for item in results(found)]


def same(found, expected):
    return len(found) == len(expected) and all(
        a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("name", CALLS)
def test_what_is_said_first_counts(name):
    liar = Index(1, 0, 7, -5, 2**62)
    if name in TWICE:
        liar = Index(1, 1, 7, -5, 2**62)
    assert same(call(name, fresh(), liar), call(name, fresh(), 1))
    assert liar.asked == 1 + (name in TWICE)


class Raised(Exception):
    """Not one that anything in between knows."""


@pytest.mark.parametrize("name", CALLS)
def test_what_it_raises_comes_out(name):
    def fail():
        raise Raised

    x = fresh()
    with pytest.raises(Raised):
        CALLS[name](x, Index(1, before=fail))
    assert np.array_equal(np.asarray(x), X)
    # Nothing holds it.
    x.close()


HUGE = [2**31, 2**31 - 1, 2**32 + 1, 2**62, 2**63 - 1, 2**63, 2**64 + 1, 10**30]
NUMBERS = {str(n): n for n in [*HUGE, *[-n for n in HUGE], -(2**63)]}
NUMBERS |= {"of 5000 digits": 10**5000, "minus 5000 digits": -(10**5000)}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", CALLS)
def test_numbers_that_are_too_large(name, number):
    x = fresh()
    with ndx.use("host", limit="64MiB"):
        try:
            call(name, x, Index(NUMBERS[number]))
        except (ValueError, IndexError, OverflowError, MemoryError) as error:
            said = str(error)
        else:
            return
    assert said
    for unclear in ("ssize_t", "C long", "arr.size", "Exceeds", "Maximum allowed"):
        assert unclear not in said


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrong", ["a", 1.5, None, [[1]], {1: 2}, object()])
def test_what_is_no_integer(name, wrong):
    # Some have a meaning: axis=None, an index that is a list, ...
    with contextlib.suppress(TypeError, ValueError, IndexError):
        call(name, fresh(), wrong)


@pytest.mark.parametrize("name", CALLS)
def test_it_closes_the_array(name):
    x = fresh()

    def close():
        with contextlib.suppress(BufferError):
            x.close()

    try:
        found = call(name, x, Index(1, before=close))
    except ndx.StaleArrayError:
        return
    assert same(found, call(name, fresh(), 1))


@pytest.mark.parametrize("name", CALLS)
def test_it_ends_the_scope(name):
    workspace = ndx.workspace("ends", size="256KiB")
    workspace.__enter__()
    x, others = fresh(), []

    def end():
        if x.in_scope:
            workspace.__exit__(None, None, None)
            with workspace:
                # Over all that is not kept for a view.
                others.append(ndx.full(4000, -1.0).detach())

    try:
        found = call(name, x, Index(1, before=end))
    except ndx.StaleArrayError:
        found = None
    finally:
        if not others:
            workspace.__exit__(None, None, None)
    if found is not None:
        assert same(found, call(name, fresh(), 1))
    for other in others:
        assert bool(ndx.all(other == -1.0))
