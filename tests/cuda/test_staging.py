"""Large copies of pageable memory: through page-locked buffers, in turn."""

import gc
import threading
import time

import numpy as np
import pytest

import ndx

MIB = 1 << 20


def waits(gpu):
    return [call for call in gpu.calls if "ynchronize" in call[0]]


def copies(gpu, stream=0):
    return [call[1] for call in gpu.calls if call[0] == "memcpyAsync" and
            call[2] == stream]  # fmt: skip


@pytest.mark.parametrize("nbytes", [1 << 16, (1 << 16) + 1, 4 * MIB, 4 * MIB + 1,
                                    19 * MIB + 3])  # fmt: skip
def test_there_and_back(gpu, nbytes):
    source = np.random.default_rng(1).integers(0, 256, nbytes, dtype="uint8")
    g = ndx.asarray(source, device="cuda:0")
    kept = source.copy()
    source[...] = 0
    assert np.array_equal(np.asarray(g.to_device("cpu")), kept)
    if gpu is not None:
        assert np.array_equal(np.asarray(g[1:].to_device("cpu")), kept[1:])


def test_the_source_may_change_and_go_at_once(machine):
    source = np.ones(2 * MIB)
    gc.collect()
    # What threads of other tests have dropped may have gone only now.
    machine.calls.clear()
    g = ndx.asarray(source, device="cuda:0")
    assert waits(machine) == []
    assert copies(machine) == [1] * 4
    source[...] = 7
    x = ndx.full(2 * MIB, 2.0)
    h = x.to_device("cuda:0")
    x += 1
    del x, source
    # Of 8 chunks all are on their way; the ninth waits for the first.
    assert waits(machine) == []
    last = ndx.asarray(np.full(100_000, 3.0), device="cuda:0")
    assert [call[0] for call in waits(machine)] == ["eventSynchronize"]
    pinned = ndx.backends.get("pinned").stats()
    assert pinned["allocated_bytes"] == 0
    assert 32 * MIB <= pinned["peak_reserved_bytes"] <= 60 * MIB
    for array, value in ((g, 1.0), (h, 2.0), (last, 3.0)):
        assert float(ndx.min(array)) == float(ndx.max(array)) == value


def test_a_look_at_idle_memory_does_not_wait(machine):
    """It comes by time, between any two requests."""
    with ndx.use("pinned", idle_release=0.01):
        pinned = ndx.current_backend()
        end = time.monotonic() + 60
        while pinned.events()["trims"] < 3 and time.monotonic() < end:
            ndx.ones(MIB).to_device("cuda:0")
            machine.calls.clear()
            ndx.ones(MIB)
            assert waits(machine) == []
    assert pinned.events()["trims"] >= 3


def test_a_long_copy_waits_for_buffers_in_turn(machine):
    n = 100 * MIB
    source = np.arange(n // 8, dtype="int64")
    g = ndx.asarray(source, device="cuda:0")
    source[...] = 0
    assert len(copies(machine)) == 25
    assert len(waits(machine)) == 25 - 8
    assert ndx.backends.get("pinned").stats()["peak_reserved_bytes"] <= 60 * MIB
    assert int(ndx.sum(g)) == (n // 8) * (n // 8 - 1) // 2


def test_fetching_goes_by_two_buffers(machine):
    g = ndx.full(MIB, 2.0, device="cuda:0") * ndx.full(MIB, 4.0, device="cuda:0")
    machine.calls.clear()
    x = g.to_device("cpu")
    assert float(ndx.sum(x)) == 8.0 * MIB
    assert copies(machine) == [2, 2]
    # Looks at what is idle, which come by time, wait for nothing.
    assert waits(machine)[-1] == ("streamSynchronize", 0)
    stats = ndx.backends.get("pinned").stats()
    assert (stats["allocated_bytes"], stats["peak_bytes"]) == (0, 8 * MIB)


def test_small_copies_and_page_locked_ones_go_direct(machine):
    g = ndx.asarray(np.ones(8192), device="cuda:0")
    g.to_device("cpu")
    assert copies(machine) == [1, 2]
    assert "pinned" not in ndx.backends._registry._shared
    with ndx.use("pinned", limit="64MiB") as backend:
        x = ndx.ones(MIB)
        machine.calls.clear()
        back = x.to_device("cuda:0").to_device("cpu")
        assert back.backend is backend
        assert copies(machine) == [1, 2]
    # Page-locked memory of another library's: nobody tells when it changes.
    theirs = np.asarray(x)
    machine.calls.clear()
    h = ndx.asarray(theirs, device="cuda:0")
    assert [call[0] for call in waits(machine)] == ["streamSynchronize"]
    theirs[...] = 5
    assert float(ndx.max(h)) == 1.0
    assert "pinned" not in ndx.backends._registry._shared


def test_streams(machine, stand_in):
    side = stand_in[0].cuda.Stream()
    x = ndx.ones(MIB)
    g = x.to_device("cuda:0", stream=side)
    assert copies(machine, side.ptr) == [1, 1]
    assert copies(machine) == waits(machine) == []
    x += 1
    assert float(ndx.sum(g.to_device("cpu", stream=side))) == MIB
    assert copies(machine, side.ptr) == [1, 1, 2, 2]
    del g
    ndx.backends.get("cuda:0").close_stream(side.ptr)


def test_without_page_locked_memory_cuda_does_it(machine):
    machine.host_total, before = 0, machine.host_total
    try:
        g = ndx.asarray(np.arange(MIB), device="cuda:0")
        assert np.array_equal(np.asarray(g.to_device("cpu")), np.arange(MIB))
    finally:
        machine.host_total = before
    assert copies(machine) == [1, 2]


def test_the_limit_of_the_pool_holds(machine, monkeypatch):
    monkeypatch.setattr(
        ndx.backends._registry, "_options", {"pinned": {"limit": "8MiB"}}
    )
    source = np.arange(4 * MIB)
    g = ndx.asarray(source, device="cuda:0")
    source[...] = 0
    assert np.array_equal(np.asarray(g.to_device("cpu")), np.arange(4 * MIB))
    assert ndx.backends.get("pinned").stats()["peak_reserved_bytes"] <= 8 * MIB


@pytest.mark.parametrize("at", range(4))
def test_a_copy_that_fails_leaves_nothing_behind(machine, monkeypatch, at):
    source = np.ones(2 * MIB)
    good = ndx.asarray(source, device="cuda:0")
    runtime = ndx.backends._cupy.load().cuda.runtime
    copy, calls = runtime.memcpyAsync, []

    def failing(*args):
        calls.append(args)
        if len(calls) == at + 1:
            raise RuntimeError("the GPU fell off the bus")
        copy(*args)

    for transfer in (lambda: ndx.asarray(source, device="cuda:0"),
                     lambda: good.to_device("cpu")):  # fmt: skip
        calls.clear()
        monkeypatch.setattr(runtime, "memcpyAsync", failing, raising=False)
        with pytest.raises(RuntimeError, match="fell off"):
            transfer()
        monkeypatch.delattr(runtime, "memcpyAsync")
        source[...] = 2
        assert ndx.backends.get("pinned").stats()["allocated_bytes"] == 0
        assert ndx.backends.get("cuda:0").stats()["allocated_count"] == 1
        assert float(ndx.max(good)) == 1.0


@pytest.mark.threads
def test_threads(gpu):
    found = {}

    def work(i):
        for _ in range(3):
            g = ndx.asarray(np.full(2 * MIB, float(i)), device="cuda:0")
            x = np.asarray(g.to_device("cpu"))
            found.setdefault(i, set()).update((x.min(), x.max()))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: {float(i)} for i in range(4)}
