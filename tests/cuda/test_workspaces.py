"""Workspaces whose arena is a GPU's memory."""

import asyncio
import threading

import pytest
from ndx._cuda.bridge import address_of as pointer
from ndx._cuda.bridge import from_capsule

import ndx


def step(x):
    y = ndx.exp(x) @ x.T
    return ndx.sum(y * 2 - 1)


@pytest.mark.parametrize("learn", ["first", "liveness"])
def test_a_steady_state_takes_nothing(gpu, learn):
    x = ndx.ones((64, 64), device="cuda:0")
    backend = x.backend
    losses = set()
    for cycle in range(5):
        with ndx.workspace("step", backend="cuda:0", learn=learn) as ws:
            loss = step(x)
            assert loss.workspace == "step"
            assert loss.device == "cuda:0"
            losses.add(float(loss))
            if cycle == 3:
                before = backend.stats()["total_allocations"]
    assert ws.stats()["spilled_count"] == 0
    assert backend.stats()["total_allocations"] == before
    assert len(losses) == 1
    with pytest.raises(ndx.StaleArrayError, match="workspace 'step'"):
        loss + 1
    assert not loss.in_scope
    assert repr(loss).startswith("<stale")
    ws.destroy()


def test_liveness_takes_the_peak(gpu):
    x = ndx.ones((64, 64), device="cuda:0")
    sizes = {}
    for learn in ("first", "liveness"):
        for _ in range(3):
            with ndx.workspace(f"by {learn}", backend="cuda:0", learn=learn) as ws:
                y = x
                for _ in range(20):
                    y = y + 1
        sizes[learn] = ws.size
        assert float(ndx.sum(x)) == 64 * 64
        del y
        ws.destroy()
    assert sizes["liveness"] < sizes["first"] / 4


def test_addresses_repeat(gpu):
    with ndx.use("cuda:0"):
        addresses = set()
        for cycle in range(4):
            with ndx.workspace("step", learn="liveness") as ws:
                x = ndx.ones(1000)
                y = x + x
                if cycle:
                    addresses.add((pointer(x), pointer(y)))
                del x, y
        assert len(addresses) == 1
        ws.destroy()


@pytest.mark.parametrize("policy", [{"learn": "first"}, {"learn": "liveness"},
                                    {"size": 10_000}, {"mirror": "host"},
                                    {"reset": "ring", "slots": 3}])  # fmt: skip
def test_arrays_are_aligned_for_kernels(gpu, policy):
    ws = ndx.workspace("step", backend="cuda:0", **policy)
    kept = []
    for cycle in range(5):
        with ws:
            arrays = [ndx.full(n, 1, dtype="uint8") for n in (1, 100, 65, 300, 7)]
            del arrays[1]
            arrays += [ndx.full(n, float(n)) for n in (3, 33, 1)]
            assert {pointer(x) % 256 for x in arrays} == {0}
            # Later cycles go around what others read.
            part = arrays[cycle % 3 + 1][1:]
            kept.append(part.__dlpack__(max_version=(1, 0)))
            sums = [float(ndx.sum(x)) for x in arrays]
            assert sums == [1.0, 65.0, 300.0, 7.0, 9.0, 1089.0, 1.0]
            if ws.size:
                assert ws.stats()["cycle_bytes"] % 256 == 0
    del kept, part
    with ws:
        assert pointer(ndx.ones(3)) % 256 == 0
    assert ws.stats()["live_bytes"] == 0
    assert ws.stats()["pinned_bytes"] == 0
    ws.destroy()


def test_by_default_on_the_current_backend(gpu):
    with ndx.use("cuda:0"), ndx.workspace("step", size="1MiB") as ws:
        x = ndx.ones(10)
        h = ndx.ones(10, device="cpu")
        assert (x.workspace, x.device) == ("step", "cuda:0")
        # The CPU's arrays are no business of it.
        assert (h.workspace, h.device) == (None, "cpu")
    assert h.in_scope
    assert not x.in_scope
    ws.destroy()


