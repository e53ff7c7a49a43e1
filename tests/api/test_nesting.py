"""Lists and tuples that contain themselves, or are nested too deeply."""

from helpers.commands import run_python

SETUP = """
import numpy, ndx, ndx.numpy as np
own = []; own.append(own)
twice = [[[1]]]; twice[0][0].append(twice); twice.append(twice)
deep = ()
for _ in range(100_000): deep = (deep,)
x = ndx.ones((3, 3))
def given(call, *words):
    print(*words, flush=True)
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


def test_crashes_nothing():
    calls = "".join(
        f"given(lambda: {call.format(name)}, {call!r}, {name!r})\n"
        for call in CALLS
        for name in ("own", "twice", "deep")
    )
    # Each call is printed before it is made: of a crash, the last line says which.
    assert run_python(SETUP + calls).count("\n") == 3 * len(CALLS)
