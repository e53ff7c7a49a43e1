"""Arrays leave a backend with ``evict`` when memory is short, and come back."""

import gc
import pickle

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.disks import cut
from helpers.examples import examples
from helpers.pools import Bytes, files, host
from helpers.together import run_together
from hypothesis import given
from hypothesis import strategies as st

import ndx

KIB = 2**10
MIB = 2**20
LIMIT = 4 * MIB


def evicting(place=None, limit=LIMIT, **options):
    return host(limit=limit, evict=place or host(), **options)


def filled(value, nbytes=MIB):
    return ndx.full(nbytes, value, dtype="uint8")


def homes(backend, arrays):
    """Return for each array whether it is at home."""
    return [each.backend is backend for each in arrays]


@pytest.mark.parametrize("make", [host, files, Bytes])
def test_the_array_that_was_not_used_for_longest_leaves(make):
    place = make()
    backend = evicting(place)
    with ndx.use(backend):
        arrays = [filled(i) for i in range(4)]
        arrays.append(filled(4))  # a first look: all were used, the oldest leaves
        assert homes(backend, arrays) == [False, True, True, True, True]
        assert int(ndx.sum(arrays[1])) == MIB
        arrays.append(filled(5))
        assert homes(backend, arrays) == [False, True, False, True, True, True]
        assert arrays[0].backend is arrays[2].backend is place
    assert [int(each[MIB - 1]) for each in arrays] == list(range(6))
    stats = backend.stats()
    assert stats["evicted_count"] == 2
    assert stats["away_bytes"] == stats["evicted_bytes"] == 2 * MIB
    assert place.stats()["allocated_bytes"] == 2 * MIB
    assert backend.relief()["helped_by_eviction"] == 2
    del arrays
    assert place.stats()["allocated_bytes"] == backend.stats()["away_bytes"] == 0
    assert backend.stats()["allocated_bytes"] == 0


def test_views_and_their_writes_follow():
    backend = evicting()
    with ndx.use(backend):
        x = filled(1)
        row, last = x[: MIB // 2], x[MIB - 1 :]
        others = [filled(0) for _ in range(4)]
        assert row.backend is last.backend is x.backend is not backend
        row[0], last[0] = 7, 8
        assert (int(x[0]), int(x[MIB - 1]), int(x[1])) == (7, 8, 1)
        x += 1
        assert (int(row[0]), int(last[0])) == (8, 9)
        others.clear()


def test_it_comes_back_where_there_is_room():
    backend = evicting()
    with ndx.use(backend):
        x = filled(3)
        others = [filled(0) for _ in range(4)]
        assert x.backend is not backend
        others[1:3] = []  # the result needs some bytes, too
        assert int(ndx.sum(x)) == 3 * MIB
        assert x.backend is backend
    stats = backend.stats()
    assert stats["returned_count"] == 1
    assert stats["away_bytes"] == 0


def test_what_is_used_often_takes_the_place_of_what_is_not():
    backend = evicting()
    with ndx.use(backend):
        arrays = [filled(i % 200) for i in range(12)]
        assert homes(backend, arrays) == 8 * [False] + 4 * [True]
        for _ in range(8):
            for x in arrays[2:5]:
                x += 1
        assert homes(backend, arrays[2:5]) == 3 * [True]
    assert [int(each[9]) for each in arrays] == [0, 1, 10, 11, 12, *range(5, 12)]
    assert backend.stats()["peak_reserved_bytes"] <= LIMIT


def test_a_loop_over_more_than_fits_moves_little():
    backend = evicting()
    with ndx.use(backend):
        arrays = [filled(i) for i in range(16)]
        before = backend.stats()["evicted_count"]
        for _ in range(100):
            for x in arrays:
                x += 1
    # Of 1,600 uses.
    assert backend.stats()["evicted_count"] - before < 100


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(np.asarray, id="numpy"),
        pytest.param(memoryview, id="buffer"),
        pytest.param(lambda x: np.from_dlpack(x), id="dlpack"),
    ],
)
def test_what_foreign_code_reads_stays(use):
    backend = evicting()
    with ndx.use(backend):
        x = filled(5)
        view = use(x)
        others = [filled(0) for _ in range(6)]
        assert x.backend is backend
        assert np.asarray(view)[MIB - 1] == 5
        del view
        others += [filled(0) for _ in range(3)]
        assert x.backend is not backend
    assert len(others) == 9


def test_small_arrays_and_those_of_workspaces_stay_until_they_escape():
    backend = evicting()
    with ndx.use(backend):
        small = ndx.full(KIB, 1, dtype="uint8")
        with ndx.workspace("evicted", size="1MiB", learn="none"):
            inside = filled(2, 512 * KIB)
            others = [filled(0).detach() for _ in range(6)]
            assert inside.attached
            assert int(inside[0]) == 2
            escaped = inside.detach()
        others += [filled(0) for _ in range(6)]
        assert small.backend is backend
        assert escaped.backend is not backend
        assert int(escaped[512 * KIB - 1]) == 2


