"""A snapshot's history of allocations, as PyTorch's tools read it."""

import pickle
import time

import numpy as np
import pytest

import ndx
from ndx import memory
from ndx.backends import HostBackend


@pytest.fixture
def backend():
    with ndx.use(HostBackend()) as made:
        yield made


def build(n):
    return ndx.ones(n)


def replay(events):
    """Return {address: size} of what is alive after the events; they must fit."""
    live = {}
    for event in events:
        if event["action"] == "alloc":
            assert event["addr"] not in live
            live[event["addr"]] = event["size"]
        else:
            assert event["action"] == "free_completed"
            assert live.pop(event["addr"]) == event["size"]
    return live


def active(found):
    """Return {address: requested size} of the blocks of a snapshot that are in use."""
    return {
        block["address"]: block["requested_size"]
        for segment in found["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }


def history(backend):
    (events,) = memory.snapshot(backend)["device_traces"]
    return events


def test_without_a_recording_there_is_none(backend):
    x = build(1000)
    assert history(backend) == []
    with memory.record():
        y = build(10)
    assert history(backend) == []
    del x, y


def test_events_lead_to_the_blocks(backend):
    with memory.record():
        kept = [build(n) for n in (1000, 20_000, 300_000, 5)]
        del kept[1]
        for n in (20_000, 7, 20_000):
            build(n)
        kept.append(build(30))
        found = pickle.loads(pickle.dumps(memory.snapshot(backend)))
    (events,) = found["device_traces"]
    assert len(events) == 12
    assert replay(events) == active(found)
    assert sorted(active(found).values()) == [40, 240, 8000, 2_400_000]


def test_what_an_event_says(backend):
    before = time.time_ns() // 1000
    with memory.record(stacks=2):
        x = build(1000)
        address = memory.snapshot(backend)["segments"][0]["blocks"][0]["address"]
        del x
        alloc, freed = history(backend)
    after = time.time_ns() // 1000
    assert set(alloc) == set(freed) == {
        "action", "addr", "size", "stream", "time_us", "frames"}  # fmt: skip
    assert (alloc["addr"], alloc["size"], alloc["stream"]) == (address, 8000, 0)
    assert alloc["time_us"] <= freed["time_us"]
    # The clocks are not read at one moment.
    assert before - 10**6 < alloc["time_us"] < after + 10**6
    inner, outer = alloc["frames"]
    line = build.__code__.co_firstlineno + 1
    assert inner == {"filename": __file__, "line": line, "name": "build"}
    assert outer["name"] == "test_what_an_event_says"
    assert freed["frames"] == []


def test_live_blocks_have_their_frames(backend):
    old = build(300_000)
    with memory.record():
        new = build(200_000)
        found = memory.snapshot(backend)
    frames = {
        block["requested_size"]: [frame["name"] for frame in block["frames"]]
        for segment in found["segments"]
        for block in segment["blocks"]
    }
    assert frames[1_600_000] == ["build"]
    assert frames[2_400_000] == []
    del old, new


def test_each_backend_has_a_list(backend):
    with memory.record(), ndx.use("simulated", capacity="4MiB") as device:
        x, y = build(10), ndx.zeros(0)
        with ndx.use(backend):
            z = [build(20), build(30)]
        found = memory.snapshot()
        numbers = {segment["device"] for segment in found["segments"]}
        sizes = [[e["size"] for e in each] for each in found["device_traces"]]
        assert [80] in sizes
        assert [160, 240] in sizes
        assert numbers <= set(range(len(sizes)))
        assert [e["size"] for e in history(device)] == [80]
    del x, y, z


def test_arenas(backend):
    """Addresses come again in each cycle, and what escapes is in two places."""
    with memory.record():
        for _ in range(3):
            with ndx.workspace("step"):
                x, y = build(1000), build(50)
                kept = y.detach()
                del x
                replay(history(backend))
        live = replay(history(backend))
        del y
    assert list(live.values()) == [400]
    del kept


def test_what_stays_where_it_was_when_its_scope_ends(backend):
    """An array that NumPy still reads leaves its workspace, but not its place."""
    with memory.record():
        with ndx.workspace("step", escape="detach"):
            x = build(1000)
            view = np.asarray(x)
        assert x.workspace is None
        events = history(backend)
    assert [event["action"] for event in events] == ["alloc", "free_completed", "alloc"]
    assert replay(events) == {view.ctypes.data: 8000}


def test_the_first_of_several_recordings(backend):
    with memory.record():
        x = build(10)
        with memory.record():
            y = build(20)
            assert [event["size"] for event in history(backend)] == [80, 160]
    del x, y


def test_a_full_log_keeps_what_is_alive(backend):
    with memory.record(max_events=16):
        kept = build(1000)
        for _ in range(50):
            build(10)
        events = history(backend)
    assert len(events) < 40
    assert 8000 in replay(events).values()
    del kept
