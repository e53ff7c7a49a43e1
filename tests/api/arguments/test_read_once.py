"""Arguments whose reading runs the user's code: what was read first counts."""

import contextlib
import gc
import itertools

import numpy as np
import pytest
from helpers.hostile import Index

import ndx

X = np.arange(24.0).reshape(2, 3, 4)
X_ = ndx.asarray(X)

# What takes a shape, given the shape.
SHAPES = {
    "empty": ndx.empty,
    "zeros": ndx.zeros,
    "ones": ndx.ones,
    "full": lambda shape: ndx.full(shape, 7.0),
    "reshape": lambda shape: ndx.reshape(ndx.ones(2), shape),
    "broadcast_to": lambda shape: ndx.broadcast_to(ndx.ones(1), shape),
    "broadcast_shapes": lambda shape: ndx.empty(ndx.broadcast_shapes(shape)),
    "random.normal": lambda shape: ndx.random.default_rng(0).normal(size=shape),
}
# What takes axes, given an array and them.
AXES = {
    "sum": lambda x, axes: ndx.sum(x, axis=axes),
    "mean": lambda x, axes: ndx.mean(x, axis=axes),
    "var": lambda x, axes: ndx.var(x, axis=axes),
    "std": lambda x, axes: ndx.std(x, axis=axes),
    "max": lambda x, axes: ndx.max(x, axis=axes),
    "all": lambda x, axes: ndx.all(x, axis=axes),
    "count_nonzero": lambda x, axes: ndx.count_nonzero(x, axis=axes),
    "flip": lambda x, axes: ndx.flip(x, axis=axes),
    "roll": lambda x, axes: ndx.roll(x, 1, axis=axes),
    "expand_dims": lambda x, axes: ndx.expand_dims(x, axes),
    "moveaxis": lambda x, axes: ndx.moveaxis(x, axes, (0, 1)),
    "permute_dims": lambda x, axes: ndx.permute_dims(x, axes),
    "fft.fftn": lambda x, axes: ndx.fft.fftn(x, axes=axes),
    "linalg.vector_norm": lambda x, axes: ndx.linalg.vector_norm(x, axis=axes),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("more", [3, 200, 5000])
def test_a_shape_that_grows_while_it_is_read(name, more):
    shape = [Index(1, before=lambda: shape.extend([7] * more)), 2]
    assert SHAPES[name](shape).shape == (1, 2)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_that_shrinks_while_it_is_read(name):
    def shrink():
        del shape[1:]
        gc.collect()

    shape = [Index(1, before=shrink), Index(2), Index(1)]
    assert SHAPES[name](shape).shape == (1, 2, 1)


@pytest.mark.parametrize("name", AXES)
@pytest.mark.parametrize("change", [list.clear, lambda items: items.extend([0] * 99)])
def test_axes_that_change_while_they_are_read(name, change):
    call = AXES[name]
    axes = [0, 1, 2] if name == "permute_dims" else [0, 2]
    expected = call(ndx.asarray(X), axes)
    given = [Index(axes[0], before=lambda: change(given)), *axes[1:]]
    result = call(ndx.asarray(X), given)
    assert result.shape == expected.shape
    assert ndx.all(result == expected)


@pytest.mark.parametrize("name", AXES)
def test_each_axis_is_asked_for_once(name):
    axes = [Index(0, 1), Index(2, 0)]
    plain = [0, 2]
    if name == "permute_dims":
        axes, plain = [Index(0, 0), Index(1, 0), Index(2, 0)], [0, 1, 2]
    result, expected = AXES[name](ndx.asarray(X), axes), AXES[name](X_, plain)
    assert result.shape == expected.shape
    assert ndx.all(result == expected)
    assert {axis.asked for axis in axes} == {1}


def test_axes_that_change_do_not_reach_beyond_the_array():
    x = ndx.permute_dims(ndx.ones((1000, 2)), (Index(0, 0), Index(1, 0)))
    assert (x.shape, x.strides) == ((1000, 2), (16, 8))


@pytest.mark.parametrize("name", ["empty", "reshape", "broadcast_to"])
def test_shapes_that_do_not_end(name):
    with pytest.raises(ValueError, match="65 axes; an array has at most 64"):
        SHAPES[name](itertools.repeat(1))


@pytest.mark.parametrize("name", ["sum", "flip", "expand_dims", "permute_dims"])
def test_axes_that_do_not_end(name):
    with pytest.raises((TypeError, ValueError), match=r"twice|permutation|axes|tuple"):
        AXES[name](X_, itertools.repeat(0))


# Calls that read an integer after they have looked at their array.
INDEXED = {
    "x[i]": lambda x, i: x[i],
    "x[:i]": lambda x, i: x[:i],
    "x[0, i]": lambda x, i: x[0, i],
    "x[i, :, [0]]": lambda x, i: x[i, :, [0]],
    "x[i] =": lambda x, i: x.__setitem__((i, 0), 1.0),
    "reshape": lambda x, i: ndx.reshape(x, (i, 2, 12), copy=True),
    "take": lambda x, i: ndx.take(x, ndx.asarray([0]), axis=i),
    "sum": lambda x, i: ndx.sum(x, axis=i),
    "var": lambda x, i: ndx.var(x, axis=(i,)),
    "repeat": lambda x, i: ndx.repeat(x, i),
    "tile": lambda x, i: ndx.tile(x, (i,)),
    "roll": lambda x, i: ndx.roll(x, i),
    "sort": lambda x, i: ndx.sort(x, axis=i),
    "argmax": lambda x, i: ndx.argmax(x, axis=i),
    "tril": lambda x, i: ndx.tril(x, k=i),
    "diff": lambda x, i: ndx.diff(x, n=i),
    "concat": lambda x, i: ndx.concat([x, x], axis=i),
    "cumulative_sum": lambda x, i: ndx.cumulative_sum(x, axis=i),
    "fft.fft": lambda x, i: ndx.fft.fft(x, n=i),
    "linalg.matrix_power": lambda x, i: ndx.linalg.matrix_power(x[:, :, :3], i),
}


@pytest.mark.parametrize("name", INDEXED)
def test_an_array_that_is_closed_while_an_argument_is_read(name):
    expected = INDEXED[name](ndx.asarray(X, copy=True), 1)
    x = ndx.asarray(X, copy=True)

    def close():
        with contextlib.suppress(BufferError):
            x.close()

    try:
        result = INDEXED[name](x, Index(1, before=close))
    except ndx.StaleArrayError:
        return
    # It was read before, or a view of it could not be closed.
    if expected is not None:
        assert np.array_equal(np.asarray(result), np.asarray(expected))


@pytest.mark.parametrize("name", INDEXED)
def test_a_scope_that_ends_while_an_argument_is_read(name):
    expected = INDEXED[name](ndx.asarray(X, copy=True), 1)
    workspace = ndx.workspace("hostile", size="64KiB")
    workspace.__enter__()
    x = ndx.asarray(X, copy=True)

    def end():
        if x.in_scope:
            workspace.__exit__(None, None, None)
            with workspace:
                ndx.full(1000, 5.0)

    try:
        result = INDEXED[name](x, Index(1, before=end))
        if expected is not None:
            assert np.array_equal(np.asarray(result), np.asarray(expected))
    except ndx.StaleArrayError:
        pass
    finally:
        if x.in_scope:
            workspace.__exit__(None, None, None)


def test_arrays_that_are_closed_while_others_are_taken():
    def arrays():
        x = ndx.ones(3)
        yield x
        x.close()
        yield ndx.ones(3)

    for join in (ndx.concat, ndx.stack):
        with pytest.raises(ndx.StaleArrayError, match="closed"):
            join(arrays())


class Sequence:
    """Closes an array when it is made one itself."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        self.x.close()
        return np.ones(3)


def test_a_value_that_closes_what_it_is_stored_in():
    class Closing(complex):
        def __complex__(self):
            x.close()
            return 1j

    x = ndx.zeros(3, dtype=ndx.complex128)
    with pytest.raises(ndx.StaleArrayError):
        x[...] = Sequence(x)
    x = ndx.zeros(3, dtype=ndx.complex64)
    x[...] = Closing(2j)
    assert x[0] == 2j or not x.in_scope
