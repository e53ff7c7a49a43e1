"""A GPU's arena with a mirror on the host: transfers without allocations."""

import numpy as np
import pytest
from ndx._cuda.bridge import address_of as pointer

import ndx

MIB = 1 << 20


@pytest.fixture
def ws(gpu):
    with ndx.use("cuda:0"):
        made = ndx.workspace("step", size="4MiB", mirror="host")
        yield made
        made.destroy()


def address(x):
    return np.asarray(x).ctypes.data


def ranges(*names):
    """Return how many ranges backends have ever given out."""
    return [ndx.backends.get(name).stats()["total_allocations"] for name in names]


def test_a_copy_lies_in_the_mirror(gpu, ws):
    assert ws.stats()["mirror_bytes"] == ws.size == 4 * MIB
    with ws:
        x = ndx.reshape(ndx.arange(1000.0), (10, 100))
        y = x * 2
        before = ranges("host", "pinned")
        a, b = x.to_device("cpu"), y.to_device("cpu")
        assert ranges("host", "pinned") == before
        assert (a.device, a.workspace, a.backend.name) == ("cpu", "step", "pinned")
        assert (a.shape, a.dtype, a.in_scope) == ((10, 100), ndx.float64, True)
        # As far apart as what they are copies of.
        assert address(b) - address(a) == pointer(y) - pointer(x)
        assert b.tolist() == (np.arange(1000.0).reshape(10, 100) * 2).tolist()
        part = y[3:5].to_device("cpu")
        assert part.tolist() == b[3:5].tolist()
        kept = a.detach()
    for stale in (a, b):
        with pytest.raises(ndx.StaleArrayError, match="workspace 'step'"):
            stale + 1
    assert kept.workspace is None
    assert float(kept[9, 99]) == 999.0
    if gpu is not None:
        copies = [call for call in gpu.calls if call[:2] == ("memcpyAsync", 2)]
        assert len(copies) == 3


