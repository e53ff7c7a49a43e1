"""Sparse arrays do with our arrays what they do with NumPy's, or refuse them."""

import itertools
import operator

import numpy as np
import pytest
from helpers.answers import Refused, normal

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
