"""Lists and tuples that contain themselves, or are nested too deeply."""

import subprocess
import sys

import pytest

SETUP = """
import numpy, ndx, ndx.numpy as np
own = []; own.append(own)
twice = [[[1]]]; twice[0][0].append(twice); twice.append(twice)
deep = ()
for _ in range(100_000): deep = (deep,)
x = ndx.ones((3, 3))
def given(call):
    try:
        call()
    except (TypeError, ValueError, RecursionError, numpy.linalg.LinAlgError):
        pass
"""
CALLS = [
    "ndx.linalg.vector_norm(ndx.ones(3), ord={})",
    "ndx.linalg.matrix_norm(x, ord={})",
    "ndx.linalg.pinv(x, rtol={})",
    "ndx.linalg.matrix_rank(x, rtol={})",
    "ndx.linalg.cholesky(x, upper={})",
    "ndx.isdtype(ndx.float64, {})",
    "numpy.apply_along_axis(lambda a, o: a, 0, x, {})",
    "numpy.piecewise(x, [x > 0], [lambda a, o: a], {})",
    "np.fromfunction(lambda i: {}, (2,))",
    "np.mintypecode(x, x, {})",
    "np.concatenate({})",
    "np.stack([x, {}])",
    "ndx.stack([x, {}])",
    "ndx.asarray({})",
    "np.asarray([x, {}])",
    "x.__setitem__(0, {})",
    "x[{}]",
    "ndx.fuse(lambda a, b: a)(x, {})",
]


@pytest.mark.parametrize("call", CALLS)
def test_crashes_nothing(call):
    calls = "\n".join(
        f"given(lambda: {call.format(name)})" for name in ("own", "twice", "deep")
    )
    subprocess.run([sys.executable, "-c", SETUP + calls], check=True, timeout=120)
