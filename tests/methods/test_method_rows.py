"""Methods, and the functions of NumPy that do the same, read one row."""

import inspect

import numpy as np
import pytest
from helpers.compare import assert_same
from ndx._methods.numpy_function_table import parameters_of

import ndx
import ndx.numpy
from ndx._methods.numpy_methods import NumPyMethods

METHODS = [name for name in vars(NumPyMethods) if not name.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_the_row_has_the_parameters_of_the_signature(name):
    # In NumPy 2.2 and 2.3 arrays have a `ptp` that only raises AttributeError.
    method = None if name == "ptp" else getattr(np.ndarray, name, None)
    row = method or getattr(np, name)
    signature = inspect.signature(getattr(ndx.NDArray, name))
    names = [
        each.name
        for each in signature.parameters.values()
        if each.kind is not each.VAR_KEYWORD
    ]
    assert list(parameters_of(row))[1:] == names[1:]


@pytest.mark.parametrize(
    "call",
    [
        lambda np, x: np.reshape(x, (3, 2), "F"),
        lambda np, x: np.reshape(x, shape=6),
        lambda np, x: np.transpose(x, axes=(1, 0)),
        lambda np, x: np.clip(x, 1, 3),
        lambda np, x: np.clip(x, a_min=1, a_max=3),
        lambda np, x: np.clip(x, min=1, max=3),
        lambda np, x: np.clip(x, None, 3),
        lambda np, x: np.clip(a=x, a_min=1, a_max=None),
        lambda np, x: np.sum(a=x, axis=1, keepdims=True),
        lambda np, x: np.sum(x, keepdims=np._NoValue),
        lambda np, x: np.sum(x, axis=0, initial=2.0),
        lambda np, x: np.squeeze(x[:1], axis=0),
        lambda np, x: np.squeeze([[1.0, 2.0]]),
        lambda np, x: np.max([[1, 2], [3, 4]], 1),
        lambda np, x: np.dot(x[0], x[1]),
        lambda np, x: np.ptp(x, 1, keepdims=True),
        lambda np, x: np.std(x, ddof=1),
        lambda np, x: np.std(x, correction=1),
        lambda np, x: np.argsort(x, kind="heapsort"),
        lambda np, x: x.choose(([1.0] * 3,) * 6),
        lambda np, x: x.reshape(np.int64(6)),
        lambda np, x: x.reshape([3, -1], order="F"),
        lambda np, x: x.transpose([1, 0]),
        lambda np, x: x.transpose(np.int64(1), 0),
        lambda np, x: x.clip(max=3),
        lambda np, x: x.clip(1, dtype=float),
        lambda np, x: x.take([1, 2], mode="clip"),
        lambda np, x: x.conj(None),
        lambda np, x: x.all(0, out=np.zeros(3, bool)),
        lambda np, x: x.any(axis=0, out=np.zeros(3, bool)),
        lambda np, x: x.max(1, out=np.zeros(2, int)),
        lambda np, x: np.cumsum(x, 0, None, np.zeros((2, 3), int)),
        lambda np, x: x.setfield(value=1, dtype="int32") or x,
    ],
)
def test_arguments_in_all_places_are_numpys(call):
    found, expected = [call(n, n.arange(6).reshape(2, 3)) for n in (ndx.numpy, np)]
    assert_same(found, expected)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda np, x: np.clip(x, 1, 3, min=1), ValueError),
        (lambda np, x: np.clip(x, 1), TypeError),
        (lambda np, x: np.clip(x, None, max=3), TypeError),
        (lambda np, x: np.sum(x, 0, axis=1), TypeError),
        (lambda np, x: np.sum(), TypeError),
        (lambda np, x: np.reshape(x, 6, copy=True, newshape=3), TypeError),
        (lambda np, x: np.trace(x, nowhere=1), TypeError),
        (lambda np, x: x.sum(0, None, None, False, 0, True, 1), TypeError),
        (lambda np, x: x.reshape(), TypeError),
        (lambda np, x: x.T.reshape(6, copy=0), ValueError),
        (lambda np, x: x.fill([1, 2, 3]), TypeError),
        (lambda np, x: x.fill(np.ones(3)), ValueError),
        (lambda np, x: x.searchsorted(), TypeError),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    for namespace in ndx.numpy, np:
        with pytest.raises(error):
            call(namespace, namespace.arange(6).reshape(2, 3))


def test_an_output_without_axes_is_refused_in_its_place_too():
    """NumPy (2.5 and before) crashes on it."""
    x, out = ndx.numpy.zeros(5), ndx.numpy.zeros(())
    for function in (ndx.numpy.cumsum, ndx.numpy.cumprod, ndx.NDArray.cumsum):
        with pytest.raises(ValueError, match="out has no axes"):
            function(x, -1, None, out)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
@pytest.mark.parametrize("decimals", [0, 2])
def test_rounded_elements_are_never_the_operands(dtype, decimals):
    x = ndx.asarray([[1, 2, 3], [4, 5, 6]], dtype=dtype)
    for operand in (x, x.T, x[:, ::2], x[:0]):
        found = operand.round(decimals)
        assert not np.shares_memory(np.asarray(found), np.asarray(operand))
        assert found.tolist() == operand.tolist()
        assert found.dtype == operand.dtype
