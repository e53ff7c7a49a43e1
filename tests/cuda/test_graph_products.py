"""Matrix products in captured graphs: cuBLAS, called by ndx."""

import ctypes
import ctypes.util
import sys
import types

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx._cuda import capture
from ndx._cuda import cublas as bindings
from ndx.backends import _cupy

from .graphs import counts, full
from .stand_in import cublas

DTYPES = ["float32", "float64", "complex64", "complex128", "int32"]
lengths = st.integers(0, 4)


@pytest.fixture
def lanes(gpu):
    """Let no handle of cuBLAS's be there yet."""
    before, capture.Lane.idle = capture.Lane.idle, {}
    cublas.calls.clear()
    yield
    capture.Lane.idle = before
    cublas.failing.clear()


@st.composite
def operands(draw):
    """Draw shapes of two arrays that can be multiplied, and how each is laid out."""
    rows, inner, columns = draw(lengths), draw(lengths), draw(lengths)
    batch = draw(st.lists(st.integers(1, 3), max_size=3))
    shapes = []
    for matrix in ((rows, inner), (inner, columns)):
        if draw(st.booleans()) and draw(st.booleans()):
            shapes.append((inner,))
            continue
        stack = [n if draw(st.booleans()) else 1 for n in batch]
        shapes.append((*stack[draw(st.integers(0, len(stack))) :], *matrix))
    layouts = st.tuples(
        st.permutations(range(5)), st.lists(st.sampled_from([1, 2, -1]), min_size=5)
    )
    return [(shape, draw(layouts)) for shape in shapes]


def laid_out(x, layout, xp):
    """Return a view of a new array, which has the shape and the values of `x`."""
    order, steps = layout
    order = [axis for axis in order if axis < x.ndim]
    steps = steps[: x.ndim]
    base_shape = [x.shape[axis] * abs(steps[axis]) for axis in order]
    base = xp.zeros(tuple(base_shape), dtype=x.dtype)
    back = [order.index(axis) for axis in range(x.ndim)]
    view = xp.permute_dims(base, tuple(back))
    return view[tuple([slice(None, None, step) for step in steps])]


@examples(150)
@given(operands(), st.sampled_from(DTYPES), st.integers(0, 2**32 - 1))
def test_products(gpu, drawn, dtype, seed):
    """Of all shapes, layouts and dtypes: eager, captured, and replayed."""
    rng = np.random.default_rng(seed)
    views, host = [], []
    for shape, layout in drawn:
        host.append(np.empty(shape, dtype))
        views.append(laid_out(host[-1], layout, OnGpu))
    multiplied = ndx.cuda.graph(lambda a, b: a @ b)
    for _ in range(4):
        for x, view in zip(host, views, strict=True):
            x[...] = rng.integers(-9, 9, x.shape)
            if x.dtype.kind == "c":
                x += 1j * rng.integers(-9, 9, x.shape)
            view[...] = ndx.asarray(x, device="cuda:0")
        found = multiplied(*views)
        expected = host[0] @ host[1]
        assert found.dtype == dtype
        assert found.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(found.to_device("cpu")), expected)
    assert counts(multiplied) == (1, 3, 1)


class OnGpu:
    permute_dims = staticmethod(ndx.permute_dims)

    @staticmethod
    def zeros(shape, dtype):
        return ndx.zeros(shape, dtype=dtype, device="cuda:0")


def test_transposed_views_are_not_copied(machine, lanes):
    a, b = full((3, 5)), full((3, 4))
    multiplied = ndx.cuda.graph(lambda a, b: a.T @ b)
    for _ in range(3):
        assert multiplied(a, b).tolist() == [[3.0] * 4] * 5
    # The second matrix is the first one of cuBLAS's, which sees it as it is.
    assert cublas.calls == [("gemm", 0, 1, 4, 5, 3, 1)] * 2
    # And the memory has room for the result, and for cuBLAS.
    assert multiplied.stats()["bytes"] - (4 << 20) < 2048


