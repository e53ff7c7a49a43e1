"""What users see of memory: counters, scopes, reports, adaptors."""

import asyncio
import dataclasses
import html
import io
import pickle
import re
import threading

import pytest
from helpers.threads import running

import ndx
from ndx import memory
from ndx.backends import HostBackend, SimulatedBackend
from ndx.memory._page import html_page
from ndx.testing.backends import BackendContract, ByteArrayBackend, FailingBackend


@pytest.fixture
def backend():
    with ndx.use(HostBackend(limit="8MiB")) as made:
        yield made


def test_counters_by_name(backend):
    x = ndx.zeros(1000)
    assert memory.allocated() == memory.allocated(backend) == 8000
    assert memory.reserved() == 8192
    y = ndx.zeros(100_000)
    del y
    assert (memory.max_allocated(), memory.allocated()) == (808_000, 8000)
    assert memory.max_reserved() >= 808_000
    memory.reset_peak()
    assert memory.max_allocated() == 8000
    assert memory.info().limit == 2**23
    assert memory.info().total >= memory.info().free > 0
    assert memory.trim() > 700_000
    assert memory.stats()["misses"] == 2
    del x


def test_caches_of_all_pools_are_emptied(backend):
    ndx.zeros(100_000)
    with ndx.use("simulated", capacity="4MiB") as device:
        ndx.zeros(1000)
    assert memory.empty_cache() >= 800_000
    assert device.stats()["reserved_bytes"] == memory.reserved() == 0


def test_scopes_nest(backend):
    with memory.statistics() as outer:
        x = ndx.zeros(1000)
        with memory.statistics() as inner:
            y = ndx.zeros(2000)
            del y
            del x
        z = ndx.zeros(10)
    assert (inner.current_bytes, inner.current_count) == (-8000, -1)
    assert (inner.peak_bytes, inner.total_count) == (16_000, 1)
    assert (outer.current_bytes, outer.peak_bytes) == (80, 24_000)
    assert outer.total_count == 3
    assert memory.max_allocated() == 24_000
    del z


def test_scopes_that_overlap(backend):
    with ndx.use(HostBackend()):
        ndx.zeros(5000)
        first, second, third = (memory.statistics() for _ in range(3))
        a = first.__enter__()
        ndx.zeros(1000)
        b = second.__enter__()
        ndx.zeros(100)
        first.__exit__(None, None, None)
        c = third.__enter__()
        ndx.zeros(200)
        second.__exit__(None, None, None)
        ndx.zeros(10)
        third.__exit__(None, None, None)
        assert [x.peak_bytes for x in (a, b, c)] == [8000, 1600, 1600]
        assert memory.max_allocated() == 40_000


def test_profiles_add_up(backend):
    memory.profile_report(clear=True)
    assert "nothing" in memory.profile_report()

    @memory.profile("double")
    def double(x):
        return x * 2

    with memory.profile("all"):
        for _ in range(3):
            double(ndx.ones(1000))
    lines = memory.profile_report(clear=True).splitlines()
    assert [line.split()[0] for line in lines] == ["name", "all", "double"]
    assert lines[2].split()[1:3] == ["3", "3"]


def test_a_recursion_has_its_allocations_once(backend):
    @memory.profile("recursion")
    def turn(n):
        return [ndx.ones(1000)] + (turn(n - 1) if n else [])

    memory.profile_report(clear=True)
    kept = turn(4)
    row = memory.profile_report(clear=True).splitlines()[1].split()
    assert row[:3] == ["recursion", "5", "5"]
    assert row[-2:] == ["39.06", "KiB"]
    del kept


def test_a_phase_of_a_coroutine(backend):
    @memory.profile("later")
    async def make():
        await asyncio.sleep(0)
        return ndx.ones(1000)

    memory.profile_report(clear=True)
    kept = asyncio.run(make())
    assert memory.profile_report(clear=True).splitlines()[1].split()[1:3] == ["1", "1"]
    del kept