def test_workspaces_of_both(gpu):
    with (
        ndx.workspace("host", size="1MiB"),
        ndx.workspace("gpu", size="1MiB", backend="cuda:0"),
    ):
        h = ndx.ones(10, device="cpu")
        x = ndx.ones(10)
        assert (h.workspace, (h + h).workspace) == ("host", "host")
        assert (x.workspace, (x + x).workspace) == ("gpu", "gpu")
        with pytest.raises(ndx.WorkspaceError, match="on 'cpu'"):
            x.leverage_to("host")
        with pytest.raises(ndx.WorkspaceError, match="on 'cuda:0'"):
            h.leverage_to("gpu")
        with ndx.no_workspace():
            assert ndx.ones(3, device="cuda:0").workspace is None
            assert (h + h).workspace is None
    for name in ("host", "gpu"):
        ndx.workspace(name).destroy()


def test_escapes(gpu):
    with ndx.use("cuda:0"):
        with ndx.workspace("outer", size="1MiB") as outer:
            with ndx.workspace("inner", size="1MiB") as inner:
                x = ndx.asarray([[1.0, 2.0], [3.0, 4.0]])
                kept = x.T.detach()
                up = x.leverage()
                moved = kept.migrate()
            assert up.workspace == "outer"
            assert up.tolist() == [[1.0, 2.0], [3.0, 4.0]]
            assert not moved.in_scope
        assert kept.workspace is None
        assert kept.tolist() == [[1.0, 3.0], [2.0, 4.0]]

        with ndx.workspace("detach", size="1MiB", escape="detach") as detach:
            y = ndx.arange(4)
            view = y[1:]
        assert y.tolist() == [0, 1, 2, 3]
        assert view.tolist() == [1, 2, 3]
        assert detach.stats()["escaped_bytes"] == 32

        @ndx.workspace("decorated", size="1MiB")
        def function():
            return ndx.ones(3) + 1

        assert function().tolist() == [2.0, 2.0, 2.0]
    for ws in (outer, inner, detach, ndx.workspace("decorated")):
        ws.destroy()


def test_exports_pin_their_range(gpu):
    with ndx.use("cuda:0"):
        with ndx.workspace("step", size="64KiB") as ws:
            x = ndx.full(100, 3.0)
            capsule = x.__dlpack__(max_version=(1, 0))
        with pytest.raises(ndx.StaleArrayError):
            x + 1
        for _ in range(3):
            with ws:
                ndx.full(1000, 9.0)
        assert ws.stats()["pinned_bytes"] >= 800

        assert from_capsule(capsule).tolist() == [3.0] * 100
        del capsule
    assert ws.stats()["pinned_bytes"] == 0
    ws.destroy()


def test_rings_and_spills(gpu):
    with ndx.use("cuda:0"):
        ring = ndx.workspace("ring", size="4KiB", reset="ring", slots=2)
        made = []
        for i in range(4):
            with ring:
                made.append(ndx.full(10, float(i)))
        assert [x.in_scope for x in made] == [False, False, True, True]
        assert made[-1].tolist() == [3.0] * 10
        with ndx.workspace("full", size="1KiB", spill="fail") as full:
            with pytest.raises(ndx.OutOfMemoryError, match="'full' is full"):
                ndx.ones(1000)
            assert ndx.ones(10).workspace == "full"
        made.clear()
    ring.destroy()
    full.destroy()


def test_debug_patterns_are_for_the_host(gpu):
    with pytest.raises(ndx.WorkspaceError, match="debug=True"):
        ndx.workspace("debugged", backend="cuda:0", debug=True)


def test_streams_take_turns(machine, stand_in):
    stream = stand_in[0].cuda.Stream
    a, b = stream(), stream()
    with ndx.use("cuda:0") as backend:
        ws = ndx.workspace("step", size="1MiB")
        with ws:
            with a:
                x = ndx.ones(1000)
            machine.calls.clear()
            with b:
                y = x + 1
            assert ("streamWaitEvent", b.ptr, a.ptr) in machine.calls
            machine.calls.clear()
            with b:
                y = y + 1
            assert machine.calls == []
        # The next cycle uses the memory again: after all that used it before.
        with ws, a:
            y = ndx.ones(1000)
        assert ("streamWaitEvent", a.ptr, b.ptr) in machine.calls
        assert not any("Synchronize" in call[0] for call in machine.calls)
        del x, y
        ws.destroy()
        backend.synchronize()
        for each in (a, b):
            backend.close_stream(each.ptr)