def test_results_of_numpy_leave_too():
    backend = evicting()
    with ndx.use(backend):
        arrays = [np.kron(filled(i, KIB), filled(1, KIB)) for i in range(8)]
        assert [type(each) for each in arrays] == 8 * [ndx.NDArray]
        assert homes(backend, arrays).count(False) >= 4
    assert [int(each[MIB - 1]) for each in arrays] == list(range(8))
    assert backend.stats()["away_bytes"] >= 4 * MIB
    del arrays
    assert backend.stats()["allocated_bytes"] == backend.stats()["away_bytes"] == 0


def test_what_was_used_before_memory_was_short_stays():
    backend = evicting(limit=LIMIT + 64 * KIB)
    with ndx.use(backend):
        arrays = [filled(i) for i in range(4)]
        arrays[0] += 1
        arrays.append(filled(4))
    assert homes(backend, arrays) == [True, False, True, True, True]


def test_a_place_that_has_room_again_is_asked_again():
    class Ring:
        pass

    backend = evicting(files(limit=MIB), limit=2 * MIB)
    with ndx.use(backend):
        arrays = [filled(i) for i in range(3)]
        ring = Ring()
        ring.me, ring.array = ring, arrays.pop(0)
        del ring
        arrays.append(filled(3))
    assert [int(each[0]) for each in arrays] == [1, 2, 3]


def test_a_request_that_can_not_be_served_moves_nothing():
    backend = evicting(files(limit=MIB))
    with ndx.use(backend):
        arrays = [filled(i) for i in range(4)]
        with pytest.raises(ndx.OutOfMemoryError, match="did not leave for 'mmap'"):
            filled(9, 3 * MIB)
    assert homes(backend, arrays) == 4 * [True]


def test_the_fallback_of_a_place():
    beyond = host()
    with ndx.use(evicting(host(limit=MIB, fallback=beyond), limit=2 * MIB)):
        arrays = [filled(i) for i in range(6)]
    assert any(each.backend is beyond for each in arrays)


def test_a_forked_child_does_without_the_files():
    words = run_python("""
        import os
        import ndx
        from ndx.backends import HostBackend, MmapBackend
        backend = HostBackend(limit="2MiB", evict=MmapBackend())
        with ndx.use(backend):
            arrays = [ndx.full(2**20, i, dtype="uint8") for i in range(4)]
        child = os.fork()
        if child == 0:
            try:
                for _ in range(4):
                    assert [int(ndx.max(x)) for x in arrays] == [0, 1, 2, 3]
                with ndx.use(backend):
                    try:
                        ndx.ones(2**18)
                    except ndx.OutOfMemoryError:
                        os._exit(0)
                os._exit(2)
            finally:
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """)
    assert words == "0\n"


def test_nothing_can_leave():
    backend = evicting()
    with ndx.use(backend):
        views = [np.asarray(filled(1)) for _ in range(4)]
        with pytest.raises(ndx.OutOfMemoryError):
            filled(2)
        views.pop()
        filled(2)
    full = evicting(host(limit=0))
    with ndx.use(full):
        arrays = [filled(i) for i in range(4)]
        with pytest.raises(ndx.OutOfMemoryError):
            filled(5)
    assert homes(full, arrays) == 4 * [True]
    assert full.stats()["evicted_count"] == 0


def test_a_fallback_serves_what_eviction_can_not():
    fallback = host()
    backend = evicting(host(limit=MIB), fallback=fallback)
    with ndx.use(backend):
        arrays = [filled(i) for i in range(6)]
    assert sum(each.backend is fallback for each in arrays) == 1
    assert [int(each[0]) for each in arrays] == list(range(6))


def test_a_limit_of_the_process_lets_arrays_leave():
    place = files()
    backend = host(evict=place)
    with ndx.use(backend):
        arrays = [filled(i) for i in range(8)]
        before = ndx.memory.limits()
        try:
            ndx.memory.empty_cache()
            ndx.memory.set_limit(ndx.memory.process_info().reserved + 4 * MIB)
            arrays += [filled(i) for i in range(8, 40)]
        finally:
            ndx.memory.set_limits(before)
    assert any(each.backend is place for each in arrays)
    assert [int(each[0]) for each in arrays] == list(range(40))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"evict": 3}, TypeError, "evict must be"),
        ({"evict": "nowhere"}, ValueError, "unknown backend 'nowhere'"),
    ],
)
def test_places_that_are_none(options, error, words):
    with pytest.raises(error, match=words):
        ndx.backends.get("host", **options)


def test_arrays_do_not_leave_for_a_device():
    class Device(Bytes):
        device_kind = "evictions"

    class Home(ndx.backends.PooledBackend):
        device_kind = "evictions"

    with pytest.raises(ValueError, match="is not memory of cpu"):
        evicting(Device())
    # Copies on a device have an order, which this one does not know.
    with pytest.raises(ValueError, match="Device has no order of copies"):
        Home(ndx.backends.Source(), evict=Device())


def test_options_show_it():
    place = host()
    backend = ndx.backends.get("host", evict=place)
    assert backend.options.evict is place
    assert "evict=" in repr(backend.options)


