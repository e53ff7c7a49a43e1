"""A scope that ends while an operation runs takes no memory from the operation.

Neither from its operands nor from its result: the memory is not used again before the
operation is done.
"""

import contextlib
import threading
import time

import numpy as np
import pytest
from helpers.passes import in_file, passing
from helpers.threads import running
from helpers.together import only_where_threads_end_scopes

import ndx

pytestmark = pytest.mark.threads

SIZE = 400_000
CANARY = 5.0


class Ending:
    """Ends a scope once, and fills all memory that was its own with a canary."""

    def __init__(self, nbytes):
        self.workspace = ndx.workspace(size=nbytes)
        self.outside = None

    def __call__(self, *_):
        if self.outside is None and self.workspace.is_open:
            self.workspace.__exit__(None, None, None)
            self.workspace.destroy()
            ndx.backends.get("host").trim()
            self.outside = [
                np.asarray(ndx.full(SIZE + extra, CANARY)) for extra in (0, 4000, 9000)
            ]

    def assert_untouched(self):
        assert self.outside is not None
        for canary in self.outside:
            assert (canary == CANARY).all()


OPERATIONS = {
    "add a number": lambda x, i: x + 1.0,
    "add": lambda x, i: x + x,
    "compare": lambda x, i: x < 1.0,
    "exp": lambda x, i: ndx.exp(x),
    "strided": lambda x, i: x[::2] + x[1::2],
    "where": lambda x, i: ndx.where(x > 0, x, 0.0),
    "take": lambda x, i: ndx.take(x, i),
    "copy": lambda x, i: ndx.asarray(x, copy=True),
    "cast": lambda x, i: ndx.astype(x, np.float32),
    "sort": lambda x, i: ndx.sort(x),
    "cumulative_sum": lambda x, i: ndx.cumulative_sum(x),
    "sum": lambda x, i: ndx.sum(x),
    "matmul": lambda x, i: ndx.reshape(x, (500, 800)) @ ndx.reshape(x, (800, 500)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_progress_callback_ends_the_scope(operation, tmp_path):
    ending = Ending("16MiB")
    with passing(tmp_path):
        x = in_file(np.ones(SIZE))
        i = in_file(np.arange(SIZE))
    with ndx.use("host"), ndx.passes(threshold=0, block="64KiB", threads=1):
        ending.workspace.__enter__()
        with ndx.passes(progress=ending), contextlib.suppress(ndx.StaleArrayError):
            OPERATIONS[operation](x, i)
    ending.assert_untouched()
    assert float(ndx.sum(x)) == SIZE


@only_where_threads_end_scopes
@pytest.mark.parametrize("operation", ["add", "exp", "take", "cumulative_sum", "sort"])
def test_another_thread_ends_the_scope(operation):
    """The scope was entered by a generator, which another thread closes."""
    size = 2_000_000
    entered = threading.Semaphore(0)
    made = []

    def scope():
        with ndx.workspace(size="64MiB") as workspace:
            made.append(workspace)
            yield

    def compute(x, i):
        generator = scope()
        next(generator)
        made.append(generator)
        entered.release()
        with contextlib.suppress(ndx.StaleArrayError):
            OPERATIONS[operation](x, i)

    with running(lambda: compute(ndx.ones(size), ndx.arange(size))):
        assert entered.acquire(timeout=60)
        workspace, generator = made
        # Soon after its result's memory was had, the operation releases the GIL.
        until = time.monotonic() + 60
        while workspace.stats()["live_bytes"] == 0 and time.monotonic() < until:
            time.sleep(0)
        generator.close()
        workspace.destroy()
        ndx.backends.get("host").trim()
        canaries = [np.asarray(ndx.full(size + 4000 * i, CANARY)) for i in range(3)]
    for canary in canaries:
        assert (canary == CANARY).all()
