"""Recordings: every block's birth and death, its maker, and nothing kept alive."""

import asyncio
import gc
import json
import multiprocessing
import threading
import weakref
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import ndx
from ndx.memory._timeline import reserved_curves


def allocations(trace):
    return [event for event in trace.events if event.kind == "allocate"]


def make():
    return ndx.ones((2, 3), dtype="float32")


def test_a_birth_says_what_where_and_by_whom():
    with ndx.memory.record() as trace:
        x = make()
    [event] = trace.events
    assert (event.kind, event.nbytes, event.array) == ("allocate", 24, 0)
    assert event.address == x.__array_interface__["data"][0]
    assert (event.shape, event.dtype, event.backend) == ((2, 3), "float32", "host")
    assert event.place == "backend"
    assert event.maker.partition(":")[0] == __file__
    assert event.maker.endswith(" in make")
    assert event.thread == threading.current_thread().name
    assert event.workspace is None
    assert event.freed is None
    assert event.reserved >= event.allocated >= 24


def test_a_view_is_no_birth_and_the_last_reference_is_the_death():
    with ndx.memory.record() as trace:
        x = ndx.ones(10)
        view = x[2:]
        del x
        assert len(trace.events) == 1
        del view
        assert [event.kind for event in trace.events] == ["allocate", "free"]
    assert [event.freed for event in trace.events] == ["dropped", "dropped"]


def test_arrays_without_bytes_are_not_recorded():
    with ndx.memory.record() as trace:
        x = ndx.ones((0, 5))
        del x
    assert trace.events == []
    assert trace.peak_bytes == 0


def test_what_was_there_before_is_not_recorded():
    x = ndx.ones(10)
    with ndx.memory.record() as trace:
        del x
    assert trace.events == []


def test_the_endings():
    with ndx.memory.record() as trace:
        closed = ndx.ones(10)
        closed.close()
        with ndx.workspace("step") as ws:
            kept = ndx.ones(20)
            dropped = ndx.ones(30)
            del dropped
        with ndx.workspace("leaky", escape="detach"):
            escaped = ndx.ones(40)
        del escaped
    assert ws.generation == 2
    endings = {event.nbytes // 8: event.freed for event in allocations(trace)[:4]}
    assert endings == {10: "closed", 20: "scope end", 30: "dropped", 40: "escaped"}
    later = allocations(trace)[4]
    assert (later.nbytes, later.workspace, later.freed) == (320, None, "dropped")
    assert later.shape == (40,)
    data = trace.to_dict()
    assert data["arrays"]["before"] == [None, None, None, None, 3]
    del kept


def test_workspaces_generations_and_places():
    with ndx.memory.record() as trace:
        for _ in range(2):
            with ndx.workspace("step"):
                ndx.ones(100)
    first, second = allocations(trace)
    assert (first.place, first.workspace, first.generation) == ("spilled", "step", 1)
    assert (second.place, second.workspace, second.generation) == ("arena", "step", 2)
    kinds = [event.kind for event in trace.events]
    assert kinds == 2 * ["enter", "allocate", "free", "end"]
    sizes = [event.nbytes for event in trace.events if event.kind == "enter"]
    assert sizes[0] == 0
    assert sizes[1] >= 800


def test_what_is_spilled_elsewhere_has_that_backend(tmp_path):
    with ndx.memory.record() as trace:
        with ndx.workspace("files", size="1KiB", spill="mmap") as spilling:
            ndx.ones(10)
            ndx.ones(1000)
        with ndx.workspace("kept", path=tmp_path / "state", size="1KiB") as kept:
            ndx.ones(10)
    found = [(event.place, event.backend) for event in allocations(trace)]
    assert found == [("arena", "host"), ("spilled", "mmap"), ("arena", "file")]
    kept.close()
    spilling.destroy()


def test_slots_of_a_ring():
    with ndx.memory.record() as trace:
        kept = []
        for _ in range(3):
            with ndx.workspace("ring", reset="ring", slots=2):
                kept.append(ndx.ones(10))
    assert [event.slot for event in allocations(trace)] == [0, 1, 0]
    # When its slot's turn comes again.
    assert [event.freed for event in allocations(trace)] == ["scope end", None, None]


def test_what_foreign_code_reads_goes_stale_first():
    with ndx.memory.record() as trace:
        with ndx.workspace("step"):
            view = np.asarray(ndx.ones(10))
        arrays = trace.to_dict()["arrays"]
        assert arrays["stale"][0] is not None
        assert arrays["died"] == [None]
        del view
    arrays = trace.to_dict()["arrays"]
    assert arrays["stale"][0] <= arrays["died"][0]
    assert arrays["freed"] == ["scope end"]


def test_results_of_numpy_have_their_shape_and_the_users_line():
    x = ndx.asarray([[2.0, 0.0], [0.0, 4.0]])
    with ndx.memory.record(stacks=5) as trace:
        y = ndx.linalg.inv(x)
    made = [event for event in allocations(trace) if event.shape == (2, 2)]
    assert len(made) == 1
    assert made[0].maker.startswith(__file__)
    assert made[0].place == "backend"
    assert made[0].freed is None
    del y


def test_stacks():
    def outer(depth):
        return make() if depth == 0 else outer(depth - 1)

    with ndx.memory.record(stacks=3) as deep, ndx.memory.record(stacks=0) as none:
        x = outer(5)
    [event] = deep.events
    assert [line.rpartition(".")[2] for line in event.stack[1:]] == ["outer", "outer"]
    assert event.maker == event.stack[0]
    assert none.events[0].stack == ()
    assert none.events[0].maker is None
    del x


def recorded():
    with ndx.memory.record(stacks=20) as trace:
        make()
    return [line.rpartition(".")[2] for line in trace.events[0].stack]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)
