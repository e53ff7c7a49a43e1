"""Arrays leave a GPU for memory of the host when it is short, and come back."""

import gc
import threading

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st
from ndx._cuda.bridge import address_of

import ndx
from ndx.backends import _cupy

from .conftest import made_or_skip

MIB = 1 << 20
LIMIT = "8MiB"


def evicting(**options):
    return ndx.backends.get("cuda:0", **{"limit": LIMIT, "evict": "host", **options})


def filled(value, nbytes=2 * MIB):
    return ndx.full(nbytes, value, dtype="uint8")


def homes(arrays):
    return [x.backend.name == "cuda:0" for x in arrays]


def test_the_array_that_was_not_used_for_longest_leaves(gpu):
    backend = evicting()
    place = ndx.backends.get("cudahost:0")
    assert backend.options.evict is place
    with ndx.use(backend):
        arrays = [filled(i) for i in range(4)]
        arrays.append(filled(4))
        assert homes(arrays) == [False, True, True, True, True]
        assert {x.device for x in arrays} == {ndx.Device("cuda:0")}
        if gpu is not None:
            where = address_of(arrays[0])
            assert gpu.host_range(where, 2 * MIB)
    for i, x in enumerate(arrays):
        assert int(x.to_device("cpu")[2 * MIB - 1]) == i
    stats = backend.stats()
    assert stats["evicted_bytes"] >= stats["away_bytes"] >= 2 * MIB
    assert stats["reserved_bytes"] <= 8 * MIB
    assert backend.relief()["helped_by_eviction"] >= 1
    del arrays, x
    assert place.stats()["allocated_bytes"] == backend.stats()["away_bytes"] == 0


