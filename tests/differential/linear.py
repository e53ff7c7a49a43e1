"""Linear algebra."""

import numpy as np
from helpers import patterns
from hypothesis import strategies as st

from differential.draws import (
    arrays,
    axes,
    chosen,
    scarcely,
)  # fmt: skip
from differential.engine import Row, rows

FLOATS = "fc"
MANY = {"ulps": 1e4, "overall": True}


@st.composite
def matrices(draw, kinds=FLOATS, square=True, hermitian=False):
    """Draw a stack of matrices; once in a while what is none."""
    min_side = patterns.least_side()
    if draw(scarcely):
        return draw(arrays(kinds, which="small", max_dims=1))
    stack = draw(patterns.shapes(max_dims=1, max_side=3))
    rows_, columns = draw(st.integers(min_side, 4)), draw(st.integers(min_side, 4))
    shape = (*stack, rows_, rows_ if square and not draw(scarcely) else columns)
    x = draw(arrays(kinds, shape, "small"))
    if hermitian and shape[-1] == shape[-2]:
        x = x + np.conj(np.swapaxes(x, -1, -2))
    if square and shape[-1] == shape[-2] and draw(st.integers(0, 3)):
        x = x + 20 * np.eye(shape[-1], dtype=x.dtype)
    return x


def one(strategy, **options):
    return st.tuples(st.tuples(strategy), chosen(**options))


@st.composite
def products(draw):
    """Draw operands of a matrix product."""
    inner = draw(st.integers(0, 4))
    left = draw(patterns.shapes(max_dims=2, max_side=3))
    stack = left[1:] if len(left) > 1 else ()
    first = (*left, inner)
    other = inner + draw(scarcely)
    second = (other,) if draw(st.booleans()) else (
        *stack[:0], other, draw(st.integers(0, 3)))  # fmt: skip
    if len(first) == 3 and draw(st.booleans()):
        second = (draw(st.sampled_from([1, first[0]])), other, 2)
    kinds = draw(st.sampled_from(["b", "iu", "f", "fc", "biufc"]))
    if draw(scarcely):
        first = ()
    return (draw(arrays(kinds, first, "small")),
            draw(arrays(kinds, second, "small"))), {}  # fmt: skip


@st.composite
def dots(draw, length=None):
    """Draw operands that broadcast but for one axis, of one length."""
    first, second = draw(patterns.broadcastable(2))
    length = draw(st.integers(0, 4)) if length is None else length
    axis = -1 - draw(st.integers(0, min(len(first), len(second))))
    kwargs = {"axis": axis} if axis != -1 or draw(st.booleans()) else {}
    place = lambda shape: (  # noqa: E731
        *shape[: len(shape) + axis + 1], length, *shape[len(shape) + axis + 1 :]
    )  # fmt: skip
    first, second = place(first), place(second)
    if draw(scarcely):
        second = (*second[:-1], second[-1] + 1)
    kinds = draw(st.sampled_from(["iu", "f", "fc", "iufc"]))
    return (draw(arrays(kinds, first, "small")),
            draw(arrays(kinds, second, "small"))), kwargs  # fmt: skip


@st.composite
def contractions(draw):
    shared = draw(patterns.shapes(max_dims=2, max_side=3))
    left = draw(patterns.shapes(max_dims=2, max_side=3))
    right = draw(patterns.shapes(max_dims=2, max_side=3))
    kinds = draw(st.sampled_from(["iu", "f", "fc"]))
    x = draw(arrays(kinds, (*left, *shared), "small"))
    y = draw(arrays(kinds, (*shared, *right), "small"))
    count = len(shared) + draw(scarcely)
    if draw(st.booleans()):
        return (x, y), {"axes": count}
    pair = (tuple(range(-len(shared), 0)), tuple(range(len(shared))))
    return (x, y), {"axes": pair}


@st.composite
def systems(draw):
    x = draw(matrices())
    side = x.shape[-1] if x.ndim else 1
    kinds = x.dtype.kind
    if draw(st.booleans()):
        return (x, draw(arrays(kinds, (side,), "small"))), {}
    shape = (*x.shape[:-2], side, draw(st.integers(0, 3)))
    return (x, draw(arrays(kinds, shape, "small"))), {}


