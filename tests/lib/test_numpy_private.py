"""NumPy's private parts: the checks at import, and what is done without them."""

import functools

import pytest
from helpers.commands import run_python

BROKEN_LOOPS = """
import warnings
import numpy as np

# The check computes a result by the ufunc's pointer. When it warns, all is well again.
right, warn, texts = np.{name}, warnings.warn, []
np.{name} = {other}

def repair(text, category, **options):
    np.{name}, warnings.warn = right, warn
    texts.append((category, text))

warnings.warn = repair
import ndx
assert [each[0] for each in texts] == [RuntimeWarning], texts
assert "does not know the inner loops of NumPy" in texts[0][1]
"""
ANOTHER_LOOP = BROKEN_LOOPS.format(name="less", other="np.greater")
NO_LOOPS = BROKEN_LOOPS.format(name="exp", other="max")
NO_STATE = """
import numpy as np
import numpy._core.umath as umath

del umath._make_extobj
"""
ANOTHER_STATE = """
import numpy as np
import numpy._core.umath as umath

umath._make_extobj = lambda **options: np._core.umath._extobj_contextvar.get()
"""
COMPUTE = """
import sys
import warnings

import ndx

warnings.simplefilter("error")
x = ndx.asarray([0.0, 1.0, -4.0])
y = ndx.asarray([[1, 2], [3, 4]])
print((x + 1).tolist(), ndx.exp(ndx.zeros(2)).tolist(), (x < 0).tolist())
print(ndx.divide(x, x).tolist(), ndx.sqrt(x).tolist())
print((y @ y).tolist(), ndx.sum(y, axis=0).tolist(), (y.T + y).tolist())
print(ndx.linalg.inv(y * 1.0).shape, ndx.max(x).item(), (-x[::2]).tolist())
"""


@functools.cache
def computed():
    return run_python(COMPUTE)


@pytest.mark.parametrize(
    "broken",
    [ANOTHER_LOOP, NO_LOOPS, NO_STATE, ANOTHER_STATE, NO_STATE + NO_LOOPS],
    ids=["another-loop", "no-loops", "no-state", "another-state", "neither"],
)
def test_results_are_the_same_without_private_parts(broken):
    assert run_python(broken + COMPUTE) == computed()
