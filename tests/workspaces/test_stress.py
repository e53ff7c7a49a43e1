"""Other threads compute while a scope ends or an array is closed.

They get the values that were there, or an error; never those of recycled memory.
"""

import sys
import threading
import time

import numpy as np
import pytest
from helpers.threads import running

import ndx

# Large enough for operations to release the GIL.
SIZE = 40_000
SIDE = 120
BAD = 1e30

OPERATIONS = {
    "add": lambda x: float(ndx.max(x + x)) / 2,
    "strided": lambda x: float(ndx.max(x[::2] * 1.0)),
    "exp": lambda x: round(float(np.log(ndx.max(ndx.exp(x)).item()))),
    "sum": lambda x: float(ndx.sum(x)) / SIZE,
    "std": lambda x: float(ndx.mean(x)) + float(ndx.std(x)),
    "matmul": lambda x: (
        float(ndx.max((m := ndx.reshape(x[: SIDE**2], (SIDE, SIDE))) @ m)) ** 0.5
        / SIDE**0.5
    ),
    "copy": lambda x: float(ndx.max(ndx.asarray(x, copy=True))),
    "astype": lambda x: float(ndx.max(ndx.asarray(x, dtype="int64"))),
    "detach": lambda x: float(ndx.max(x.detach())),
    "index": lambda x: float(ndx.max(x[np.arange(0, SIZE, 3)])),
    "in-place operand": lambda x: float(ndx.max(ndx.zeros(SIZE).__iadd__(x))),
    "setitem": lambda x: assigned(x),
    "numpy view": lambda x: float(np.asarray(x).max()),
    "memoryview": lambda x: memoryview(x)[SIZE // 2],
    "dlpack": lambda x: float(np.from_dlpack(x).max()),
    "cbrt": lambda x: round(float(ndx.max(np.cbrt(x)).item()) ** 3),
    "tolist": lambda x: x[:100].tolist()[50],
    "bytes": lambda x: np.frombuffer(bytes(x[:100]))[99],
}  # fmt: skip


def assigned(x):
    y = ndx.zeros(SIZE)
    y[...] = x
    return float(ndx.max(y))


@pytest.fixture(autouse=True)
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Shared:
    """An array that one thread makes anew and the others compute on."""

    def __init__(self, readers):
        self.array = None
        self.readers = readers
        self.started = threading.Semaphore(0)
        self.wrong = []
        self.right = self.refused = 0
        self.done = False
        self.random = np.random.default_rng(0)

    def publish(self, array):
        """Show an array; return when all readers are about to compute on it."""
        self.array = array
        for _ in range(self.readers):
            assert self.started.acquire(timeout=30)
        self.dawdle()

    def dawdle(self):
        """Take some time, each time another: threads meet at any point of a work."""
        for _ in range(int(self.random.integers(3000))):
            pass

    def reader(self, operation):
        def work():
            seen = None
            while not self.done:
                array = self.array
                if array is seen:
                    time.sleep(0)
                    continue
                seen = array
                # What no recycling can change: the shape says the value.
                expected = float(len(array) - SIZE)
                self.started.release()
                self.dawdle()
                try:
                    found = operation(array[:SIZE])
                except (ndx.StaleArrayError, BufferError):
                    self.refused += 1
                else:
                    self.right += 1
                    if not np.isclose(found, expected, rtol=1e-9):
                        self.wrong.append((found, expected))

        return work


def run(cycles, operations, one_cycle):
    """Run cycles against readers; return how often these were right, and refused."""
    shared = Shared(len(operations))
    with running(*map(shared.reader, operations)):
        try:
            for number in range(cycles):
                one_cycle(shared, 1 + number % 7)
        finally:
            shared.done = True
    assert shared.wrong == []
    return shared.right, shared.refused


def ending_scopes(workspace):
    """Each cycle publishes an array, ends, and overwrites what it can."""

    def one_cycle(shared, value):
        with workspace:
            shared.publish(ndx.full(SIZE + value, float(value)))
        with workspace:
            ndx.full(SIZE + value, BAD)
            ndx.full(SIZE, BAD)

    return one_cycle


def closing(shared, value):
    """Each cycle publishes an array, then closes it if nobody computes on it."""
    x = ndx.full(SIZE + value, float(value))
    shared.publish(x)
    try:
        x.close()
    except BufferError:
        assert x.in_scope
    ndx.full(SIZE + value, BAD)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("size", ["2MiB", 0], ids=["arena", "spilled"])
def test_a_scope_ends_while_others_compute(operation, size):
    workspace = ndx.workspace(size=size, learn="none")
    run(30, [OPERATIONS[operation]] * 2, ending_scopes(workspace))
    assert workspace.stats()["pinned_count"] == 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_close_while_others_compute(operation):
    run(30, [OPERATIONS[operation]] * 2, closing)


def test_a_late_write_reaches_nothing_live():
    """Threads write in place to an array whose scope ends meanwhile."""
    workspace = ndx.workspace(size="2MiB")
    shared = Shared(readers=2)

    def write():
        bad = ndx.full(SIZE, BAD)
        seen = None
        while not shared.done:
            x = shared.array
            if x is seen:
                time.sleep(0)
                continue
            seen = x
            shared.started.release()
            shared.dawdle()
            try:
                x += bad
                x[...] = bad
            except ndx.StaleArrayError:
                shared.refused += 1

    with running(write, write):
        try:
            for _ in range(60):
                with workspace:
                    shared.publish(ndx.zeros(SIZE))
                with workspace:
                    arrays = [ndx.zeros(SIZE) for _ in range(6)]
                    for x in arrays:
                        if float(ndx.max(x)) != 0.0:
                            shared.wrong.append("written to")
        finally:
            shared.done = True
    assert shared.wrong == []


@pytest.mark.nightly
@pytest.mark.parametrize("operation", OPERATIONS)
def test_for_long(operation):
    workspace = ndx.workspace(size="2MiB")
    readers = [OPERATIONS[operation], OPERATIONS["add"], OPERATIONS["numpy view"]]
    for one_cycle in (ending_scopes(workspace), closing):
        right = refused = 0
        # Whether a reader comes too late is up to the scheduler.
        for _ in range(20):
            found = run(300, readers, one_cycle)
            right, refused = right + found[0], refused + found[1]
            if right and refused:
                break
        assert right
        assert refused
