"""What CUDA and CuPy allow of a capture: long lists, plans, other threads, scopes."""

import gc
import threading
import time

import numpy as np
import pytest

import ndx
from ndx.backends import _cupy

from .graphs import counts, full


@pytest.mark.parametrize("count", [2, 8, 9, 30])
@pytest.mark.parametrize("name", ["concat", "stack"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_many_arrays_are_joined(gpu, name, axis, count):
    parts = [full((2, 3), i) for i in range(count)]
    join = ndx.cuda.graph(lambda *parts: getattr(ndx, name)(list(parts), axis=axis))
    for turn in range(3):
        parts[-1][...] = float(turn)
        found = join(*parts)
        host = [np.full((2, 3), float(i)) for i in range(count)]
        host[-1][...] = turn
        expected = {"concat": np.concatenate, "stack": np.stack}[name](host, axis=axis)
        assert found.tolist() == expected.tolist()
    assert counts(join) == (1, 2, 1)


def test_many_arrays_of_several_dtypes_and_flat_ones(gpu):
    kinds = [ndx.int8, ndx.uint16, ndx.float32]
    parts = [ndx.astype(full((2, 2), i), kinds[i % 3]) for i in range(12)]
    join = ndx.cuda.graph(lambda: ndx.concat(parts, axis=None))
    with ndx.use("cuda:0"):
        expected = ndx.concat(parts, axis=None)
        for _ in range(3):
            found = join()
            assert found.dtype == expected.dtype
            assert found.tolist() == expected.tolist()
        for wrong in (
            lambda: ndx.concat([*parts, full((2,))]),
            lambda: ndx.concat([*parts, full((2, 3))]),
            lambda: ndx.concat(parts, axis=2),
            lambda: ndx.stack([*parts, full((2, 3))]),
            lambda: ndx.stack(parts, axis=3),
        ):
            with pytest.raises(ValueError, match="concat|stack|axis"):
                ndx.cuda.graph(wrong)()


def test_plans_of_transforms_stay(gpu):
    """CuPy drops plans when there are many; a graph goes on to transform by its own."""

    @ndx.cuda.graph
    def spectrum(x):
        return ndx.abs(ndx.fft.fft(x))

    x = full((8,))
    flat = np.asarray([8.0] + [0.0] * 7)
    for _ in range(4):
        np.testing.assert_allclose(spectrum(x).tolist(), flat, atol=1e-12)
    for n in range(2, 30):
        ndx.fft.fft(full((n,)))
    gc.collect()
    others = [full((100,), -1.0) for _ in range(10)]
    for value in range(3):
        x[...] = float(value)
        np.testing.assert_allclose(spectrum(x).tolist(), value * flat, atol=1e-12)
    assert all(other.tolist() == [-1.0] * 100 for other in others)


def elsewhere(function):
    """Call a function in another thread; return its result, or the error."""
    found = []

    def work():
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, found


def traffic(backend):
    """What another thread does with a pool."""
    kept = []
    for i in range(20):
        kept.append(full((1000 + i,)))
        if i % 3:
            kept.pop(0)
    total = float(ndx.sum(kept[-1]))
    backend.trim()
    ndx.memory.empty_cache()
    return total


@pytest.mark.threads
@pytest.mark.parametrize("source", ["pool", "async"])
def test_another_thread_works(gpu, source):
    """It never asks for the stream that is captured, nor waits for the whole GPU."""
    busy = True

    @ndx.cuda.graph
    def step(x, y):
        z = x + y
        if busy:
            thread, found = elsewhere(lambda: traffic(backend))
            thread.join(60)
            assert found == [1019.0], found
        return z * 2

    with ndx.use("cuda:0", source=source) as backend:
        x, y = full((100,)), full((100,))
        for _ in range(2):
            assert step(x, y).tolist() == [4.0] * 100
        busy = False
        del y
        y = full((100,))
        for _ in range(4):
            assert step(x, y).tolist() == [4.0] * 100
        backend.trim()
        assert step.stats()["graphs"] >= 1
        step.reset()


@pytest.mark.threads
@pytest.mark.parametrize(
    "wait",
    [ndx.synchronize, ndx.waitall, lambda: ndx.backends.get("cuda:0").synchronize()],
    ids=["synchronize", "waitall", "backend"],
)
def test_another_thread_waits(gpu, wait):
    """It waits for the capture, too, which goes on."""
    waiting = []

    @ndx.cuda.graph
    def step(x):
        y = x + 1
        if len(waiting) < 2:
            waiting.append(elsewhere(wait))
            time.sleep(0.05)
            if len(waiting) == 2:
                # Captured: so long, nobody waits for the GPU.
                assert waiting[-1][0].is_alive()
        return y * 2

    x = full((3,))
    for _ in range(4):
        assert step(x).tolist() == [4.0] * 3
    for thread, found in waiting:
        thread.join(60)
        assert found == [None]
    assert counts(step) == (1, 3, 1)


def test_waiting_by_the_thread_itself(gpu):
    x = full((3,))
    backend = x.backend

    @ndx.cuda.graph
    def step(x):
        backend.synchronize()
        return x + 1

    assert step(x).tolist() == [2.0] * 3
    with pytest.raises(ndx.DeviceError, match="waiting for the GPU"):
        step(x)
    assert step(x).tolist() == [2.0] * 3


def inside(x):
    with ndx.workspace("inner", backend="cuda:0", size="1MiB"):
        return (x + 1).detach()


def outer(x):
    with ndx.workspace("outer").borrow():
        return x + 1


def moved(x):
    return (x + 1).leverage_to("outer")


@pytest.mark.parametrize("function", [inside, outer, moved])
def test_other_workspaces_in_a_graph(gpu, function):
    """They give their memory out again, to which the graph would still write."""
    refused = True

    @ndx.cuda.graph
    def step(x):
        y = function(x * 2) if refused else x * 2
        return y + 0

    with ndx.workspace("outer", backend="cuda:0", size="1MiB"):
        x = full((3,))
        assert step(x).tolist() == [3.0] * 3
        with pytest.raises(ndx.DeviceError, match=r"workspace '(inner|outer)'"):
            step(x)
        assert step(x).tolist() == [3.0] * 3
        refused = False
        for _ in range(3):
            assert step(x).tolist() == [2.0] * 3
    ndx.workspace("outer").destroy()


def test_an_array_in_another_workspace(gpu):
    """Which another stream has used last, and of which the first call knew nothing."""
    stream = _cupy.load().cuda.Stream()
    box = []

    @ndx.cuda.graph
    def step(x):
        return x + box[-1]

    x = full((3,))
    with ndx.workspace("data", backend="cuda:0", size="1MiB"):
        box.append(full((3,), 1.0))
        assert step(x).tolist() == [2.0] * 3
        with stream:
            box.append(full((3,), 5.0))
        for _ in range(3):
            assert step(x).tolist() == [6.0] * 3
        del step
    assert ndx.all(x == 1.0)


def test_streams_that_are_over(machine, stand_in):
    """A graph keeps the stream that it was replayed on: its handle is not another's."""

    @ndx.cuda.graph
    def step(x):
        x += 1

    x = full((3,))
    step(x), step(x)
    stream = stand_in[0].cuda.Stream()
    with stream:
        step(x)
    handle = stream.ptr
    del stream
    gc.collect()
    (captured,) = step._mine().captured.values()
    assert captured.last.ptr == handle
    step(x)
    assert ("streamWaitEvent", 0, handle) in machine.calls
    assert x.tolist() == [5.0] * 3
