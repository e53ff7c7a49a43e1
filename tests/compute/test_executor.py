"""Jobs: signals are handled in the midst of operations, on every road."""

import os
import signal
import time

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.numpy_versions import needs_part

import ndx

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sets a timer")

MANY = 4_000_000
MASK = np.arange(MANY) % 3 > 0


def bounded(x):
    return ndx.clip(x, 0.25, 0.5)


def put(x):
    x[ndx.asarray(MASK)] = 0.5
    return x


# What computes on one array of float64, on each road through the executor.
OPERATIONS = {
    "along": lambda x: ndx.take_along_axis(x, ndx.astype(x * MANY, ndx.int64)),
    "argsort lines": lambda x: ndx.argsort(ndx.reshape(x, (-1, 200))),
    "elementwise": lambda x: ndx.pow(x, 1.7),
    "cast": lambda x: ndx.astype(x, ndx.int32),
    "clip": bounded,
    "cumulative": ndx.cumulative_sum,
    "fill": lambda x: ndx.full(8 * MANY, 0.5),
    "gather": lambda x: x[ndx.astype(x * MANY, ndx.int64)],
    "mask": lambda x: x[x > 0.5],
    "matmul": lambda x: ndx.matmul(
        ndx.reshape(x, (-1, 200, 200)), ndx.reshape(x, (-1, 200, 200))
    ),
    "nonzero": lambda x: ndx.nonzero(x > 0.5),
    "norm": lambda x: ndx.linalg.vector_norm(x),
    "put": put,
    "search": lambda x: ndx.searchsorted(x[:1000], x),
    "sort lines": lambda x: ndx.sort(ndx.reshape(x, (-1, 200))),
    "squares": ndx.var,
    "sum": lambda x: ndx.sum(ndx.reshape(x, (40, -1)), axis=0),
    "where": lambda x: ndx.where(x > 0.5, x, 0.0),
}


class Stop(Exception):
    """What the handler of the signal raises."""


@pytest.fixture
def alarm():
    """Raise `Stop` in the main thread after some seconds of the process's time."""
    armed = False

    def handle(number, frame):
        nonlocal armed
        if armed:
            # Once: a signal of the timer before may have come instead of this one's.
            armed = False
            raise Stop

    def arm(seconds):
        # A signal that another thread received can arrive after its timer was
        # stopped: it must not raise then.
        nonlocal armed
        armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        armed = seconds > 0

    # The other timer is that of the tests' limit of time.
    before = signal.signal(signal.SIGVTALRM, handle)
    yield arm
    arm(0)
    signal.signal(signal.SIGVTALRM, before)


@needs_part("loops")  # NumPy's public function computes all at once
def test_a_signal_ends_a_long_operation(alarm):
    y = ndx.asarray(np.random.default_rng(1).random((2, MANY)) + 1j)
    begin = time.perf_counter()
    ndx.pow(y, 1.7)
    whole = time.perf_counter() - begin
    # A machine that is busy may come to it late: it is to come early once.
    for _ in range(20):
        begin = time.perf_counter()
        alarm(whole / 20)
        with pytest.raises(Stop):
            ndx.pow(y, 1.7)
        if time.perf_counter() - begin < 0.75 * whole:
            return
    pytest.fail("the operation never ended early")


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_handler_raises_comes_out_and_nothing_is_lost(alarm, name, threads):
    before = ndx.get_num_threads()
    ndx.set_num_threads(threads)
    try:
        x = ndx.asarray(np.random.default_rng(2).random(MANY))
        for pause in (0.0005, 0.003, 0.01):
            try:
                alarm(pause)
                OPERATIONS[name](x)
                alarm(0)
            except Stop:
                pass
        alarm(0)
        x = ndx.asarray(np.random.default_rng(2).random(MANY))
        again = OPERATIONS[name](x)
        ndx.set_num_threads(1)
        x = ndx.asarray(np.random.default_rng(2).random(MANY))
        wanted = OPERATIONS[name](x)
    finally:
        ndx.set_num_threads(before)
    if name == "nonzero":
        (again,), (wanted,) = again, wanted
    np.testing.assert_array_equal(again, wanted)


def test_a_child_that_is_forked_in_a_handler_is_told_so():
    code = """if True:
        import os, signal
        import ndx
        ndx.set_num_threads(4)
        parent = os.getpid()
        forked = []
        def handle(number, frame):
            if os.getpid() == parent and not forked:
                forked.append(os.fork())
                if not forked[0]:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        x = ndx.broadcast_to(ndx.linspace(1, 2, 2_000_000), (16, 2_000_000))
        found = ndx.sum(ndx.pow(x, 1.7))
        signal.signal(signal.SIGVTALRM, handle)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.02, 0.02)
        try:
            while not forked:
                found = ndx.sum(ndx.pow(x, 1.7))
        except RuntimeError as error:
            assert os.getpid() != parent and "was forked" in str(error)
        else:
            # A child that had no threads then has gone on alone.
            assert float(found) == float(ndx.sum(ndx.pow(x, 1.7)))
        if os.getpid() != parent:
            os._exit(3)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        print(os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]))
    """
    assert run_python(code) == "3\n"


def test_a_signal_in_another_thread_changes_nothing(alarm):
    import concurrent.futures

    x = ndx.asarray(np.random.default_rng(3).random(MANY))
    wanted = ndx.pow(x, 1.7)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        task = pool.submit(lambda: [ndx.pow(x, 1.7) for _ in range(10)])
        seen = 0
        while not task.done():
            try:
                alarm(0.001)
                task.result()
            except Stop:
                seen += 1
        alarm(0)
        found = task.result()
    assert seen
    for each in found:
        np.testing.assert_array_equal(each, wanted)
