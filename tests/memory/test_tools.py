"""What tools that watch the memory of a process see of arrays."""

import contextlib
import gc
import importlib.util
import inspect
import sys
import tracemalloc

import numpy as np
import pytest
from helpers.commands import call, run_python
from helpers.pools import Bytes
from helpers.sanitizers import counts_pages
from helpers.threads import wait_until

import ndx
import ndx.numpy
from ndx.backends import HostBackend

COUNT = 50_000
NBYTES = 8 * COUNT


class Traced:
    """The arrays that `tracemalloc` knows, while it is on."""

    def ranges(self):
        """Return (file, line, bytes) of the ranges in the domain of ndx."""
        found = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.DomainFilter(True, ndx.memory.TRACEMALLOC_DOMAIN)]
        )
        return [
            (trace.traceback[0].filename, trace.traceback[0].lineno, trace.size)
            for trace in found.traces
        ]

    def nbytes(self):
        return sum(size for _, _, size in self.ranges())


@pytest.fixture
def traced():
    was_on = tracemalloc.is_tracing()
    gc.collect()
    tracemalloc.stop()
    tracemalloc.start()
    try:
        yield Traced()
    finally:
        tracemalloc.stop()
        if was_on:
            tracemalloc.start()


def saved(folder):
    path = folder / "x.npy"
    ndx.save(path, ndx.ones(COUNT))
    return path