def test_stacks_are_one_call(machine, lanes):
    a, b = full((2, 3, 4, 5)), full((5, 6))
    for operands, call in (
        ((a, b), ("gemm", 0, 0, 6, 4, 5, 6)),
        ((a, full((5,))), ("gemm", 0, 0, 1, 4, 5, 6)),
        ((full((3, 1, 4, 5)), full((2, 5, 6))), ("gemm", 0, 0, 6, 4, 5, 3)),
    ):
        cublas.calls.clear()
        multiplied = ndx.cuda.graph(lambda a, b: a @ b)
        for _ in range(3):
            assert ndx.all(multiplied(*operands) == 5.0)
        assert set(cublas.calls) == {call}


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int32"])
def test_other_products(gpu, dtype):
    a = ndx.astype(ndx.reshape(ndx.arange(24, device="cuda:0"), (2, 3, 4)), dtype)
    b = ndx.astype(ndx.reshape(ndx.arange(12, device="cuda:0"), (4, 3)), dtype)
    if dtype == "complex64":
        a, b = a * (1 + 2j), b * (2 - 1j)

    def products(a, b):
        out = ndx.zeros((2, 3, 3), dtype=dtype, device="cuda:0")
        ndx.matmul(a, b, out=out)
        return (
            out,
            ndx.linalg.matmul(a, b),
            ndx.tensordot(a, b, axes=1),
            ndx.tensordot(a, b, axes=((1, 2), (1, 0))),
            ndx.vecdot(a, b.T),
            ndx.linalg.vecdot(a, a, axis=0),
            ndx.vecdot(a[0, 0], b[:, 1]),
            a[0, 0] @ b[:, 0],
        )

    expected = [np.asarray(x.to_device("cpu")) for x in products(a, b)]
    graph = ndx.cuda.graph(products)
    for _ in range(3):
        for x, other in zip(graph(a, b), expected, strict=True):
            assert x.shape == other.shape
            np.testing.assert_allclose(np.asarray(x.to_device("cpu")), other, 1e-6)
    assert counts(graph) == (1, 2, 1)


def test_shapes_that_do_not_match(gpu):
    a, b = full((2, 3)), full((2, 3))
    for operation in (
        lambda: a @ b,
        lambda: full((2, 3, 4)) @ full((3, 4, 5)),
        lambda: ndx.vecdot(a, b[:, :2]),
    ):
        graph = ndx.cuda.graph(operation)
        for _ in range(3):
            wrong = pytest.raises(ValueError, match="match|broadcast|length")
            with wrong, ndx.use("cuda:0"):
                graph()


def test_memory_of_cublas_is_counted_only_if_it_works(gpu):
    a = full((4, 4))
    graphs = [
        ndx.cuda.graph(lambda a: a + a),
        ndx.cuda.graph(lambda a: ndx.astype(a, ndx.int32) @ ndx.astype(a, ndx.int32)),
        ndx.cuda.graph(lambda a: a @ a @ a),
    ]
    for graph in graphs:
        for _ in range(3):
            graph(a)
    sizes = [graph.stats()["bytes"] for graph in graphs]
    assert max(sizes[:2]) < 1 << 20
    assert sizes[2] >= 4 << 20


def test_it_is_never_used_eagerly(machine, lanes):
    a = full((4, 4))
    assert ndx.all(a @ a == 4.0)
    assert cublas.calls == []
    assert capture.Lane.idle == {}


def test_a_product_in_the_second_call_only(gpu, lanes):
    multiply = False

    @ndx.cuda.graph
    def step(a):
        return a @ a if multiply else a + a

    a = full((2, 2))
    assert step(a).tolist() == [[2.0, 2.0]] * 2
    multiply = True
    a[...] = 2.0
    for _ in range(4):
        assert step(a).tolist() == [[8.0, 8.0]] * 2
    assert counts(step) == (2, 3, 1)


