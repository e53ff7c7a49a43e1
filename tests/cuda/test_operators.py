"""Operators, methods and protocols of arrays on a GPU."""

import copy
import operator
import pickle

import numpy as np
import pytest

import ndx

VALUES = {
    "float64": [[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]],
    "float32": [[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]],
    "int64": [[1, 2, 3], [7, 5, 6]],
    "int8": [[1, 2, 3], [7, 5, 6]],
    "complex128": [[1 + 1j, 2, 3], [4, 5j, 6]],
}
pytestmark = pytest.mark.usefixtures("gpu")


def both(dtype="float64"):
    """Return the same array on the CPU and on the GPU."""
    x = ndx.asarray(VALUES[dtype], dtype=dtype)
    return x, x.to_device("cuda:0")


def same(found, expected):
    assert found.device == "cuda:0"
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(
        np.asarray(found.to_device("cpu")), np.asarray(expected), rtol=1e-6
    )


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "eq", "ne"])
def test_binary_operators(name, dtype):
    function = getattr(operator, name)
    x, g = both(dtype)
    same(function(g, g), function(x, x))
    same(function(g, 2), function(x, 2))
    same(function(2, g), function(2, x))
    same(function(g, np.float32(2)), function(x, np.float32(2)))


@pytest.mark.parametrize("name", ["floordiv", "mod", "lt", "le", "gt", "ge"])
def test_operators_of_real_numbers(name):
    function = getattr(operator, name)
    x, g = both()
    same(function(g, 2.0), function(x, 2.0))
    same(function(2.0, g), function(2.0, x))


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_operators_of_integers(name):
    function = getattr(operator, name)
    x, g = both("int64")
    same(function(g, 2), function(x, 2))
    same(function(2, g), function(2, x))


@pytest.mark.parametrize("name", ["neg", "pos", "abs"])
def test_unary_operators(name):
    x, g = both()
    same(getattr(operator, name)(g), getattr(operator, name)(x))


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ipow"])
def test_in_place(name):
    x, g = both()
    view = g[0]
    assert getattr(operator, name)(g, 2) is g
    same(g, getattr(operator, name)(x, 2))
    same(view, x[0])


def test_in_place_keeps_the_dtype():
    x, g = both("int8")
    with pytest.raises(TypeError, match="in place"):
        g += 1.5
    g += ndx.asarray([1, 2, 3], device="cuda:0")
    x += ndx.asarray([1, 2, 3])
    same(g, x)


def test_python_scalars_that_do_not_fit():
    _, g = both("int8")
    with pytest.raises(OverflowError):
        g + 1000
    with pytest.raises(TypeError):
        ndx.zeros(3, dtype=bool, device="cuda:0") - True


def test_matrix_product():
    x, g = both()
    same(g @ g.T, x @ x.T)
    same(g @ g[0], x @ x[0])
    out = ndx.empty((2, 2), device="cuda:0")
    assert ndx.matmul(g, g.mT, out=out) is out
    same(out, x @ x.T)
    with pytest.raises(ValueError, match="one axis or more"):
        g @ g[0, 0]


def test_out():
    x, g = both()
    out = ndx.empty((2, 3), device="cuda:0")
    assert ndx.exp(g, out=out) is out
    same(out, ndx.exp(x))
    ndx.multiply(g, g[::-1, :], out=g)
    same(g, x * x[::-1, :])
    with pytest.raises(TypeError, match="dtype"):
        ndx.equal(g, g, out=out)
    with pytest.raises(ValueError, match="output has shape"):
        ndx.exp(g[0], out=out)
    with pytest.raises(ValueError, match="different devices"):
        ndx.exp(g, out=ndx.empty((2, 3)))
    with pytest.raises(ValueError, match="read-only"):
        ndx.exp(g, out=ndx.broadcast_to(g[0], (2, 3)))


def test_elements_are_independent():
    _, g = both()
    with ndx.workspace("elements", backend="cuda:0", size="1MiB"):
        found = [g[0, 1], g[0][1], *g[0], g[0, 1, ...], g[:, 1][0, ...]]
        assert {each.workspace for each in found[:5]} == {"elements"}
        assert {each.device for each in found} == {"cuda:0"}
        before = [float(each) for each in found]
        g += 1
        after = [float(each) for each in found]
    assert [a - b for a, b in zip(after, before, strict=True)] == [0] * 5 + [1] * 2
    g[0, 1] += 2
    assert float(g[0, 1]) == after[-1] + 2
    g[0, 0], g[0, 1] = g[0, 1], g[0, 0]
    assert float(g[0, 0]) == after[-1] + 2


def test_lists_are_no_operands():
    _, g = both()
    for other in ([1, 2, 3], (1, 2, 3)):
        for compute in (operator.add, operator.mul, operator.eq, operator.imul):
            with pytest.raises(TypeError, match="asarray"):
                compute(g, other)


