"""What the package keeps for reuse: bounded, counted, emptied."""

import gc
import os
import sys
import threading

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.pools import check
from helpers.sanitizers import counts_pages
from helpers.together import only_with_free_lists

import ndx
from ndx import memory

MANY = 5000

# CPython's own allocator, without the checks that `PYTHONMALLOC=debug` adds.
PLAIN = {"PYTHONMALLOC": "pymalloc"}

RESIDENT = """
    import sys
    import ndx

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    count = int(sys.argv[1])
    arrays = [None] * count
    ndx.ones(1), ndx.ones(9)
    ndx.memory.empty_cache()
    before = resident()
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def entries(name):
    return memory.caches()[name]["entries"]


@only_with_free_lists
@linux
@counts_pages
def test_small_arrays_take_little():
    said = run_python(
        RESIDENT
        + """
    for i in range(count):
        arrays[i] = ndx.ones(1)
    print((resident() - before) / count)
    """,
        200_000,
        environment=PLAIN,
    )
    assert float(said) <= 200


@only_with_free_lists
@linux
@counts_pages
@pytest.mark.parametrize(
    "dropped",
    [
        "arrays[i] = ndx.ones(1)",
        "arrays[i] = ndx.ones(9)",
        "arrays[i] = numpy.asarray(ndx.ones(1))",
        "arrays[i] = ndx.ones(2)[1:]",
        "arrays[i] = ndx.ones(9)[1:2]",
    ],
)
def test_what_is_dropped_is_given_back(dropped):
    said = run_python(
        RESIDENT.replace("import sys", "import sys, numpy")
        + f"""
    for i in range(count):
        {dropped}
    held = resident() - before
    del arrays
    ndx.memory.empty_cache()
    print(held, resident() - before)
    """,
        300_000,
        environment=PLAIN,
    )
    held, kept = map(int, said.split())
    assert held > 40 * 2**20
    assert kept <= held // 8


@only_with_free_lists
def test_the_lists_have_bounds():
    many = [ndx.ones(9) for _ in range(MANY)]
    views = [np.asarray(x) for x in many]
    del many, views
    ws = ndx.workspace("many small")
    with ws:
        many = [ndx.ones(1) for _ in range(MANY)]
    del many
    found = memory.caches()
    for name in ("array objects", "blocks"):
        assert 0 < found[name]["entries"] <= found[name]["most"]
        assert found[name]["nbytes"] >= 40 * found[name]["entries"]
    for each in found.values():
        assert each["most"] is None or each["entries"] <= each["most"]
    ws.destroy()


@only_with_free_lists
def test_they_are_emptied():
    del [ndx.ones(9) for _ in range(MANY)][:]
    assert entries("blocks") > 0
    memory.empty_cache()
    # What answers is not made of arrays.
    assert entries("blocks") == entries("array objects") == 0
    assert entries("descriptions of pools") == 0
    assert float(ndx.ones(9)[0]) == 1


@only_with_free_lists
def test_a_cache_of_one_backend_is_that_of_its_pool():
    del [ndx.ones(9) for _ in range(MANY)][:]
    before = entries("blocks")
    memory.empty_cache("host")
    assert entries("blocks") == before > 0


def test_descriptions_go_while_arrays_live():
    backend = ndx.backends.HostBackend()
    with ndx.use(backend):
        kept = [ndx.full(9, 0.0)]
        for _ in range(5):
            many = [ndx.full(9, float(i)) for i in range(MANY)]
            # Every seventh lives on, so that no slab but the last few is unused.
            kept += many[::7]
            del many
            memory.empty_cache()
            check(backend)
        many = [ndx.full(9, 7.0) for _ in range(MANY)]
    assert [x[2].item() for x in kept[1:]] == [float(i) for i in range(0, MANY, 7)] * 5
    assert all(x[0].item() == 7 for x in many)
    del many, kept
    # More slabs than are kept became unused by this.
    backend.trim()
    check(backend)
    assert backend.stats()["reserved_bytes"] == 0


def test_exports_outlive_their_arrays():
    expected = [float(i) for i in range(MANY)]
    views = [np.from_dlpack(ndx.full(1, x)) for x in expected]
    views += [memoryview(ndx.full(1, x)) for x in expected]
    memory.empty_cache()
    others = [ndx.full(1, -1.0) for _ in range(2 * MANY)]
    assert [float(view[0]) for view in views] == 2 * expected
    del views
    memory.empty_cache()
    assert all(x.item() == -1 for x in others)


def test_the_collector_may_empty_them():
    """A finalizer that empties the caches runs in the middle of allocations."""

    class Emptier:
        def __del__(self):
            memory.empty_cache()

    thresholds = gc.get_threshold()
    gc.set_threshold(50, 2, 2)
    try:
        kept = []
        for i in range(300):
            cycle = Emptier()
            cycle.own = cycle
            del cycle
            kept.append([ndx.full(n, float(i)) + 1 for n in (1, 3, 20)])
    finally:
        gc.set_threshold(*thresholds)
    for i, arrays in enumerate(kept):
        assert all((np.asarray(x) == i + 1).all() for x in arrays)


@pytest.mark.threads
def test_threads_empty_them_while_others_make_arrays():
    wrong = []
    done = threading.Event()

    def make(n):
        for i in range(300):
            many = [ndx.full(n, float(i)) for _ in range(20)]
            views = [np.asarray(x) for x in many]
            del many
            if any((view != i).any() for view in views):
                wrong.append((n, i))

    def empty():
        while not done.is_set():
            memory.empty_cache()

    makers = [threading.Thread(target=make, args=(n,)) for n in (1, 2, 3, 30)]
    emptier = threading.Thread(target=empty)
    for each in [*makers, emptier]:
        each.start()
    for each in makers:
        each.join()
    done.set()
    emptier.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_its_own():
    run_python("""
        import os
        import ndx

        many = [ndx.full(1, float(i)) for i in range(3000)]
        more = [ndx.full(9, float(i)) for i in range(3000)]
        child = os.fork()
        if not child:
            ndx.memory.empty_cache()
            del more[::2]
            made = [ndx.full(n, -1.0) for n in (1, 3) for _ in range(3000)]
            assert [x.item() for x in many] == list(map(float, range(3000)))
            del many, more, made
            ndx.memory.empty_cache()
            assert ndx.memory.allocated("host") == 0
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert [x.item() for x in many] == list(map(float, range(3000)))
    """)