def test_views_and_their_writes_follow(gpu):
    with ndx.use(evicting()):
        x = filled(1)
        row = x[: MIB // 2]
        others = [filled(0) for _ in range(4)]
        assert homes([x, row]) == [False, False]
        row[0] = 7
        assert (int(x[0]), int(x[1])) == (7, 1)
        x += 1
        assert int(row[0]) == 8
        others.clear()


def test_it_comes_back_where_there_is_room(gpu):
    backend = evicting()
    with ndx.use(backend):
        x = filled(3)
        others = [filled(0) for _ in range(4)]
        assert homes([x]) == [False]
        others[1:] = []
        assert int(ndx.max(x)) == 3
        assert homes([x]) == [True]
    assert backend.stats()["returned_count"] == 1
    assert backend.stats()["away_bytes"] == 0


def test_what_is_used_often_takes_the_place_of_what_is_not(gpu):
    backend = evicting(limit="10MiB")  # of which 2 MiB are for small arrays
    with ndx.use(backend):
        arrays = [filled(i) for i in range(8)]
        for _ in range(8):
            for x in arrays[1:3]:
                x += 1
        assert homes(arrays[1:3]) == [True, True]
        found = [int(x.to_device("cpu")[9]) for x in arrays]
    assert found == [0, 9, 10, 3, 4, 5, 6, 7]
    assert backend.stats()["peak_reserved_bytes"] <= 10 * MIB


def test_it_waits_for_the_streams_that_use_it(machine, stand_in):
    a, b = stand_in[0].cuda.Stream(), stand_in[0].cuda.Stream()
    with ndx.use("pinned", limit="16MiB"):
        source, out = (ndx.full(2 * MIB, k, dtype="uint8") for k in (5, 0))
    backend = evicting()
    with ndx.use(backend):
        with a:
            x = source.to_device("cuda:0")  # written late
        with b:
            x[:0] + 1
            runtime = _cupy.load().cuda.runtime
            # Read late.
            runtime.memcpyAsync(address_of(out), address_of(x), x.nbytes, 4, b.ptr)
        machine.calls.clear()
        others = [filled(i) for i in range(4)]
        assert homes([x]) == [False]
        waits = [call[1] for call in machine.calls if call[0] == "streamSynchronize"]
        assert {a.ptr, b.ptr} <= set(waits)
        assert int(ndx.min(x)) == int(ndx.max(x)) == 5
        del others
    assert out.tolist() == [5] * 2 * MIB
    del x
    for each in (a, b):
        backend.close_stream(each.ptr)
        ndx.backends.get("cudahost:0").close_stream(each.ptr)


@pytest.mark.parametrize("use", [ndx.cuda.share, lambda x: x.__dlpack__()])
def test_what_others_read_stays(gpu, use):
    with ndx.use(evicting()):
        x = filled(1)
        held = use(x)
        others = [filled(0) for _ in range(4)]
        assert homes([x]) == [True]
        assert homes(others).count(False) == 1
        del held


def test_a_use_while_it_is_copied_keeps_it(machine, monkeypatch):
    """The copy is of another time then, and is dropped."""
    runtime = _cupy.load().cuda.runtime
    copy = type(runtime).memcpyAsync
    used = []
    backend = evicting()
    with ndx.use(backend):
        arrays = [filled(i) for i in range(4)]

        def copied(self, *args):
            copy(self, *args)
            monkeypatch.undo()
            used.append(args)
            arrays[0][:] = 9

        monkeypatch.setattr(type(runtime), "memcpyAsync", copied)
        arrays.append(filled(7))
        assert len(used) == 1
        assert homes(arrays) == [True, False, True, True, True]
        found = [(int(ndx.min(x)), int(ndx.max(x))) for x in arrays]
    assert found == [(9, 9), (1, 1), (2, 2), (3, 3), (7, 7)]
    arrays.clear()
    gc.collect()
    assert backend.stats()["allocated_bytes"] == backend.stats()["away_bytes"] == 0


def test_a_copy_that_fails(machine, monkeypatch):
    runtime = _cupy.load().cuda.runtime
    failed = []

    def fail(self, *args):
        failed.append(args)
        raise runtime.CUDARuntimeError(1)

    backend = evicting()
    with ndx.use(backend):
        arrays = [filled(i) for i in range(4)]
        with monkeypatch.context() as patch, pytest.MonkeyPatch.context() as hook:
            told = []
            hook.setattr("sys.unraisablehook", lambda told_of: told.append(told_of))
            patch.setattr(type(runtime), "memcpyAsync", fail)
            with pytest.raises(ndx.OutOfMemoryError, match="evict="):
                filled(4)
        assert failed
        assert told
        assert homes(arrays) == [True] * 4
        # They can leave later.
        arrays.append(filled(4))
        assert homes(arrays).count(False) == 1
        found = [int(x.to_device("cpu")[5]) for x in arrays]
    assert found == [0, 1, 2, 3, 4]
    told.clear()


def test_the_limit_of_a_gpu(gpu):
    ndx.memory.set_limit("8MiB", device="cuda:0")
    try:
        with ndx.use(evicting(limit=None)):
            arrays = [filled(i) for i in range(6)]
            assert homes(arrays).count(True) == 4
            del arrays
    finally:
        ndx.memory.set_limit(None, device="cuda:0")


def test_to_files_from_there(gpu, monkeypatch, tmp_path):
    if gpu is None:
        pytest.skip("few real GPUs reach files")
    monkeypatch.setattr(gpu, "pageable", True)
    files = ndx.backends.get("cudammap:0", directory=tmp_path)
    host = ndx.backends.get("cudahost:0", limit="4MiB", fallback=files)
    with ndx.use(evicting(evict=host)):
        arrays = [filled(i) for i in range(9)]
        names = [x.backend.name for x in arrays]
        assert sorted(set(names)) == ["cuda:0", "cudahost:0", "cudammap:0"]
        found = [int(x.to_device("cpu")[3]) for x in arrays]
    assert found == list(range(9))


@pytest.mark.parametrize("source", ["managed", "virtual", "async"])
def test_other_sources(machine, source):
    with ndx.use(evicting(source=source)) as backend:
        arrays = [filled(i) for i in range(6)]
        assert 1 <= homes(arrays).count(False) <= 4
        found = [int(x.to_device("cpu")[3]) for x in arrays]
        assert found == list(range(6))
        assert backend.stats()["reserved_bytes"] <= 8 * MIB


def test_to_another_gpu(gpu):
    made_or_skip(ndx.backends.get, "cudapeer:0")
    with ndx.use(evicting(evict="cuda:1")):
        arrays = [filled(i) for i in range(6)]
        assert {x.backend.name for x in arrays} == {"cuda:0", "cudapeer:0"}
        found = [int(x.to_device("cpu")[3]) for x in arrays]
    assert found == list(range(6))


def test_graphs(gpu):
    with ndx.use(evicting(limit="32MiB")):
        x, y = filled(1), filled(10)

        @ndx.cuda.graph
        def step(x):
            x += 1
            x += y
            return x

        for _ in range(3):
            step(x)
        for _ in range(3):
            others = [filled(0) for _ in range(20)]
            # What the graph reads besides stays; its argument is another one, away.
            assert homes([x, y]) == [False, True]
            del others
            step(x)
        assert int(ndx.min(x)) == int(ndx.max(x)) == 67
        step.reset()


def test_only_what_the_gpu_can_address(gpu):
    for wrong in (ndx.backends.get("mmap"), "pinned", ndx.backends.get("cuda:1")):
        with pytest.raises(ValueError, match="is not memory of cuda:0.*evict='host'"):
            ndx.use("cuda:0", evict=wrong)
    with pytest.raises(ValueError, match="is not memory of cpu"):
        ndx.use("host", evict="cudahost:0")


@given(st.lists(st.tuples(
    st.sampled_from(["make", "drop", "write", "read", "move"]), st.integers(0, 9)),
    max_size=25))  # fmt: skip
@examples(25)
def test_any_sequence(gpu, steps):
    """Against NumPy's arrays, which have the same done to them."""
    with ndx.use(evicting()) as backend:
        kept = []
        for what, k in steps:
            if what == "make" and len(kept) < 9:
                kept.append((filled(k, MIB), np.full(MIB, k, "uint8")))
            elif not kept:
                continue
            elif what == "drop":
                kept.pop(k % len(kept))
            elif what == "write":
                x, model = kept[k % len(kept)]
                x[k::7] = k
                model[k::7] = k
            elif what == "read":
                x, model = kept[k % len(kept)]
                assert int(ndx.max(x)) == model.max()
            else:
                x, model = kept[k % len(kept)]
                x += 1
                model += 1
            assert backend.stats()["reserved_bytes"] <= 8 * MIB
        for x, model in kept:
            assert np.array_equal(np.asarray(x.to_device("cpu")), model)
        x = model = None
        kept.clear()
    assert backend.stats()["allocated_bytes"] == backend.stats()["away_bytes"] == 0


@pytest.mark.threads
def test_threads(gpu):
    backend = evicting(limit="12MiB")
    failures = []

    def work(k):
        try:
            with ndx.use(backend):
                arrays = [filled(k, MIB) for _ in range(4)]
                for i in range(10):
                    x = arrays[i % 4]
                    x += 1
                    arrays[(i + 1) % 4] = arrays[(i + 1) % 4] + 0
                total = sum(int(ndx.max(x)) for x in arrays)
                assert total == sum(int(ndx.min(x)) for x in arrays)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    gc.collect()
    assert backend.stats()["allocated_bytes"] == backend.stats()["away_bytes"] == 0