# Each makes an array of NBYTES or more, outside of workspaces.
ROADS = {
    "ones": lambda _: ndx.ones(COUNT),
    "empty": lambda _: ndx.empty(COUNT),
    "zeros": lambda _: ndx.zeros(COUNT),
    "arange": lambda _: ndx.arange(COUNT),
    "operator": lambda _: ndx.broadcast_to(ndx.asarray(1.0), (COUNT,)) + 1.0,
    "NumPy's result": lambda _: ndx.numpy.kron(ndx.ones(COUNT // 2), ndx.ones(2)),
    "copy of NumPy's": lambda _: ndx.asarray(np.ones(COUNT), copy=True),
    "load": lambda folder: ndx.load(saved(folder)),
    "buffer": lambda _: ndx.backends.Buffer("host", NBYTES),
}


@pytest.mark.parametrize("road", sorted(ROADS))
def test_each_road_to_an_array_is_seen_by_its_line(road, traced, tmp_path):
    make = ROADS[road]
    x = make(tmp_path)
    (seen,) = traced.ranges()
    assert seen[0] == __file__
    assert seen[1] == inspect.getsourcelines(make)[1]
    assert seen[2] >= NBYTES
    del x
    assert traced.ranges() == []


BACKENDS = {
    "host": lambda: "host",
    "mmap": lambda: "mmap",
    "round": lambda: HostBackend(pool="round"),
    "unpooled": lambda: HostBackend(pool="unpooled"),
    "arena": lambda: HostBackend(pool="arena", initial="4MiB"),
    "user": Bytes,
    "fallback": lambda: HostBackend(limit="64KiB", fallback=Bytes()),
    "adaptor": lambda: ndx.memory.TrackingAdaptor(HostBackend()),
}


@pytest.mark.parametrize("kind", sorted(BACKENDS))
def test_each_kind_of_backend_is_seen(kind, traced):
    with ndx.use(BACKENDS[kind]()):
        x = ndx.ones(COUNT)
        (seen,) = traced.ranges()
        assert seen[0] == __file__
        assert NBYTES <= seen[2] <= NBYTES + 64
        del x
    assert traced.ranges() == []


@pytest.mark.parametrize(
    "options",
    [{}, {"size": "1MiB"}, {"reset": "ring", "slots": 2},
     {"spill": "mmap", "size": "64KiB"}, {"escape": "detach"}],
    ids=str,
)  # fmt: skip
def test_workspaces_are_seen_and_leave_nothing(options, traced):
    workspace = ndx.workspace(**options)
    for _ in range(4):
        with workspace:
            x = ndx.ones(COUNT)
            assert traced.nbytes() >= NBYTES
            kept = ndx.sum(x).detach()
            if options.get("escape") != "detach":
                del x
    if "escape" in options:
        assert traced.nbytes() >= 2 * NBYTES
        del x
    del kept
    workspace.destroy()
    assert traced.ranges() == []


@pytest.mark.threads
def test_prefetched_batches_leave_nothing(traced):
    prefetch = ndx.prefetch([np.ones(COUNT)] * 6)
    assert all(len(batch) == COUNT and traced.nbytes() >= NBYTES for batch in prefetch)
    del prefetch
    # Its thread ends by itself.
    wait_until(lambda: not traced.ranges())


def test_detached_arrays_are_seen(traced):
    with ndx.workspace(size="4MiB") as workspace:
        x = ndx.ones(COUNT).detach()
    workspace.destroy()
    assert [size for _, _, size in traced.ranges()] == [NBYTES]
    del x
    assert traced.ranges() == []


def test_arrays_of_numpy_are_counted_once(traced):
    with ndx.use("host", numpy=True):
        x = np.ones(COUNT)
        assert traced.ranges() == []
        assert NBYTES <= tracemalloc.get_traced_memory()[0] < 1.5 * NBYTES
    del x
    result = ndx.numpy.kron(ndx.ones(COUNT), ndx.ones(2))
    # It has a header before it.
    assert [size - 64 for _, _, size in traced.ranges()] == [result.nbytes]
    assert 2 * NBYTES <= tracemalloc.get_traced_memory()[0] < 2.5 * NBYTES


def test_what_was_there_before_the_start_confuses_nothing():
    tracemalloc.stop()
    x = ndx.ones(COUNT)
    tracemalloc.start()
    try:
        del x
        y = ndx.ones(COUNT)
        tracemalloc.stop()
        del y
        tracemalloc.start()
        assert Traced().ranges() == []
    finally:
        tracemalloc.stop()


def test_programs_under_ndx_run_are_seen(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tracemalloc, numpy as np, ndx\n"
        "tracemalloc.start()\n"
        f"x, y = np.ones({COUNT}), ndx.ones({COUNT})\n"
        "print(tracemalloc.get_traced_memory()[0])\n"
        "del x, y\n"
        "print(tracemalloc.get_traced_memory()[0])\n"
    )
    done = call("run", program, cwd=tmp_path)
    both, none = map(int, done.stdout.split()[:2])
    assert 2 * NBYTES <= both < 2.2 * NBYTES
    assert none < 0.2 * NBYTES


def test_a_refused_array_is_not_seen(traced):
    with ndx.use(HostBackend(limit="64KiB")), contextlib.suppress(ndx.OutOfMemoryError):
        ndx.ones(COUNT)
    assert traced.ranges() == []


def test_purged_and_reused_pages_hold_what_was_written():
    backend = HostBackend(idle_release=None)
    with ndx.use(backend):
        rng = np.random.default_rng(3)
        kept = {}
        for turn in range(600):
            n = int(rng.choice([20, 300, 9_000, 70_000, 700_000]))
            kept[turn % 61] = (turn, ndx.full(n, float(turn)))
            if turn % 7 == 0:
                kept.pop(int(rng.integers(61)), None)
            if turn % 50 == 0:
                backend.trim()
            zeros = ndx.zeros(n)
            assert not ndx.any(zeros)
        for value, x in kept.values():
            assert ndx.all(x == float(value))


@pytest.mark.skipif(sys.platform != "linux", reason="the figures are Linux's")
@counts_pages
@pytest.mark.parametrize("limit", [None, 4 * 2**30])
def test_the_figures_of_tools_are_near_those_of_numpy(limit):
    import footprint

    rows = list(footprint.rows(limit))
    assert len(rows) == 2 + (importlib.util.find_spec("memray") is not None)
    for what, numpy, ours in rows:
        assert abs(ours / numpy - 1) <= footprint.MOST, what


@pytest.mark.skipif(sys.platform != "linux", reason="hidden reservations are Linux's")
def test_reserved_address_space_is_no_memory_for_memray(tmp_path):
    pytest.importorskip("memray")
    program = """
        import sys, memray, ndx
        with memray.Tracker(sys.argv[1]):
            x = ndx.ones(1_000_000)
        print(memray.FileReader(sys.argv[1]).metadata.peak_memory)
        """
    peak = int(run_python(program, tmp_path / "program.bin"))
    assert 8_000_000 <= peak < 8_800_000 + 2**21


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@counts_pages
def test_the_import_runs_no_blas():
    """OpenBLAS reserves 32 MiB at its first product, which profilers see as memory."""
    said = run_python("""
        import numpy

        def large():
            with open("/proc/self/maps") as file:
                bounds = [line.split()[0].split("-") for line in file]
            sizes = [int(end, 16) - int(start, 16) for start, end in bounds]
            return sum(2**25 <= each < 2**26 for each in sizes)

        before = large()
        import ndx, ndx.numpy
        print(large() - before)
        ndx.ones((3, 3)) @ ndx.ones((3, 3)).T
        """)
    assert said.strip() == "0"
