"""Memory that backends have in advance, or keep free; how sizes are rounded."""

import os
import subprocess
import sys

import pytest
from helpers.pools import MAKERS, check
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx import memory
from ndx.backends import HostBackend, PythonBackend, SimulatedBackend

MIB = 2**20


# ------------------------------------------------------- what is reserved in advance


@pytest.mark.parametrize("kind", ["split", "round", "naive"])
@pytest.mark.parametrize("source", sorted(MAKERS))
def test_initial_memory_is_there_at_the_start_and_serves(source, kind):
    backend = MAKERS[source](pool=kind, initial="4MiB")
    stats = backend.stats()
    held = stats["reserved_bytes"]
    assert held >= 4 * MIB
    assert stats["allocated_bytes"] == stats["peak_bytes"] == 0
    with ndx.use(backend):
        x = ndx.full(4 * MIB // 8, 7.0)
        assert backend.stats()["reserved_bytes"] == held
        assert memoryview(x).tolist() == [7.0] * x.size
    del x
    check(backend)
    assert backend.stats()["reserved_bytes"] == held
    backend.trim()
    assert backend.stats()["reserved_bytes"] == 0


def test_initial_memory_that_can_not_be_had():
    with pytest.raises(ValueError, match="pool='unpooled' keeps none"):
        HostBackend(pool="unpooled", initial="1MiB")
    with pytest.raises(ValueError, match="is more than limit="):
        HostBackend(limit="1MiB", initial="2MiB")
    with pytest.raises(ndx.OutOfMemoryError, match="64 MiB"):
        SimulatedBackend(capacity="8MiB", initial="64MiB")
    assert HostBackend(initial=0).stats()["reserved_bytes"] == 0


def test_initial_memory_by_the_environment():
    code = "import ndx; print(ndx.memory.reserved('host') >> 20)"
    result = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "NDX_HOST_INITIAL": "32MiB"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.stdout.strip() == "32", result.stderr


def test_reserved_memory_serves_and_stays_though_it_is_idle():
    backend = HostBackend(idle_release=0)
    assert memory.reserve("8MiB", backend) == 8 * MIB
    assert memory.reserve("8MiB", backend) == 0
    assert memory.reserve(0, backend) == 0
    assert backend.stats()["peak_bytes"] == 0
    with ndx.use(backend):
        # Idle memory is looked for at some of the requests.
        for _ in range(500):
            ndx.empty(20_000)
        assert backend.stats()["reserved_bytes"] >= 8 * MIB
        before = backend.events()["misses"]
        x = ndx.empty(MIB)
        assert backend.events()["misses"] == before
        del x
    assert memory.empty_cache(backend) >= 8 * MIB


@given(
    st.lists(st.integers(0, 3 * MIB), max_size=6),
    st.sampled_from(["split", "round", "naive", "arena"]),
    st.booleans(),
)
def test_reserve_changes_nothing_but_what_is_held(sizes, kind, touch):
    backend = HostBackend(pool=kind, limit="8MiB")
    with ndx.use(backend):
        kept = ndx.full(1000, 3.0)
        before = backend.stats()
        for size in sizes:
            try:
                gained = memory.reserve(size, touch=touch)
            except ndx.OutOfMemoryError:
                gained = 0
            after = backend.stats()
            for name in (
                "allocated_bytes",
                "allocated_count",
                "peak_bytes",
                "peak_count",
            ):
                assert after[name] == before[name]
            assert 0 <= gained <= after["reserved_bytes"] <= 8 * MIB
        assert float(ndx.sum(kept)) == 3000
    del kept
    check(backend)


def test_reserve_where_nothing_is_kept():
    class Bytes(PythonBackend):
        def acquire(self, nbytes):
            return bytearray(nbytes)

    for backend in (Bytes(), HostBackend(pool="unpooled")):
        with pytest.raises(TypeError, match="keep"):
            memory.reserve(10, backend)


def test_reserved_memory_that_can_not_be_had():
    """A fallback is not asked: it would keep nothing for the backend."""
    backend = HostBackend(limit="1MiB", fallback=HostBackend())
    with pytest.raises(ndx.OutOfMemoryError, match="its limit is 1 MiB"):
        memory.reserve("2MiB", backend)
    assert backend.kept_nbytes == 0
    assert backend.fallback.stats()["reserved_bytes"] == 0
    for wrong in ("lots", -1, 2**63, 1.5, None):
        with pytest.raises((ValueError, TypeError), match="nbytes"):
            memory.reserve(wrong, backend)


def test_what_is_reserved_is_more_than_what_is_in_use():
    backend = HostBackend(idle_release=0)
    with ndx.use(backend):
        x = ndx.empty(MIB)
        assert memory.reserve("4MiB", backend) == 4 * MIB
        for _ in range(500):
            ndx.empty(20_000)
        assert backend.stats()["reserved_bytes"] >= 12 * MIB
        del x


def test_files_keep_what_was_reserved_however_little_they_keep_idle():
    backend = ndx.backends.get("mmap", keep_idle="1MiB", initial="8MiB")
    with ndx.use(backend):
        for _ in range(5):
            ndx.empty(MIB // 2)
        assert backend.stats()["reserved_bytes"] >= 8 * MIB
        backend.trim()
        for _ in range(5):
            ndx.empty(MIB)
        assert backend.stats()["reserved_bytes"] <= 2 * MIB


def test_an_adaptor_reserves_where_it_takes_from():
    backend = HostBackend()
    assert memory.reserve("2MiB", memory.TrackingAdaptor(backend)) == 2 * MIB
    assert backend.stats()["reserved_bytes"] == 2 * MIB


# --------------------------------------------------------------------- room for others


def test_headroom_gives_back_just_enough_before_a_step():
    backend = SimulatedBackend(capacity="64MiB")
    with ndx.use(backend):
        x = ndx.empty(6 * MIB)  # 48 MiB
        del x
        free = backend.memory_info()[0]
        assert free <= 16 * MIB
        with memory.headroom("32MiB") as room:
            assert room.released_bytes > 0
            assert 32 * MIB <= backend.memory_info()[0] < 48 * MIB
            # In the scope the pool keeps to it, as far as idle memory goes.
            arrays = [ndx.empty(MIB) for _ in range(2)]
            arrays.pop()
            with memory.headroom("8MiB"):
                assert backend.headroom_nbytes == 32 * MIB
            y = ndx.empty(2 * MIB)
            assert backend.memory_info()[0] >= 32 * MIB
            del arrays, y
        assert backend.headroom_nbytes == 0
    check(backend)


def test_headroom_by_other_pools_of_the_same_memory():
    one, other = HostBackend(), HostBackend()
    with ndx.use(other):
        x = ndx.ones(32 * MIB)
        del x
    free = one.memory_info()[0]
    # Other processes change what is free meanwhile: the bound leaves room for that.
    with memory.headroom(free + 128 * MIB, one) as room:
        assert room.released_bytes >= 64 * MIB
    assert one.headroom_nbytes == 0


def test_headroom_of_what_keeps_nothing():
    class Bytes(PythonBackend):
        def acquire(self, nbytes):
            return bytearray(nbytes)

    with pytest.raises(TypeError, match="has no pool"):
        memory.headroom("1MiB", Bytes())
    with pytest.raises(RuntimeError, match="is not entered"):
        memory.headroom("1MiB", "host").__exit__(None, None, None)


def test_headroom_may_be_left_in_any_order():
    backend = HostBackend(reserve_fraction=0.001)
    base = backend.headroom_nbytes
    assert base > 0
    a, b = memory.headroom(base + 2, backend), memory.headroom(base + 1, backend)
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    assert backend.headroom_nbytes == base + 1
    b.__exit__(None, None, None)
    assert backend.headroom_nbytes == base


# ------------------------------------------------------------------- other options


@pytest.mark.parametrize(("cutoff", "size", "want"), [
    (24, 5 * MIB, 8 * MIB), (20, 5 * MIB + 1, 6 * MIB), (22, 5 * MIB, 8 * MIB),
    (22, 9 * MIB, 12 * MIB), (12, 5000, 8192), (30, 20 * MIB, 32 * MIB),
])  # fmt: skip
def test_cutoff_of_the_round_pool(cutoff, size, want):
    backend = ndx.backends.get("host", pool="round", cutoff=cutoff)
    buffer = ndx.backends.Buffer(backend, size)
    assert buffer.rounded == want
    buffer.release()


@pytest.mark.parametrize("cutoff", [11, 41, 24.0, "24", True])
def test_bad_cutoffs(cutoff):
    with pytest.raises(ValueError, match="from 12 .* to 40"):
        ndx.backends.get("host", pool="round", cutoff=cutoff)


def test_a_cutoff_of_a_pool_that_does_not_round_is_an_error():
    with pytest.raises(ValueError, match="for pool='round'; pool='split'"):
        ndx.backends.get("host", cutoff=20)


@pytest.mark.parametrize("size", [1, 4097, 65537, MIB + 1])
def test_blocks_of_the_round_pool_are_whole_pages_of_any_source(size):
    """A cutoff below the source's page asked for blocks that were never found."""
    backend = SimulatedBackend(pool="round", cutoff=12, page=65536)
    buffer = ndx.backends.Buffer(backend, size)
    assert buffer.rounded % 65536 == 0
    assert buffer.rounded >= size
    buffer.release()
    check(backend)


def test_cutoff_by_the_environment():
    code = "import ndx; print(ndx.backends.Buffer('host', 5 << 20).rounded >> 20)"
    environment = {"NDX_HOST_POOL": "round", "NDX_HOST_CUTOFF": "20"}
    result = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.stdout.strip() == "5", result.stderr


def test_waitall_gives_idle_memory_back():
    backend = HostBackend()
    with ndx.use(backend):
        x = ndx.ones(MIB)
        del x
        assert ndx.waitall() is None
        assert backend.stats()["reserved_bytes"] >= 8 * MIB
        assert ndx.waitall(trim=True) is None
        assert backend.stats()["reserved_bytes"] == 0