@pytest.mark.threads
def test_threads_and_tasks_have_their_own(gpu):
    found = {}

    def work(name):
        with ndx.use("cuda:0"), ndx.workspace("step", size="64KiB") as ws:
            found[name] = ws, float(ndx.sum(ndx.ones(10)))

    async def main():
        async def task(name):
            with ndx.use("cuda:0"), ndx.workspace("step", size="64KiB") as ws:
                x = ndx.ones(10)
                await asyncio.sleep(0)
                found[name] = ws, float(ndx.sum(x))

        await asyncio.gather(task("a"), task("b"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(main())
    assert {total for _, total in found.values()} == {10.0}
    assert len({id(ws) for ws, _ in found.values()}) == 4
    for ws, _ in found.values():
        ws.destroy()


def end_scope_in(monkeypatch, machine, name, end):
    """Let something happen once, in the middle of a call of CUDA's."""
    from .stand_in import standin

    call = getattr(standin.runtime, name)
    left = [end]

    def called(*args):
        if left:
            left.pop()()
        return call(*args)

    monkeypatch.setattr(standin.runtime, name, called, raising=False)
    return left


@pytest.mark.parametrize("escape", ["raise", "detach"])
def test_a_scope_that_ends_while_memory_is_cleared(machine, monkeypatch, escape):
    ws = ndx.workspace(backend="cuda:0", size="64KiB", escape=escape)
    others = []

    def end():
        ws.__exit__(None, None, None)
        ws.__enter__()
        # Where the array that is cleared lies, if nothing holds that.
        others.append(ndx.full((1000,), 7.0))

    with ws:
        left = end_scope_in(monkeypatch, machine, "memsetAsync", end)
        x = ndx.zeros((1000,))
        assert not left
        assert float(ndx.min(others[0])) == 7.0
        if escape == "raise":
            with pytest.raises(ndx.StaleArrayError):
                x + 1
        else:
            assert x.workspace is None
            assert float(ndx.sum(ndx.abs(x))) == 0.0
        y = ndx.full((1000,), 3.0)
        assert float(ndx.sum(y)) == 3000.0
        assert float(ndx.min(others[0])) == 7.0
    del x, y, others[:]
    assert ws.stats()["pinned_bytes"] == 0
    ws.destroy()


@pytest.mark.parametrize("use", ["close", "export"])
def test_what_is_used_while_it_leaves_a_workspace(machine, monkeypatch, use):
    ws = ndx.workspace(backend="cuda:0", size="64KiB", escape="detach")
    arrays, kept = [], []

    def meanwhile():
        if use == "export":
            kept.append(ndx.from_dlpack(arrays[0]))
        else:
            with pytest.raises(BufferError):
                arrays[0].close()

    with ws:
        arrays += [ndx.full((1000,), 5.0), ndx.full((1000,), 6.0)]
        left = end_scope_in(monkeypatch, machine, "memcpyAsync", meanwhile)
    assert not left
    monkeypatch.undo()
    with ws:
        ndx.full((4000,), 9.0)
    assert [float(ndx.sum(each)) for each in arrays] == [5000.0, 6000.0]
    assert all(float(ndx.sum(each)) == 5000.0 for each in kept)
    del arrays[:], kept[:]
    ws.destroy()


def test_a_decorated_function_computes_where_it_is_called(gpu):
    @ndx.workspace("decorated")
    def make():
        return ndx.ones(3)

    for _ in range(3):
        assert make().device == "cpu"
        with ndx.use("cuda:0"):
            found = make()
            assert found.device == "cuda:0"
            assert (found + ndx.ones(3)).tolist() == [2.0] * 3
    ndx.workspace("decorated").destroy()


@pytest.mark.parametrize("config", [{}, {"size": "4KiB"}, {"learn": "liveness"}])
def test_cycles_on_the_gpu_and_on_the_cpu_in_turn(gpu, config):
    ws = ndx.workspace("in turn", **config)
    for _ in range(3):
        for device, outside in (("cuda:0", "cuda:0"), ("cpu", "host")):
            with ndx.use(outside), ws:
                x = ndx.ones(10)
                assert (x.workspace, x.device) == ("in turn", device)
                assert ndx.current_backend().name == outside
            assert not x.in_scope
    ws.destroy()