def test_the_backend_goes_before_its_arrays():
    place = host()
    backend = evicting(place)
    with ndx.use(backend):
        arrays = [filled(i) for i in range(6)]
    kept = arrays[0]
    del arrays, backend
    gc.collect()
    assert int(ndx.sum(kept)) == 0
    assert kept.backend is place
    del kept
    assert place.stats()["allocated_bytes"] == 0


def test_closed_and_pickled_away():
    backend = evicting()
    with ndx.use(backend):
        arrays = [filled(i) for i in range(6)]
    first, second = arrays[:2]
    assert pickle.loads(pickle.dumps(second))[0] == 1
    first.close()
    with pytest.raises(ndx.StaleArrayError):
        first + 1
    assert backend.stats()["away_bytes"] <= 2 * MIB


def test_live_arrays_are_those_of_where_they_are():
    backend = evicting()
    with ndx.use(backend):
        arrays = [filled(i) for i in range(6)]
    live = ndx.memory.live(backend)
    assert live.nbytes == backend.stats()["allocated_bytes"] == 4 * MIB
    assert len(arrays) == 6


def test_what_is_lost_away_is_not_brought_back_as_zeros(tmp_path):
    backend = evicting(files(directory=tmp_path))
    with ndx.use(backend):
        arrays = [filled(i + 1) for i in range(6)]
        assert cut(tmp_path)
        arrays[3:] = []  # now there is room
        for _ in range(2):
            with pytest.raises(ndx.MappedFileError):
                ndx.sum(arrays[0])
        assert int(arrays[2][0]) == 3


def test_recordings_know_where_arrays_went():
    backend = evicting()
    with ndx.memory.record() as recording, ndx.use(backend):
        arrays = [filled(i) for i in range(6)]
        kinds = [each.kind for each in recording.events]
    moved = [each for each in recording.events if each.freed == "moved"]
    assert kinds.count("allocate") == 8
    assert {each.array for each in moved} == {0, 1}
    del arrays


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["make", "drop", "write", "add", "view", "sum", "export", "end", "close"]
        ),
        st.integers(0, 7),
        st.integers(1, 12),
    ),
    max_size=60,
)


@examples(60)
@given(STEPS)
def test_programs_compute_what_they_would_without(steps):
    backend = evicting(files())
    arrays, models, exports = {}, {}, {}
    with ndx.use(backend):
        for op, i, size in steps:
            if op == "make":
                exports.pop(i, None)
                arrays.pop(i, None)
                arrays[i] = ndx.full(size * 120 * KIB, i, dtype="uint8")
                models[i] = np.full(size * 120 * KIB, i, dtype="uint8")
            elif i not in arrays:
                continue
            elif op == "drop":
                exports.pop(i, None)
                del arrays[i], models[i]
            elif op == "write":
                arrays[i][size :: 2 * size] = size
                models[i][size :: 2 * size] = size
            elif op == "add":
                arrays[i] += arrays[i][:1]
                models[i] += models[i][:1]
            elif op == "view":
                arrays[i] = arrays[i][size:]
                models[i] = models[i][size:]
            elif op == "sum":
                assert int(ndx.sum(arrays[i])) == int(models[i].sum(dtype="uint64"))
            elif op == "export":
                exports[i] = np.asarray(arrays[i])
            elif op == "end":
                exports.pop(i, None)
            elif op == "close" and i not in exports:
                arrays.pop(i).close()
                del models[i]
            stats = backend.stats()
            assert stats["reserved_bytes"] <= LIMIT
        for i in list(arrays):
            exports.pop(i, None)
            assert np.array_equal(np.asarray(arrays.pop(i)), models[i])
    assert backend.stats()["allocated_bytes"] == backend.stats()["away_bytes"] == 0


THREADS = {
    "arrays move while others use them": """
    limit = 2**23
    place = ndx.backends.HostBackend()
    backend = ndx.backends.HostBackend(limit=limit, evict=place)
    with ndx.use(backend):
        shared = [ndx.full(2**18, i, dtype="uint8") for i in range(40)]
    def work():
        with ndx.use(backend):
            for i in range(ROUNDS // 4):
                x = shared[i * 7 % 40]
                kept = ndx.full(2**19, 1, dtype="uint8")
                assert int(x[i]) == i * 7 % 40
                assert int(ndx.max(x)) == i * 7 % 40
                assert int(ndx.sum(x[:1000] + kept[:1000]) ) % 256 == (
                    1000 * (i * 7 % 40 + 1)) % 256
                y = x[10:]
                z = np.asarray(y)
                assert z[-1] == i * 7 % 40
                assert backend.stats()["reserved_bytes"] <= limit
    run(*[work] * 6)
    del shared
    assert backend.stats()["allocated_bytes"] == backend.stats()["away_bytes"] == 0
    assert place.stats()["allocated_bytes"] == 0
    """,
}


@pytest.mark.parametrize("name", THREADS)
def test_threads(name):
    run_together(THREADS[name])