@pytest.mark.parametrize("name", [x for x in bindings.PROTOTYPES if "Create" not in x])
def test_cublas_fails(machine, lanes, name):
    a = full((2, 2))
    graph = ndx.cuda.graph(lambda a: a @ a)
    assert graph(a).tolist() == [[2.0, 2.0]] * 2
    cublas.failing[name] = 13
    for _ in range(2):
        # While it is captured, and in the call before.
        with pytest.raises(ndx.DeviceError, match=f"{name} .*EXECUTION_FAILED"):
            graph(a)
    cublas.failing.clear()
    for _ in range(3):
        assert graph(a).tolist() == [[2.0, 2.0]] * 2
    assert counts(graph)[2] == 1


def test_there_is_no_handle(machine, lanes):
    cublas.failing["cublasCreate_v2"] = 3
    graph = ndx.cuda.graph(lambda a: a @ a)
    for _ in range(2):
        with pytest.raises(ndx.DeviceError, match="ALLOC_FAILED"):
            graph(full((2, 2)))
    cublas.failing["cublasCreate_v2"] = 99
    with pytest.raises(ndx.DeviceError, match="an unknown status"):
        graph(full((2, 2)))


def test_sizes_that_cublas_can_not_have(machine, lanes):
    a = full((2, 1))
    wide = ndx.broadcast_to(full((1,)), (2**31, 1))
    graph = ndx.cuda.graph(lambda a: a.T @ wide[:2])
    assert graph(a).tolist() == [[2.0]]
    handle = capture.Lane.idle.popitem()[1][0].blas
    with pytest.raises(ndx.DeviceError, match="too large"):
        handle.multiply(
            np.dtype("f8"), (1, 1, 2**31), (0, 0, 1, 0), (0, 0, 1, 0), (0, 1, 1), 1
        )


def test_prototypes():
    """As in NVIDIA's documentation: what C calls int, long long, size_t and void *."""
    assert bindings.PROTOTYPES.keys() == {f.__name__ for f in cublas.PROTOTYPES}
    for function, types_ in cublas.PROTOTYPES.items():
        assert list(bindings.PROTOTYPES[function.__name__]) == types_
    (gemm,) = (x for x in bindings.PROTOTYPES if "Gemm" in x)
    short = {ctypes.c_void_p: "p", ctypes.c_int: "i", ctypes.c_longlong: "l"}
    spelled = "".join(short[each] for each in bindings.PROTOTYPES[gemm])
    # handle, 2 operations, m n k; alpha, A type lda step, B likewise; beta, C likewise;
    # count, compute type, algorithm
    assert spelled == "piiiii" + "ppiilpiil" + "ppiil" + "iii"


def test_sizes_of_the_workspace(machine):
    for major, mib in ((7, 4), (8, 4), (9, 32), (10, 32), (12, 32)):
        assert bindings.Handle(major).nbytes == mib << 20


def test_the_door(stand_in, monkeypatch):
    """By a module that CuPy installs; without it, or the library, it says so."""
    found = types.ModuleType("cuda.pathfinder")
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    for load, why in (
        (None, "cuda.pathfinder"),
        (lambda name: types.SimpleNamespace(abs_path=f"/none/lib{name}.so"), "/none"),
    ):
        found.load_nvidia_dynamic_lib = load
        monkeypatch.setitem(sys.modules, "cuda.pathfinder", load and found)
        missing = pytest.raises(ndx.DeviceError, match=f"cuBLAS.*{why}")
        with _cupy.replaced(*stand_in), missing:
            _cupy.cublas()
    path = ctypes.util.find_library("m")
    found.load_nvidia_dynamic_lib = lambda name: types.SimpleNamespace(abs_path=path)
    with _cupy.replaced(*stand_in):
        library = _cupy.cublas()
        assert _cupy.cublas() is library
        assert library.cos
