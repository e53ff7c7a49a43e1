"""Counters that explain: what was refused, what helped, and Prometheus' format."""

import contextlib
import gc
import operator
import re
import time

import pytest
from helpers.commands import run_python
from helpers.pools import take

import ndx
from ndx import memory
from ndx.backends import HostBackend

MIB = 1 << 20
SAMPLE = re.compile(r'ndx_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? -?[\d.e+-]+')


@pytest.fixture
def backend():
    with ndx.use(HostBackend(limit="8MiB")) as made:
        yield made


@pytest.fixture
def large():
    with ndx.use(HostBackend()) as made:
        yield made


def relieved(backend):
    return {
        name.removeprefix("helped_by_"): count
        for name, count in backend.relief().items()
        if name.startswith("helped_by_") and count
    }


def test_nothing_was_short(backend):
    x = ndx.ones(1000)
    assert set(backend.relief().values()) == {0}
    del x


def test_idle_memory_of_its_own():
    # A pool of this kind keeps what is free for requests of its size.
    with ndx.use(HostBackend(limit="8MiB", pool="naive")) as backend:
        x = ndx.ones(5 * MIB, dtype="int8")
        del x
        x = ndx.ones(7 * MIB, dtype="int8")
    assert relieved(backend) == {"idle": 1}
    assert backend.relief()["refused_requests"] == 1
    assert backend.relief()["out_of_memory_errors"] == 0
    assert backend.relief()["relief_seconds"] > 0
    del x


def test_nothing_helps(backend):
    x = ndx.ones(5 * MIB, dtype="int8")
    for _ in range(3):
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.ones(5 * MIB, dtype="int8")
    assert backend.relief()["refused_requests"] == 3
    assert backend.relief()["out_of_memory_errors"] == 3
    assert relieved(backend) == {}
    del x


def test_the_fallback():
    beyond = HostBackend()
    with ndx.use(HostBackend(limit="1MiB", fallback=beyond)) as backend:
        kept = [ndx.ones(MIB, dtype="int8") for _ in range(4)]
    assert relieved(backend) == {"fallback": backend.relief()["refused_requests"]}
    assert relieved(backend)["fallback"] >= 3
    assert beyond.relief()["refused_requests"] == 0
    del kept


@contextlib.contextmanager
def dropped_on_oom(*kept):
    """Keep arrays until a callback drops them, when memory is short."""
    kept = list(kept)

    def drop(nbytes):
        kept.clear()
        return True

    memory.on_oom(drop)
    try:
        yield
    finally:
        memory.remove_on_oom(drop)


def test_callbacks(backend):
    with dropped_on_oom(ndx.ones(6 * MIB, dtype="int8")):
        x = ndx.ones(6 * MIB, dtype="int8")
    assert relieved(backend) == {"callback": 1}
    assert backend.relief()["out_of_memory_errors"] == 0
    del x


def test_one_request_is_counted_once():
    """What a callback frees is of another size: it goes back before it helps."""
    with (
        ndx.use(HostBackend(limit="8MiB", pool="naive")) as backend,
        dropped_on_oom(ndx.ones(6 * MIB, dtype="int8")),
    ):
        x = ndx.ones(7 * MIB, dtype="int8")
    assert relieved(backend) == {"callback": 1}
    assert backend.relief()["refused_requests"] == 1
    del x


def test_closed_workspaces(backend):
    with ndx.workspace("helps", size="6MiB"):
        pass
    x = ndx.ones(6 * MIB, dtype="int8")
    assert relieved(backend) == {"others": 1}
    ndx.workspace("helps").destroy()
    del x


def test_stats_and_the_summary(backend):
    x = ndx.ones(5 * MIB, dtype="int8")
    with pytest.raises(ndx.OutOfMemoryError):
        ndx.ones(5 * MIB, dtype="int8")
    assert memory.stats(backend)["out_of_memory_errors"] == 1
    line = "host was short of memory for 1 requests: served after none; refused 1; "
    assert line in memory.summary(backend)
    del x


