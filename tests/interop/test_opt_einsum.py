"""opt_einsum contracts NDArrays, in ndx."""

import subprocess
import sys

import numpy as np
import pytest
from helpers.consumers import MATRIX

import ndx
from ndx.testing import assert_allclose

opt_einsum = pytest.importorskip("opt_einsum")

CALLS = [
    ("ij,kj->ik", 2),
    ("ij,kj,kl->il", 3),
    ("ij->j", 1),
    ("ij,ij->", 2),
    ("ij,kl->ijkl", 2),
    ("ij,...j->...i", 2),
]


@pytest.mark.parametrize(("subscripts", "count"), CALLS)
def test_contracts_ndarrays(subscripts, count):
    arrays = [MATRIX + i for i in range(count)]
    found = opt_einsum.contract(subscripts, *map(ndx.asarray, arrays))
    assert isinstance(found, ndx.NDArray)
    assert_allclose(found, np.einsum(subscripts, *arrays), rtol=1e-12)


def test_expressions():
    expression = opt_einsum.contract_expression("ij,kj->ik", (6, 4), (6, 4))
    found = expression(ndx.asarray(MATRIX), ndx.asarray(MATRIX))
    assert_allclose(found, MATRIX @ MATRIX.T, rtol=1e-12)


@pytest.mark.parametrize("order", ["ndx, opt_einsum", "opt_einsum, ndx"])
def test_the_order_of_imports_is_free(order):
    code = (
        f"import {order};"
        "print(opt_einsum.contract('ij,j->i', ndx.ones((2, 3)), ndx.ones(3)))"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[3. 3.]\n", "")