def test_views_are_of_the_same_memory():
    x, g = both()
    for view in (g[1], g.T, g[:, ::2], ndx.reshape(g, (3, 2)), ndx.flip(g), g[None]):
        assert view.device == "cuda:0"
        assert view.backend is g.backend
    g[0, 0] = 9.0
    x[0, 0] = 9.0
    same(ndx.reshape(g, (3, 2)), ndx.reshape(x, (3, 2)))
    same(ndx.reshape(g.T, (6,)), ndx.reshape(x.T, (6,)))
    same(ndx.flip(g), ndx.flip(x))
    same(ndx.permute_dims(g, (1, 0))[1:], ndx.permute_dims(x, (1, 0))[1:])


def test_indexing_by_arrays():
    x, g = both()
    rows = ndx.asarray([1, 0, 1])
    same(g[rows.to_device("cuda:0")], x[rows])
    same(g[[1, 0]], x[[1, 0]])
    same(g[g > 1], x[x > 1])
    same(g[:, [True, False, True]], x[:, [True, False, True]])
    with pytest.raises(ValueError, match="different devices"):
        g[rows]
    with pytest.raises(IndexError):
        g[["a"]]


def test_assignment():
    x, g = both()
    for target, device in ((x, "cpu"), (g, "cuda:0")):
        target[0] = 7
        target[:, 1] = ndx.asarray([8.0, 9.0], device=device)
        target[target > 8] = 0
        target[[1], [2]] = -1.0
    same(g, x)
    with pytest.raises(ValueError, match="different devices"):
        g[0] = ndx.ones(3)
    with pytest.raises(ValueError, match="different devices"):
        x[0] = ndx.ones(3, device="cuda:0")
    with pytest.raises(TypeError, match="can't be stored"):
        g[0] = 1j
    with pytest.raises(TypeError, match="can't be stored"):
        g[0] = ndx.ones(3, dtype=ndx.complex128, device="cuda:0")


def test_nothing_crosses_devices():
    x, g = both()
    for call in (
        lambda: g + x,
        lambda: x * g,
        lambda: g + np.ones(3),
        lambda: np.ones(3) + g,
        lambda: g @ x.T,
        lambda: ndx.concat([g, x]),
        lambda: ndx.where(g > 0, g, x),
        lambda: operator.iadd(x, g),
    ):
        with pytest.raises(ValueError, match="different devices"):
            call()


def test_scalars_and_text_are_fetched():
    x, g = both()
    assert float(g[0, 0]) == 1.5
    assert int(g[1, 1]) == 4
    assert bool(g[0, 0])
    assert complex(g[0, 0]) == 1.5
    assert operator.index(ndx.asarray(3, device="cuda:0")) == 3
    assert g[0, 1].item() == -2.0
    assert g.tolist() == x.tolist()
    assert [row.tolist() for row in g] == x.tolist()
    assert 4.0 in g
    assert 5.0 not in g
    assert str(g) == str(x)
    assert repr(g) == repr(x)[:-1] + ", backend='cuda:0')"
    assert f"{g[0, 0]:.2f}" == "1.50"
    with pytest.raises(TypeError):
        float(g)


def test_what_the_cpu_would_read_is_refused():
    _, g = both()
    for call in (
        lambda: np.asarray(g),
        lambda: memoryview(g),
        lambda: g.__array__(),
    ):
        with pytest.raises(TypeError, match="to_device"):
            call()
    assert not hasattr(g, "__array_interface__")
    with pytest.raises(ValueError, match="to_device"):
        np.sin(g[None], where=np.ones((1, 2, 3), bool))


def test_numpy_ufuncs_compute_there():
    x, g = both()
    same(np.exp(g), ndx.exp(x))
    same(np.add(g, 1), x + 1)


def test_copies_and_pickles():
    x, g = both()
    for made in (copy.copy(g), copy.deepcopy(g.T).T, ndx.asarray(g, copy=True)):
        same(made, x)
        made[...] = 0
    same(g, x)
    loaded = pickle.loads(pickle.dumps(g))
    assert loaded.device == "cpu"
    assert ndx.all(loaded == x)
    with ndx.use("cuda:0"):
        same(pickle.loads(pickle.dumps(g)), x)
        same(pickle.loads(pickle.dumps(x)), x)


def test_astype():
    x, g = both()
    same(ndx.astype(g, ndx.int8), ndx.astype(x, ndx.int8))
    assert ndx.astype(g, g.dtype, copy=False) is g
    assert ndx.astype(g, ndx.float32, device="cpu").device == "cpu"
    same(ndx.astype(x, ndx.float32, device="cuda:0"), ndx.astype(x, ndx.float32))
    with pytest.raises(TypeError, match="imaginary"):
        ndx.astype(both("complex128")[1], ndx.float64)


def test_close():
    _, g = both()
    g.close()
    assert not g.in_scope
    for call in (lambda: g + 1, lambda: g[0], lambda: float(g[0]), lambda: ndx.sum(g)):
        with pytest.raises(ndx.StaleArrayError, match="closed"):
            call()
    assert repr(g).startswith("<closed")