def test_bytes_of_all_requests(backend):
    before = backend.stats()
    with memory.statistics(backend) as found:
        for n in (0, 1, 3, 100, 1000, 100_000):
            ndx.ones(n)
    after = backend.stats()
    total = 8 * 101_104
    assert after["total_bytes"] - before["total_bytes"] == found.total_bytes == total
    assert after["allocated_bytes"] == before["allocated_bytes"]
    assert f'ndx_allocated_bytes_total{{backend="{backend.name}"' in (
        memory.prometheus()
    )


TIMES = ("peak_time", "peak_reserved_time")


def when(backend):
    """Return the times of the peaks of bytes; the clock ticks in between."""
    stats = backend.stats()
    time.sleep(0.02)
    return [stats[key] for key in TIMES]


def test_when_the_peaks_were(large):
    assert when(large) == [None, None]
    x = ndx.ones(MIB)
    first = when(large)
    assert all(abs(each - time.time()) < 60 for each in first)
    del x
    y = ndx.ones(1000)
    assert when(large) == first
    z = ndx.ones(2 * MIB)
    assert all(map(operator.gt, when(large), first))
    del y, z
    third = when(large)
    large.reset_peak()
    assert all(map(operator.gt, when(large), third))


def test_a_phase_leaves_higher_peaks_their_times(large):
    ndx.ones(2 * MIB)
    first = when(large)
    with memory.statistics(large), memory.statistics(large):
        ndx.ones(MIB)
    assert when(large) == first
    with memory.statistics(large):
        ndx.ones(4 * MIB)
    assert all(map(operator.gt, when(large), first))


def test_when_the_peak_of_all_was():
    # The process of the tests may have had more than there is now.
    run_python("""
        import time
        import ndx
        x = ndx.ones(1000)
        before = ndx.memory.process_info()
        time.sleep(0.02)
        y = ndx.ones(2**20)
        after = ndx.memory.process_info()
        assert after.peak_reserved > before.peak_reserved
        assert after.peak_reserved_time > before.peak_reserved_time
        assert "ndx_all_peak_reserved_time_seconds" in ndx.memory.prometheus()
    """)


def test_the_text_can_be_read(backend):
    x = ndx.ones(1000)
    other = HostBackend()
    other.limit = 0
    with ndx.use(other), pytest.raises(ndx.OutOfMemoryError):
        ndx.ones(1000)
    text = memory.prometheus()
    assert text.endswith("\n")
    lines = text.splitlines()
    named = None
    for line in lines:
        if line.startswith("# HELP"):
            named = line.split()[2]
            assert len(line.split()) > 3
        elif line.startswith("# TYPE"):
            assert line.split()[2:] in ([named, "gauge"], [named, "counter"])
        else:
            assert SAMPLE.fullmatch(line), line
            assert re.match(r"\w+", line)[0] == named
    assert len({line for line in lines if line.startswith("# TYPE")}) == sum(
        line.startswith("# TYPE") for line in lines
    )
    samples = [line for line in lines if not line.startswith("#")]
    assert len({line.rsplit(" ", 1)[0] for line in samples}) == len(samples)
    assert any(
        line.startswith('ndx_allocated_bytes{backend="host"') and line.endswith(" 8000")
        for line in lines
    )
    assert any(
        line.startswith('ndx_limit_bytes{backend="host"') and line.endswith(" 8388608")
        for line in lines
    )
    del x


def test_names_are_escaped():
    class Odd(ndx.backends.PythonBackend):
        def acquire(self, nbytes):
            return bytearray(nbytes)

        def discard(self, buffer):
            pass

    odd = Odd()
    odd.name = 'a"b\\c\nd'
    with ndx.use(odd):
        x = ndx.ones(100)
        assert r'{backend="a\"b\\c\nd",number="' in memory.prometheus()
    del x


def test_numbers_stay_with_their_backends():
    def samples():
        return re.findall(
            r'ndx_allocations_total{backend="host",(number="\d+")} (\d+)',
            memory.prometheus(),
        )

    one, other = HostBackend(), HostBackend()
    before = dict(samples())
    for backend, count in ((one, 1), (other, 2)):
        for _ in range(count):
            take(backend, 100_000).release()
    mine = {key: value for key, value in samples() if key not in before}
    assert sorted(mine.values()) == ["1", "2"]
    del one, backend
    gc.collect()
    left = {key: value for key, value in samples() if key in mine}
    assert list(left.values()) == ["2"]
    assert left.items() <= mine.items()
    del other