def test_stacks_of_forked_workers_begin_with_the_worker():
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        found = executor.submit(recorded).result()
    assert [line.rpartition(" ")[2] for line in found] == ["make", "recorded"]


def test_nested_and_overlapping():
    outer, inner = ndx.memory.record(), ndx.memory.record()
    with outer:
        a = ndx.ones(1)
        inner.__enter__()
        b = ndx.ones(2)
    c = ndx.ones(3)
    inner.__exit__(None, None, None)
    d = ndx.ones(4)
    assert [event.nbytes for event in outer.events] == [8, 16]
    assert [event.nbytes for event in inner.events] == [16, 24]
    del a, b, c, d
    assert all(event.freed is None for event in (*outer.events, *inner.events))


def test_nothing_is_kept_alive():
    with ndx.memory.record(stacks=10) as trace:
        with ndx.use("host", limit="1MiB") as backend:
            x = ndx.ones(10)
        assert isinstance(trace.events, list)
        kept = weakref.ref(x)
        del x
        assert kept() is None
        backend = weakref.ref(backend)
        gc.collect()
        assert backend() is None
    assert trace.events[0].freed == "dropped"


def test_a_trace_records_once():
    trace = ndx.memory.record()
    with pytest.raises(RuntimeError, match="has not started"):
        trace.to_dict()
    assert "not started" in repr(trace)
    with trace:
        pass
    with pytest.raises(RuntimeError, match="records once"):
        trace.__enter__()