def test_what_is_no_phase():
    def generator():
        yield

    with pytest.raises(TypeError, match="named by a str"):
        memory.profile(3)
    with pytest.raises(TypeError, match="generator"):
        memory.profile("phase")(generator)
    with pytest.raises(RuntimeError, match="not entered"):
        memory.statistics().__exit__(None, None, None)


def test_profiles_count_where_it_raises(backend):
    with pytest.raises(KeyError), memory.profile("fails"):
        raise KeyError
    assert "fails" in memory.profile_report(clear=True)


def test_a_summary_for_people(backend):
    x = ndx.zeros(100_000)
    text = memory.summary()
    rows = [line.split()[:4] for line in text.splitlines()]
    assert ["host", "split", "781.2", "KiB"] in rows
    assert "ndx: " in text
    assert memory.summary(backend).count("\n") == 2
    del x


def test_a_summary_has_backends_in_python():
    unused = ByteArrayBackend()
    unused.name = "unused"

    @dataclasses.dataclass
    class Data(ByteArrayBackend):
        """One that can't be hashed."""

        title: str = "shared memory"

        def __post_init__(self):
            super().__init__()
            self.name = self.title

    with ndx.use(memory.Adaptor(Data())):
        x = ndx.zeros(1000)
    rows = memory.summary().splitlines()
    [row] = [line for line in rows if "shared memory" in line]
    assert row.split()[2:6] == ["-", "7.812", "KiB", "7.812"]
    assert not any("unused" in line for line in rows)
    del x


def test_a_snapshot_as_pytorch_makes_it(backend):
    x = ndx.zeros(1000)
    found = pickle.loads(pickle.dumps(memory.snapshot(backend)))
    assert set(found) == {"segments", "device_traces"}
    (segment,) = found["segments"]
    assert {"address", "total_size", "stream", "segment_type", "allocated_size",
            "active_size", "blocks"} <= set(segment)  # fmt: skip
    states = [block["state"] for block in segment["blocks"]]
    assert states.count("active_allocated") == 1
    del x


class TestAdaptor(BackendContract):
    """An adaptor is a backend like any other; its limit is upstream's."""

    def make(self, *, limit=None):
        upstream = HostBackend(limit=limit)
        return memory.LimitingAdaptor(upstream, limit) if limit is not None else (
            memory.Adaptor(upstream))  # fmt: skip

    # The bound is on live bytes, not on what is held.
    test_refusal_changes_nothing_and_says_all = None


def test_limits_on_live_bytes():
    with ndx.use(memory.LimitingAdaptor(HostBackend(), "1KiB")) as limited:
        x, y = ndx.zeros(64), ndx.zeros(64)
        with pytest.raises(ndx.OutOfMemoryError, match="1 KiB"):
            ndx.zeros(1)
        del x
        z = ndx.zeros(64)
        assert limited.stats()["allocated_bytes"] == 1024
        del y, z


@pytest.mark.threads
def test_a_bound_on_live_bytes_holds_in_threads():
    inside, go_on = threading.Event(), threading.Event()

    class Slow(ByteArrayBackend):
        def acquire(self, nbytes):
            inside.set()
            assert go_on.wait(60)
            return super().acquire(nbytes)

    limited = memory.LimitingAdaptor(Slow(), "1KiB")

    def make():
        with ndx.use(limited):
            ndx.zeros(100)

    with running(make):
        try:
            assert inside.wait(60)
            with ndx.use(limited), pytest.raises(ndx.OutOfMemoryError, match="not let"):
                ndx.zeros(100)
        finally:
            go_on.set()
    # What was refused is not counted.
    assert limited.stats()["peak_bytes"] == 800
    assert limited.stats()["total_allocations"] == 1
    with ndx.use(limited):
        ndx.zeros(128)