@st.composite
def vectors(draw):
    shape = lambda: draw(patterns.shapes(min_dims=1, max_dims=1 + draw(scarcely)))  # noqa: E731
    return (draw(arrays("iufc", shape(), "small")),
            draw(arrays("iufc", shape(), "small"))), {}  # fmt: skip


@st.composite
def norms(draw):
    side = patterns.least_side()
    x = draw(arrays(FLOATS, which="small", min_dims=1, min_side=side))
    orders = st.sampled_from([0, 1, 2, 3, 2.5, np.inf, -np.inf, -1])
    kwargs = draw(chosen(ord=orders, keepdims=st.booleans()))
    return (x,), kwargs | {"axis": draw(axes(x.ndim))}


def complex_always(name):
    """NumPy returns real eigenvalues where all are; the standard complex ones."""
    function = getattr(np.linalg, name)

    def reference(x):
        found = function(x)
        dtype = np.result_type(x.dtype, np.complex64)
        if isinstance(found, tuple):
            return tuple(item.astype(dtype) for item in found)
        return found.astype(dtype)

    return reference


def default_sum(x, *, offset=0, dtype=None):
    default = {"b": "int64", "i": "int64", "u": "uint64"}.get(x.dtype.kind, x.dtype)
    return np.linalg.trace(x, offset=offset, dtype=dtype or default)


def powers():
    return st.tuples(st.tuples(matrices(), st.integers(-3, 4)), st.just({}))


DIAGONAL = {"offset": st.integers(-4, 4)}
NORMS = st.sampled_from(["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
PRODUCTS = {"ulps": 8, "overall": True}

TABLE = (
    rows("linalg.det linalg.inv linalg.slogdet", one(matrices()), **MANY)
    | rows("linalg.eigh linalg.eigvalsh", one(matrices(hermitian=True)), **MANY)
    | rows("linalg.svdvals", one(matrices(square=False)), **MANY)
    | rows("matmul linalg.matmul", products(), **PRODUCTS)
    | rows("tensordot linalg.tensordot", contractions(), **PRODUCTS)
    | rows("vecdot linalg.vecdot", dots(), **PRODUCTS)
    | rows("linalg.matrix_transpose", one(matrices("biufc", square=False)))
    | {
        "linalg.cholesky": Row(
            one(matrices(hermitian=True), upper=st.booleans()), **MANY),
        "linalg.cross": Row(dots(length=3), **PRODUCTS),
        "linalg.diagonal": Row(one(matrices("biufc", square=False), **DIAGONAL)),
        "linalg.eig": Row(one(matrices()), complex_always("eig"), **MANY,
                          note="complex for real matrices, too"),
        "linalg.eigvals": Row(one(matrices()), complex_always("eigvals"), **MANY,
                              note="complex for real matrices, too"),
        "linalg.matrix_norm": Row(
            one(matrices(square=False), ord=NORMS, keepdims=st.booleans()), **MANY),
        "linalg.matrix_power": Row(powers(), **MANY),
        "linalg.matrix_rank": Row(
            one(matrices(square=False), rtol=st.sampled_from([None, 0.1])),
            refuses=lambda x, **kwargs: x.ndim < 2,
            note="the standard's takes matrices only"),
        "linalg.outer": Row(vectors(), **PRODUCTS),
        "linalg.pinv": Row(
            one(matrices(square=False), rtol=st.sampled_from([None, 0.1])), **MANY),
        "linalg.qr": Row(
            one(matrices(square=False), mode=st.sampled_from(["reduced", "complete"])),
            **MANY),
        "linalg.solve": Row(systems(), **MANY),
        "linalg.svd": Row(
            one(matrices(square=False), full_matrices=st.booleans()), **MANY),
        "linalg.trace": Row(
            one(matrices("iufc", square=False), **DIAGONAL), default_sum, **PRODUCTS),
        "linalg.vector_norm": Row(norms(), **MANY),
    }
)  # fmt: skip
