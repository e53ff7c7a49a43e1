"""Threads that call NumPy's functions at the same time."""

import pytest
from helpers.together import run_together

PROGRAMS = {
    "threads ask for errors": """
    import ndx.numpy
    def work():
        x = ndx.ones(3)
        for _ in range(10 * ROUNDS):
            with ndx.numpy.errstate(all="raise"):
                try:
                    x / 0.0
                except FloatingPointError:
                    continue
                raise AssertionError("no error was reported")
    run(work, work, work)
    """,
    "functions of several steps are called first": """
    import ndx.numpy
    sys.setswitchinterval(1e-5)
    x, y = ndx.ones(3), ndx.arange(4)
    calls = (
        lambda: ndx.numpy.hamming(9),
        lambda: ndx.numpy.geomspace(1.0, 8.0, 4),
        lambda: ndx.numpy.i0(x),
        lambda: ndx.numpy.union1d(y, y),
        lambda: ndx.numpy.polyfit(x + y[1:], x, 1),
        lambda: ndx.numpy.tensordot(x, x, 1),
    )
    barrier = threading.Barrier(len(calls))
    def work(call):
        barrier.wait()
        for _ in range(2):
            assert isinstance(call(), ndx.NDArray), call
    run(*[functools.partial(work, call) for call in calls])
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_share(name):
    run_together(PROGRAMS[name])