def test_it_ends_with_an_exception_too():
    trace = ndx.memory.record()
    x = None

    def fail():
        nonlocal x
        with trace:
            x = ndx.ones(3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    y = ndx.ones(4)
    assert len(trace.events) == 1
    del x, y


@pytest.mark.parametrize("options", [{"max_events": 0}, {"stacks": -1}])
def test_bad_options(options):
    [name] = options
    with pytest.raises(ValueError, match=name):
        ndx.memory.record(**options)


@pytest.mark.parametrize("options", [{"max_events": 1.5}, {"stacks": "all"}])
def test_options_of_a_bad_type(options):
    [name] = options
    with pytest.raises(TypeError, match=name):
        ndx.memory.record(**options)


def test_a_full_log_keeps_the_newest_and_what_lives():
    with ndx.memory.record(max_events=100) as trace:
        old = ndx.ones(7)
        for i in range(1000):
            ndx.empty(10 + i)
        new = ndx.ones(8)
    data = trace.to_dict()
    assert data["dropped"] == trace.dropped > 900
    assert data["missed"] == 0
    assert len(trace.events) <= 100
    sizes = data["arrays"]["nbytes"]
    assert sizes[0] == 56
    assert sizes[-2:] == [8 * 1009, 64]
    # Complete from then on: all that died later is there, one after the other.
    assert [n // 8 for n in sizes[1:-1]] == list(range(1010 - len(sizes) + 2, 1010))
    died = [t for t in data["arrays"]["died"] if t is not None]
    assert min(died) >= data["complete_from"] > 0
    assert f"{trace.dropped} arrays that died before" in trace.summary()
    del old, new


def test_a_log_full_of_live_arrays_stops():
    with ndx.memory.record(max_events=100) as trace:
        kept = [ndx.ones(1) for _ in range(300)]
        assert trace.to_dict()["missed"] == 300 - len(allocations(trace))
        assert len(allocations(trace)) >= 90
        del kept
    assert trace.to_dict()["missed"] + trace.to_dict()["dropped"] == 300 - len(
        allocations(trace)
    )
    assert all(event.freed == "dropped" for event in allocations(trace))
    assert "were not recorded" in trace.summary()


def test_a_full_log_goes_on_when_arrays_have_died():
    with ndx.memory.record(max_events=100) as trace:
        kept = [ndx.ones(1) for _ in range(300)]
        missed = trace.to_dict()["missed"]
        kept.clear()
        for i in range(20):
            ndx.ones(10 + i)
    data = trace.to_dict()
    assert data["missed"] == missed > 0
    assert data["complete_from"] > 0
    assert data["arrays"]["nbytes"][-20:] == [8 * (10 + i) for i in range(20)]


def test_a_log_full_of_scopes_forgets_the_oldest():
    ws = ndx.workspace("step")
    with ndx.memory.record(max_events=100) as trace:
        for _ in range(500):
            with ws:
                pass
        x = ndx.ones(3)
    data = trace.to_dict()
    assert data["missed"] == 0
    assert data["complete_from"] > 0
    assert data["arrays"]["nbytes"] == [24]
    del x


@pytest.mark.threads
def test_threads():
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        for i in range(200):
            ndx.ones(10 + i)

    with ndx.memory.record() as trace:
        threads = [threading.Thread(target=work, name=f"t{i}") for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    made = allocations(trace)
    assert len(made) == 800
    assert {event.thread for event in made} == {"t0", "t1", "t2", "t3"}
    assert all(event.freed == "dropped" for event in made)
    times = [event.time for event in trace.events]
    assert times == sorted(times)


def test_tasks():
    async def work(n):
        with ndx.workspace("step"):
            await asyncio.sleep(0)
            return float(ndx.sum(ndx.ones(n)))

    async def main():
        return await asyncio.gather(work(10), work(20))

    with ndx.memory.record() as trace:
        assert asyncio.run(main()) == [10.0, 20.0]
    assert {event.workspace for event in allocations(trace)} == {"step"}


def test_arrays_made_by_finalizers():
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            ndx.ones(3)

    with ndx.memory.record() as trace:
        for _ in range(50):
            Cycle()
            ndx.ones(5)
        gc.collect()
    assert sum(event.nbytes == 24 for event in allocations(trace)) == 50
    assert all(event.freed == "dropped" for event in allocations(trace))


def test_reserved_over_time():
    with (
        ndx.use("host", limit="1MiB") as backend,
        ndx.memory.record() as trace,
    ):
        x = ndx.ones(100_000)
        most = backend.stats()["reserved_bytes"]
        x.close()
    memory = trace.to_dict()["memory"]
    assert max(memory["reserved"]) == most
    assert memory["reserved"][-1] == backend.stats()["reserved_bytes"]
    assert memory["allocated"][-1] == 0
    assert trace.to_dict()["backends"] == [{"name": "host", "limit": 2**20}]


def test_live_bytes_agree_with_the_backend():
    rng = np.random.default_rng(3)
    with ndx.use("host", limit="64MiB") as backend, ndx.memory.record() as trace:
        kept = {}
        for i in range(500):
            kept[int(rng.integers(40))] = ndx.empty(int(rng.integers(1, 2000)))
            if i % 7 == 0:
                kept.popitem()
        peak = backend.stats()["peak_bytes"]
        allocated = backend.stats()["allocated_bytes"]
    alive = [e.nbytes for e in allocations(trace) if e.freed is None]
    assert sum(alive) == allocated
    assert trace.peak_bytes == peak


def test_the_dict_is_json_and_its_columns_agree():
    with ndx.memory.record() as trace, ndx.workspace("step"):
        ndx.ones((3, 4))
    data = trace.to_dict()
    assert json.loads(json.dumps(data)) == data
    for table in ("arrays", "scopes", "memory"):
        assert len({len(column) for column in data[table].values()}) == 1


def test_a_backend_that_came_as_the_recording_ended():
    rows = {"time": [3], "backend": [1], "reserved": [64]}
    data = {"backends": [{"name": "late"}, {"name": "host"}], "memory": rows}
    assert reserved_curves(data) == [("host", [3], [64])]


def test_the_summary_names_the_lines_at_the_peak():
    with ndx.memory.record() as trace:
        x = ndx.ones(10_000)
        small = [ndx.ones(10) for _ in range(3)]
        del x, small
    text = trace.summary()
    assert "4 arrays" in text
    assert "78.36 KiB in 4 arrays" in text
    lines = text.splitlines()
    assert "99.7%" in lines[-2]
    assert lines[-2].endswith("test_the_summary_names_the_lines_at_the_peak")
    assert "1 other lines" in trace.summary(makers=1)


def test_the_segment_of_the_pool_is_known():
    with ndx.memory.record() as trace:
        x = ndx.ones(1000)
        with ndx.workspace(size="1KiB"):
            ndx.ones(10)
    data = trace.to_dict()
    (segment,) = {event.segment for event in trace.events if event.shape == (1000,)}
    assert segment <= x.__array_interface__["data"][0]
    found = data["segments"][data["arrays"]["segment"][0]]
    assert found["address"] == segment
    assert found["type"] in ("small", "large")
    assert x.__array_interface__["data"][0] < segment + found["size"]
    assert len(data["arrays"]["segment"]) == len(data["arrays"]["born"])
