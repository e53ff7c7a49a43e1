"""Steps of the examples, watched: what each asks the backend and NumPy for."""

import contextlib
import tracemalloc

import numpy as np

import ndx


def numpy_data_bytes():
    """Return the bytes and the number of live blocks of NumPy's own array data."""
    snapshot = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]
    )
    return sum(trace.size for trace in snapshot.traces), len(snapshot.traces)


class CountedSteps:
    """A scope for each step, a workspace's, that counts what the step asked for."""

    def __init__(self, **policies):
        self.workspace = ndx.workspace(**policies)
        self.asked = []
        self.numpy_data = []

    @contextlib.contextmanager
    def __call__(self):
        before = ndx.memory.stats("host")
        with self.workspace:
            tracemalloc.start()
            yield
            # All traces of this step: the peak shows what was freed again, too.
            self.numpy_data.append(numpy_data_bytes())
            tracemalloc.stop()
        after = ndx.memory.stats("host")
        keys = ("system_allocations", "total_allocations")
        self.asked.append(tuple(after[key] - before[key] for key in keys))

    def check(self, least=10):
        """Check that the first step asked often, and those after it never."""
        # The first cycle is served by the backend, and its end makes the arena.
        assert self.asked[0][1] > least
        assert set(self.asked[1:]) == {(0, 0)}
        assert set(self.numpy_data[1:]) == {(0, 0)}
        stats = self.workspace.stats()
        assert stats["spilled_count"] == 0
        assert stats["total_spills"] == self.asked[0][1] - 1
