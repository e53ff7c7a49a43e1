"""Whose memory a graph reads, and how long: foreign arrays, chunks, and the end."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import ndx

MIB = 1 << 20


class Foreign:
    """An array of another library, on a GPU."""

    def __init__(self, values):
        self.array = ndx.asarray(values, device="cuda:0")

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def waited_for(machine, stream):
    """Return the streams that one was told to wait for."""
    return [call[2] for call in machine.calls
            if call[0] == "streamWaitEvent" and call[1] == stream]  # fmt: skip


def test_foreign_memory_waits_for_the_stream_that_replays(machine, stand_in):
    step = ndx.cuda.graph(lambda x: x * 2)
    x = ndx.from_dlpack(Foreign([1.0, 2.0]))
    for _ in range(2):
        assert step(x).tolist() == [2.0, 4.0]
    replaying = stand_in[0].cuda.Stream(non_blocking=True)
    with replaying:
        step(x)
    machine.calls.clear()
    del x
    gc.collect()
    assert waited_for(machine, 0) == [replaying.ptr]


def test_foreign_memory_that_goes_while_a_graph_is_captured(gpu):
    first = ndx.cuda.graph(lambda x: x * 2)
    kept = [ndx.from_dlpack(Foreign([1.0]))]
    for _ in range(2):
        first(*kept)
    calls = []

    @ndx.cuda.graph
    def step(y):
        calls.append(None)
        if len(calls) == 2:
            kept.clear()
            gc.collect()
        return y + 1

    y = ndx.ones(3, device="cuda:0")
    for _ in range(4):
        assert step(y).tolist() == [2.0] * 3
    assert step.stats()["graphs"] == 1


@pytest.mark.threads
def test_another_threads_trim_finds_a_stream_that_is_over(machine):
    runtime = ndx.backends._cupy.load().cuda.runtime
    with ndx.use("cuda:0", limit="64MiB") as backend:
        large = ndx.zeros(MIB)
        stream = runtime.streamCreate()
        large.__dlpack__(stream=stream)
        del large
        runtime.streamDestroy(stream)
        threads = [threading.Thread(target=backend.trim)]
        calls = []

        @ndx.cuda.graph
        def step(y):
            calls.append(None)
            if len(calls) == 2:
                threads[0].start()
                threads[0].join(0.2)
            return y + 1

        y = ndx.ones(3)
        for _ in range(3):
            assert step(y).tolist() == [2.0] * 3
        threads[0].join(60)
        assert step.stats()["graphs"] == 1


def test_a_second_try_has_the_memory_of_the_first(gpu):
    calls = []

    def step(x):
        calls.append(None)
        count = 9 if len(calls) > 1 else 7
        return ndx.sum([x + i for i in range(count)][-1])

    graph = ndx.cuda.graph(step)
    with ndx.use("cuda:0", limit="120MiB", pool="unpooled"):
        x = ndx.zeros(MIB)
        assert float(graph(x)) == 6 * MIB
        assert float(graph(x)) == 8 * MIB
        graph.reset()


def test_other_libraries_get_nothing_of_a_graph(gpu):
    @ndx.cuda.graph
    def step(x):
        return (x + 1).__cuda_array_interface__["shape"]

    x = ndx.ones(3, device="cuda:0")
    assert step(x) == (3,)
    with pytest.raises(ndx.DeviceError, match="another library"):
        step(x)


@pytest.mark.parametrize("size", [64, 300, 1000])
def test_a_workspace_of_the_size_of_its_array(gpu, size):
    with ndx.workspace("exact", backend="cuda:0", size=size, spill="fail") as ws:
        x = ndx.zeros(size, dtype="uint8", device="cuda:0")
        assert x.attached
        assert ws.stats()["spilled_count"] == 0
    ws.destroy()


AT_EXIT = """
import sys
sys.path.insert(0, {root!r})
from tests.cuda.stand_in.modules import in_place
in_place().__enter__()
import ndx
ndx.backends.register("mine", lambda **kwargs: None)
x = ndx.ones(3, device="cuda:0")
step = ndx.cuda.graph(lambda x: x * 2)
step(x), step(x)
foreign = ndx.from_dlpack(x)
print(float(ndx.sum(step(foreign))))
"""


def test_the_end_of_the_process(machine, pytestconfig):
    found = subprocess.run(
        [sys.executable, "-c", AT_EXIT.format(root=str(pytestconfig.rootpath))],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (found.stdout.strip(), found.stderr) == ("6.0", "")
    assert np.isfinite(float(found.stdout))