def test_a_log_as_rmm_writes_it(tmp_path):
    path = tmp_path / "log.csv"
    log = memory.LoggingAdaptor(HostBackend(limit="64KiB"), path)
    with ndx.use(log):
        x = ndx.zeros(100)
        del x
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.zeros(10_000)
    log.close()
    log.close()
    lines = path.read_text(encoding="ascii").splitlines()
    assert lines[0] == "Thread,Time,Action,Pointer,Size,Stream"
    rows = [line.split(",") for line in lines[1:]]
    assert [row[2] for row in rows[:2]] == ["allocate", "free"]
    assert {row[2] for row in rows[2:]} == {"allocate failure"}
    assert rows[0][3:] == rows[1][3:]
    assert rows[0][4:] == ["800", "0"]


def test_a_log_to_an_open_file():
    file = io.StringIO()
    log = memory.LoggingAdaptor(HostBackend(), file)
    with ndx.use(log):
        ndx.zeros(100)
    log.flush()
    assert file.getvalue().count("\n") == 3


def test_who_made_what_is_live():
    inner = memory.TrackingAdaptor(HostBackend(), stacks=False)
    tracked = memory.TrackingAdaptor(inner)
    with ndx.use(tracked):
        live = [ndx.zeros(125) for _ in range(10)]
        del live[::2]
        ranges = tracked.outstanding()
        assert sum(nbytes for _, nbytes, _ in ranges) == 5000
        assert "test_who_made_what_is_live" in tracked.report()
        assert [row[:2] for row in inner.outstanding()] == [row[:2] for row in ranges]
        assert inner.outstanding()[0][2] is None
        del live
    assert tracked.outstanding() == []


def test_a_callback_decides_whether_to_go_on():
    upstream = FailingBackend(fail_at=0)
    asked = []

    def repair(nbytes):
        asked.append(nbytes)
        upstream.fail_at = None if len(asked) == 2 else 0
        return True

    with ndx.use(memory.FailureCallbackAdaptor(upstream, repair)):
        assert ndx.ones(3).tolist() == [1, 1, 1]
    assert asked == [24, 24]


def test_a_callback_that_never_gives_up_is_stopped():
    asked = []
    upstream = SimulatedBackend(capacity="1MiB")
    stubborn = memory.FailureCallbackAdaptor(
        upstream, lambda nbytes: asked.append(nbytes) or True, times=2
    )
    with ndx.use(stubborn), pytest.raises(ndx.OutOfMemoryError):
        ndx.zeros(10**6)
    assert len(asked) == 2
    # However often the steps against short memory ask again.
    ndx.memory.on_oom(always := lambda nbytes: True)
    try:
        for _ in range(2):
            asked.clear()
            with ndx.use(stubborn), pytest.raises(ndx.OutOfMemoryError):
                ndx.zeros(100_000), ndx.zeros(100_000)
            assert len(asked) == 2
    finally:
        ndx.memory.remove_on_oom(always)


def test_tables_are_shown_as_they_are():
    """At a prompt and in a notebook, not as one line with escapes."""
    tracking = ndx.memory.TrackingAdaptor("host")
    with ndx.memory.record() as trace, ndx.workspace("a <b> & c"):
        x = ndx.ones(3)
    tables = [
        ndx.memory.summary(), ndx.memory.workspace_summary(), tracking.report(),
        ndx.memory.profile_report(), trace.summary(),
    ]  # fmt: skip
    for table in tables:
        assert isinstance(table, str)
        assert repr(table) == str(table) == f"{table}"
        assert type(str(table)) is str
        assert html.unescape(table._repr_html_()).count(table) == 1
    assert "a &lt;b&gt; &amp; c" in tables[1]._repr_html_()
    del x


def test_a_trace_in_a_notebook(monkeypatch):
    trace = ndx.memory.record()
    assert "not started" in trace._repr_html_()
    with trace:
        x = ndx.ones(3)
        assert "<iframe" in trace._repr_html_()
    shown = trace._repr_html_()
    page = html.unescape(re.fullmatch(r'<iframe srcdoc="([^"]*)".*', shown, re.S)[1])
    assert page == html_page(trace.to_dict())
    assert "</iframe>" not in page
    monkeypatch.setattr("ndx.memory._trace._LARGEST_SHOWN", 1000)
    shown = trace._repr_html_()
    assert shown.startswith("<pre")
    assert "too large" in shown
    assert len(shown) < 1000
    del x
