"""Arithmetic on shapes, strides and axes, as it shows in arrays: NumPy's, exactly."""

import numpy as np
import pytest
from helpers import arrays, dtypes, patterns
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx


@given(patterns.shapes(max_dims=5), st.sampled_from(["int8", "complex128"]))
def test_strides_of_new_arrays(shape, dtype):
    x = ndx.empty(shape, dtype=dtype)
    expected = np.empty(shape, dtype=dtype)
    assert x.shape == expected.shape
    assert (x.size, x.nbytes, x.ndim) == (expected.size, expected.nbytes, expected.ndim)
    if x.size:
        # Of an axis of length 1 any stride will do.
        for length, stride, other in zip(
            shape, x.strides, expected.strides, strict=True
        ):
            assert length == 1 or stride == other


@given(arrays.pairs(max_dims=4))
def test_views_are_as_contiguous_as_numpys(pair):
    _, x = pair
    view = np.asarray(x)
    assert memoryview(x).c_contiguous == view.flags.c_contiguous
    assert memoryview(x).f_contiguous == view.flags.f_contiguous


@given(arrays.pairs(max_dims=4), st.data())
def test_reshaping_makes_a_view_where_numpy_does(pair, data):
    _, x = pair
    view = np.asarray(x)
    count = data.draw(st.sampled_from([(-1,), (x.size,), (1, -1, 1)]))
    shape = count if x.size else (x.size,)
    if data.draw(st.booleans()):
        shape = tuple(data.draw(st.permutations(x.shape)))
    if data.draw(st.booleans()) and x.ndim > 1 and x.size:
        at = data.draw(st.integers(0, x.ndim - 2))
        shape = (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
    try:
        expected = view.reshape(shape, copy=False)
    except ValueError:
        with pytest.raises(ValueError, match="copy=False"):
            ndx.reshape(x, shape, copy=False)
        expected = view.reshape(shape)
    else:
        assert np.shares_memory(ndx.reshape(x, shape, copy=False), x) == bool(x.size)
    assert_same(ndx.reshape(x, shape), expected)


@given(arrays.pairs(max_dims=4), st.sampled_from(["int8", "float64"]))
def test_results_keep_the_order_of_axes(pair, dtype):
    _, x = pair
    like = ndx.empty_like(x, dtype=dtype)
    expected = np.empty_like(np.asarray(x), dtype=dtype)
    if x.size:
        found = [s for s, n in zip(like.strides, x.shape, strict=True) if n > 1]
        wanted = [s for s, n in zip(expected.strides, x.shape, strict=True) if n > 1]
        assert found == wanted


@given(st.lists(patterns.shapes(max_dims=3, max_side=3), max_size=4))
def test_broadcasting_shapes(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="can't be broadcast together"):
            ndx.broadcast_shapes(*shapes)
    else:
        assert ndx.broadcast_shapes(*shapes) == expected


SHAPES = {
    "3": (3,),
    "numpy's int": (np.int64(3), (3,)),
    "list": ([2, 3], (2, 3)),
    "numpy's array": (np.array([2, 3]), (2, 3)),
    "array": (ndx.asarray([2, 3]), (2, 3)),
    "range": (range(3), (0, 1, 2)),
    "none": ((), ()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_all_kinds(name):
    given_, expected = SHAPES[name] if name != "3" else (3, (3,))
    assert ndx.empty(given_).shape == expected


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        (-1, ValueError, "negative length -1 on axis 0"),
        ((2, -3), ValueError, "negative length -3 on axis 1"),
        (2**63, ValueError, "beyond the address space"),
        ((2**40, 2**40), ValueError, "with 8 bytes an element is beyond"),
        ((0, 2**40, 2**40), ValueError, "beyond the address space"),
        ((1,) * 65, ValueError, "65 axes; an array has at most 64"),
        (1.5, TypeError, "shape must be an int or a sequence of ints, not float"),
        ((1.5,), TypeError, "a length of type float"),
        ("3", TypeError, "a length of type str"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_no_shapes(shape, error, message):
    with pytest.raises(error, match=message):
        ndx.empty(shape)


def test_views_beyond_the_address_space():
    x = ndx.ones(1, dtype="int8")
    for shape in ((2**62, 2**62), (2**40, 2**40, 0)):
        with pytest.raises(ValueError, match=r"\) is beyond the address space"):
            ndx.broadcast_to(x, shape)


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_the_bytes_of_a_view_fit_the_address_space(dtype):
    x = ndx.ones(1, dtype=dtype)
    most = (2**63 - 1) // x.itemsize
    view = ndx.broadcast_to(x, (most,))
    assert (view.size, view.nbytes) == (most, most * x.itemsize)
    assert memoryview(view).nbytes == view.nbytes
    for shape in ((most + 1,), (most // 2 + 1, 2), (1, most + 1, 1)):
        with pytest.raises(ValueError, match="beyond the address space"):
            ndx.broadcast_to(x, shape)
    with pytest.raises(ValueError, match="beyond the address space"):
        ndx.broadcast_arrays(view, ndx.ones((2, 1)))
    with pytest.raises(ValueError, match="beyond the address space"):
        ndx.concat([view, view, view])


def test_steps_that_do_not_fit():
    x = ndx.asarray(np.arange(6.0).reshape(2, 3))
    for step in (2**61, 2**62, 2**63 - 1, 2**70):
        assert x[::step].tolist() == [[0.0, 1.0, 2.0]]
        assert x[0, ::step].tolist() == [0.0]
        assert x[0, ::-step].tolist() == [2.0]
        assert x[5::step].shape == (0, 3)
        assert (x[:, ::step] + 1).tolist() == [[1.0], [4.0]]


def test_shapes_broadcast_beyond_the_address_space():
    with pytest.raises(ValueError, match="beyond the address space"):
        ndx.broadcast_shapes((2**40, 1), (1, 2**40))


@pytest.mark.parametrize("strides", [(2**62,), (-(2**62),), (2**61,)])
def test_strides_of_others_that_do_not_fit(strides):
    a = np.lib.stride_tricks.as_strided(np.ones(3), (4,), strides)
    with pytest.raises(ValueError, match="reaches beyond the address space"):
        ndx.asarray(a)


@pytest.mark.parametrize("step", [2**61, -(2**62), 2**63 - 1, -(2**63)])
def test_the_step_of_one_element_is_not_used(step):
    a = np.lib.stride_tricks.as_strided(np.arange(6.0), (1, 3, 1), (step, 8, step))
    assert (ndx.asarray(a, copy=False) + 1).tolist() == [[[1.0], [2.0], [3.0]]]
    x = ndx.arange(6, dtype="int8")[:: 2**63 - 1]
    assert ndx.asarray(np.asarray(x), copy=False).tolist() == [0]


# 65 axes, wherever they come from.
Y = ndx.broadcast_to(ndx.ones(1), (1,) * 64)
TOO_MANY = {
    "empty": lambda: ndx.empty((1,) * 65),
    "reshape": lambda: ndx.reshape(Y, (1,) * 65),
    "broadcast_to": lambda: ndx.broadcast_to(Y, (1,) * 65),
    "broadcast_shapes": lambda: ndx.broadcast_shapes((1,) * 65),
    "expand_dims": lambda: ndx.expand_dims(Y, 0),
    "stack": lambda: ndx.stack([Y]),
    "meshgrid": lambda: ndx.meshgrid(*[ndx.ones(1)] * 65),
    "tensordot": lambda: ndx.tensordot(Y, ndx.ones(1), axes=0),
    "x[None]": lambda: Y[None],
    "x[..., None]": lambda: Y[..., None],
    "x[None] = 1": lambda: ndx.ones((1,) * 64).__setitem__((None, ...), 1.0),
    "random": lambda: ndx.random.default_rng(0).random((1,) * 65),
    "integers": lambda: ndx.random.default_rng(0).integers(9, size=(1,) * 65),
    "choice": lambda: ndx.random.default_rng(0).choice(9, (1,) * 65),
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_more_axes_than_an_array_has(name):
    with pytest.raises(ValueError, match=r"65 axes; an array has at most 64"):
        TOO_MANY[name]()


def test_an_index_may_take_an_axis_and_add_one():
    assert Y[0, None].shape == (1,) * 64
    assert Y[0, 0, None, None].shape == (1,) * 64
    with pytest.raises(IndexError, match="65 axes"):
        Y[0, None, None]


def test_a_view_of_as_many_bytes_as_there_can_be_is_shown():
    x = ndx.broadcast_to(ndx.asarray(1.0), ((2**63 - 1) // 8,))
    assert f"{x}" == str(x) == "[1. 1. 1. ... 1. 1. 1.]"
    assert repr(x) == "NDArray([1., 1., 1., ..., 1., 1., 1.])"
    with pytest.raises(ValueError, match="beyond the address space"):
        ndx.broadcast_to(ndx.asarray(1.0), (2**61 + 1,))
