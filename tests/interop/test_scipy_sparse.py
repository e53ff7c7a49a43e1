"""Sparse arrays do with our arrays what they do with NumPy's, or refuse them."""

import itertools
import operator

import numpy as np
import pytest
from helpers.answers import Refused, answer, normal

import ndx

scipy = pytest.importorskip("scipy")
sparse = pytest.importorskip("scipy.sparse")
pytest.importorskip("scipy.sparse.csgraph")
pytest.importorskip("scipy.sparse.linalg")

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [1.0, 0.0, 1.0]])
OPERANDS = {
    "matrix": DENSE,
    "vector": np.array([1.0, 2.0, 3.0]),
    "row": np.array([[1.0, 2.0, 3.0]]),
    "column": np.array([[1.0], [2.0], [3.0]]),
    "integers": np.array([1, 2, 3]),
    "number": np.float64(2.0),
    "zero": np.float64(0.0),
    "wrong shape": np.ones((2, 2)),
}
OPERATORS = [
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
    operator.mod, operator.pow, operator.matmul, operator.iadd, operator.isub,
    operator.imul, operator.itruediv,
]  # fmt: skip
CLASSES = [
    f"{layout}_{kind}"
    for layout in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
    for kind in ("array", "matrix")
]


def result(function, *operands):
    try:
        return normal(function(*operands))
    except Exception as error:
        return Refused(repr(error))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLASSES)
def test_operators(name):
    make = getattr(sparse, name)
    for operation, key in itertools.product(OPERATORS, OPERANDS):
        theirs, ours = OPERANDS[key], ndx.asarray(OPERANDS[key])
        for swap in (False, True)[: 1 + (not operation.__name__.startswith("i"))]:
            pairs = [
                (make(DENSE), each)[:: -1 if swap else 1] for each in (theirs, ours)
            ]
            expected, found = [result(operation, *pair) for pair in pairs]
            if isinstance(expected, Refused):
                assert isinstance(found, Refused)
            elif operation is not operator.pow or not isinstance(found, Refused):
                assert found == expected, (operation, key, swap)


@pytest.mark.parametrize("name", CLASSES)
def test_comparisons_that_gave_one_bool(name):
    found = getattr(sparse, name)(DENSE) == ndx.asarray(DENSE)
    assert found.shape == (3, 3)
    assert found.all()


# `a` is a sparse array, `d` a matrix, `v` a vector, `i` integers and `m` a mask.
# "raises" says that our arrays may be refused.
CALLS = """
sp.csr_array(d)
sp.coo_array(d)
sp.coo_matrix(d)
sp.lil_array(d)
sp.dok_array(d)
sp.dia_array(d)
sp.bsr_array(d)
sp.coo_array((v[:2], (i, i)), shape=(3, 3))
sp.csr_array((v[:2], (i, i)), shape=(3, 3))
sp.csr_array((v[:2], i, [0, 1, 2, 2]), shape=(3, 3))
sp.dia_array((d, [0, 1, -1]), shape=(3, 3))
sp.diags_array(v)  # raises
sp.diags_array([v, v[:2]], offsets=[0, 1])
sp.diags(v)  # raises
sp.spdiags(d, [0, 1, 2], 3, 3)
sp.kron(d, a)
sp.kron(a, d)
sp.kronsum(d, a)
sp.vstack([a, d])
sp.hstack([d, a])
sp.block_array([[a, d]])
sp.tril(d)
sp.triu(d)
sp.find(d)
sp.issparse(d)
a[m]
a[i]
a[:, i]
a[:, m]
a[i, i]
a[i[:, None], i]
a[i[0], i[1]]
a[d > 1]
a[i[1]]
sp.lil_array(a)[m]
sp.coo_array(a)[m]
sp.dok_array(a)[i]
sp.csc_array(a)[:, m]
a.multiply(d)
a.multiply(v)
a.multiply(v[0])
a.dot(d)
a.dot(v)
a.dot(v[0])
a.maximum(d)
a.minimum(d)
a.maximum(v[0])
a.power(v[1])  # raises
a.diagonal(i[0])
a.trace(offset=i[0])
a.reshape((i[0] + 9, i[0] + 1))
a.toarray(out=d * 1)
a.setdiag(v); a
a.setdiag(v[0]); a
sp.linalg.spsolve(sp.csc_array(a + 5 * sp.eye_array(3)), v)
sp.linalg.spsolve(sp.csc_array(a + 5 * sp.eye_array(3)), d)
sp.linalg.splu(sp.csc_array(a + 5 * sp.eye_array(3))).solve(v)  # raises
sp.linalg.aslinearoperator(d) @ np.ones(3)  # raises
sp.linalg.aslinearoperator(a) @ v  # raises since SciPy 1.18: two namespaces
sp.linalg.aslinearoperator(a) * v  # raises since SciPy 1.18: two namespaces
(sp.linalg.aslinearoperator(a) * v[1]) @ np.ones(3)  # raises
sp.linalg.expm_multiply(a, v).round(9)
sp.csgraph.shortest_path(d)
sp.csgraph.connected_components(d)
sp.csgraph.csgraph_from_dense(d)
sp.csgraph.minimum_spanning_tree(d)
sp.csgraph.laplacian(d)
sp.csgraph.dijkstra(a, indices=i)
sp.csgraph.breadth_first_order(d, 0)
"""
KEYS = ["m", "i", "0, i", ":, m", "0, 1", "0", "i, i", "d > 1", "i[1], i[0]"]
VALUES = ["9", "v[0]", "v[:2]", "d[0]", "d[:2]", "d[:, :2]"]
ASSIGNMENTS = [
    f"q = sp.{layout}_array(a); q[{key}] = {value}; q"
    for layout in ("lil", "csr", "dok", "csc", "coo")
    for key in KEYS
    for value in VALUES
]


def names(xp):
    return {
        "sp": sparse,
        "a": sparse.csr_array(DENSE),
        "d": xp.asarray(DENSE.copy()),
        "v": xp.asarray([1.0, 2.0, 3.0]),
        "i": xp.asarray([0, 2]),
        "m": xp.asarray([True, False, True]),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", CALLS.strip().splitlines())
def test_calls(line):
    call, _, remark = line.partition("  # ")
    expected, found = answer(call, names(np)), answer(call, names(ndx))
    assert not isinstance(expected, Refused)
    assert found == expected or (
        remark.startswith("raises") and isinstance(found, Refused)
    )


@pytest.mark.filterwarnings("ignore")
def test_assignments():
    for assignment in ASSIGNMENTS:
        found = answer(assignment, names(ndx))
        if not isinstance(found, Refused):
            assert found == answer(assignment, names(np)), assignment