def test_uploads_pass_through_it(gpu, ws):
    sources = [np.full(MIB // 8, float(i)) for i in range(3)]
    with ws:
        before = ranges("host", "pinned")
        if gpu is not None:
            gpu.calls.clear()
        arrays = [ndx.asarray(source) for source in sources]
        assert gpu is None or not any("ynchronize" in call[0] for call in gpu.calls)
        for source in sources:
            source[...] = -1
        assert ranges("host", "pinned") == before
        assert [x.workspace for x in arrays] == ["step"] * 3
        assert [float(ndx.max(x)) for x in arrays] == [0.0, 1.0, 2.0]
        assert [float(ndx.min(x)) for x in arrays] == [0.0, 1.0, 2.0]


def test_the_next_cycle_waits_for_the_upload_of_this_one(gpu):
    kept = []
    with ndx.use("cuda:0"):
        for i in range(4):
            # Moved out by a copy on the GPU, after that from the mirror.
            with ndx.workspace("s", size="1MiB", mirror="host", escape="detach") as ws:
                kept.append(ndx.asarray(np.full(1000, float(i))))
        ws.destroy()
    assert [float(ndx.min(x)) for x in kept] == [0.0, 1.0, 2.0, 3.0]
    assert [float(ndx.max(x)) for x in kept] == [0.0, 1.0, 2.0, 3.0]


def test_a_copy_does_not_change_under_another(gpu, ws):
    with ws:
        x = ndx.full(1000, 1.0)
        first = x.to_device("cpu")
        x += 1
        second = x.to_device("cpu")
        assert address(first) != address(second)
        assert (float(first[0]), float(second[0])) == (1.0, 2.0)
        view = first[10:20]
        del first, second
        third = x[:100].to_device("cpu")
        x += 1
        assert (float(view[0]), float(third[0])) == (1.0, 2.0)
        del view, third
        # Free again.
        assert x.to_device("cpu").workspace == "step"
        assert ndx.sum(x.to_device("cpu")) == 3000


def test_nor_under_an_upload(gpu):
    with ndx.use("cuda:0"):
        for _ in range(4):
            with ndx.workspace("plan", learn="liveness", mirror="host") as ws:
                x = ndx.asarray(np.full(1000, 1.0))
                copy = x.to_device("cpu")
                del x
                # In the same place of the arena, from the second cycle on.
                y = ndx.asarray(np.full(1000, 2.0))
                assert float(copy[0]) == float(copy[-1]) == 1.0
                assert float(ndx.min(y)) == 2.0
        assert ws.stats()["mirror_bytes"] == ws.size > 0
        ws.destroy()


def test_exports_of_a_copy_keep_its_bytes(gpu, ws):
    with ws:
        x = ndx.full(1000, 7.0)
        theirs = np.asarray(x.to_device("cpu"))
    for i in range(3):
        with ws:
            y = ndx.asarray(np.full(1000, float(i)))
            copy = y.to_device("cpu")
            assert float(copy[0]) == i
            # The place is not free.
            assert copy.workspace != "step"
        assert theirs.tolist() == [7.0] * 1000
    assert ws.stats()["pinned_bytes"] >= 8000
    with pytest.raises(BufferError, match="can't be closed"):
        ws.close()
    ws.destroy()
    assert theirs.tolist() == [7.0] * 1000
    del theirs, copy, x, y
    with ws:
        assert ndx.ones(10).to_device("cpu").workspace == "step"
    assert ws.stats()["pinned_bytes"] == 0


def test_copies_escape_to_the_host(gpu):
    with ndx.use("cuda:0"):
        with ndx.workspace("s", size="1MiB", mirror="host", escape="detach") as ws:
            x = ndx.full(100, 2.0)
            copy = x.to_device("cpu")
            view = copy[50:]
        assert copy.workspace is view.workspace is None
        assert copy.backend.name == "host"
        assert copy.tolist() == [2.0] * 100
        view[...] = 3
        assert float(copy[99]) == 3.0
        assert ws.stats()["escaped_bytes"] >= 1600
        ws.destroy()

        @ndx.workspace("decorated", size="1MiB", mirror="host")
        def function():
            y = ndx.full(100, 4.0)
            return {"gpu": y, "cpu": y.to_device("cpu")}

        found = function()
        assert found["gpu"].tolist() == found["cpu"].tolist() == [4.0] * 100
        assert found["cpu"].workspace is None
        ndx.workspace("decorated").destroy()


def test_elsewhere_all_is_as_before(gpu, ws):
    free = ndx.ones(10)
    with ws:
        large = ndx.ones(8 * MIB, dtype="int8")  # spilled
        x = ndx.ones(10)
        assert free.to_device("cpu").workspace is None
        assert large.to_device("cpu").workspace is None
        with ndx.no_workspace():
            assert x.to_device("cpu").workspace is None
        with ndx.workspace("inner", size="1KiB") as inner:
            assert x.to_device("cpu").workspace is None
        with ndx.workspace("cpu", size="1KiB", backend="host") as cpu:
            # The mirror is nearer than any workspace of the CPU's.
            assert x.to_device("cpu").workspace == "step"
        backwards = x[::-1].to_device("cpu")
        assert backwards.tolist() == [1.0] * 10
        empty = ndx.ones(0).to_device("cpu")
        assert empty.shape == (0,)
    for each in (inner, cpu):
        each.destroy()


@pytest.mark.parametrize("policy", [{"learn": "first"}, {"learn": "liveness"},
                                    {"spill": "grow", "size": 64},
                                    {"reset": "ring", "slots": 2}])  # fmt: skip
def test_it_grows_with_the_arena(gpu, policy):
    with ndx.use("cuda:0"):
        ws = ndx.workspace("grows", mirror="host", **policy)
        for _ in range(6):
            with ws:
                x = ndx.asarray(np.arange(1000.0))
                copy = (x + 1).to_device("cpu")
                assert float(ndx.sum(copy)) == 500500
            assert ws.stats()["mirror_bytes"] == ws.size
        assert ws.size >= 8000
        assert copy.in_scope == (ws.config.reset == "ring")
        pinned = ndx.backends.get("pinned")
        assert pinned.stats()["allocated_bytes"] == ws.size
        ws.destroy()
        assert ws.stats()["mirror_bytes"] == 0
        assert pinned.stats()["allocated_bytes"] == 0


def test_without_room_for_the_mirror_there_is_no_arena(machine):
    machine.host_total, before = 0, machine.host_total
    try:
        with ndx.use("cuda:0"):
            with pytest.raises(ndx.OutOfMemoryError, match="'pinned'"):
                ndx.workspace("sized", size="1MiB", mirror="host")
            ws = ndx.workspace("learned", mirror="host")
            for _ in range(3):
                with ws:
                    assert float(ndx.sum(ndx.ones(1000))) == 1000.0
            assert ws.size == ws.stats()["mirror_bytes"] == 0
            assert ndx.backends.get("cuda:0").stats()["allocated_bytes"] == 0
    finally:
        machine.host_total = before
    ws.destroy()


def test_recordings_see_its_arrays(gpu, ws):
    with ndx.memory.record() as trace, ws:
        x = ndx.ones(1000)
        copy = x.to_device("cpu")
        del copy
    births = [event for event in trace.events if event.nbytes == 8000]
    assert {event.workspace for event in births} == {"step"}
    assert sorted({event.backend for event in births}) == ["cuda:0", "pinned"]
