"""`ndx.cuda.graph`: a function that is captured once, and replayed."""

import gc
import itertools
import threading

import numpy as np
import pytest
from ndx._cuda.bridge import address_of

import ndx
from ndx.backends import _cupy

from .graphs import counts, full


def test_it_computes_what_the_function_does(gpu):
    weights, batch = full((3, 2)), full((4, 3))
    expected = np.ones((3, 2))
    turns = []

    @ndx.cuda.graph
    def step(batch):
        turns.append(len(turns))
        gradient = batch.T @ (batch @ weights)
        weights[...] = weights - 0.01 * gradient
        return ndx.sum(weights), {"gradient": [gradient]}, None, "text"

    for turn in range(5):
        batch[...] = float(turn)
        x = np.full((4, 3), float(turn))
        gradient = x.T @ (x @ expected)
        expected = expected - 0.01 * gradient
        total, found, *rest = step(batch)
        np.testing.assert_allclose(float(total), expected.sum(), rtol=1e-12)
        np.testing.assert_allclose(found["gradient"][0].tolist(), gradient, rtol=1e-12)
        np.testing.assert_allclose(weights.tolist(), expected, rtol=1e-12)
        assert rest == [None, "text"]
    assert turns == [0, 1]
    assert counts(step) == (1, 4, 1)
    assert step.stats()["bytes"] > 0


@pytest.mark.parametrize(
    "other",
    [
        lambda x: (full((4,), 2.0), 3.0),
        lambda x: (full((3,), 2.0), 3.0),
        lambda x: (ndx.astype(full((4,), 2.0), ndx.float32), 3.0),
        lambda x: (x[::-1], 3.0),
        lambda x: (x, 4.0),
        lambda x: (x, 3),
    ],
    ids=["address", "shape", "dtype", "strides", "value", "type"],
)
def test_what_differs_runs_eagerly(gpu, other):
    calls = []

    @ndx.cuda.graph
    def scaled(x, factor):
        calls.append(factor)
        return x * factor

    x = ndx.asarray([1.0, 2.0, 3.0, 4.0], device="cuda:0")
    for _ in range(3):
        assert scaled(x, 3.0).tolist() == [3.0, 6.0, 9.0, 12.0]
    y, factor = other(x)
    expected = (y * factor).tolist()
    for _ in range(3):
        found = scaled(y, factor)
        assert found.tolist() == expected
        assert found.dtype == y.dtype
    assert calls == [3.0, 3.0, factor, factor]
    assert scaled(x, 3.0).tolist() == [3.0, 6.0, 9.0, 12.0]
    assert counts(scaled) == (2, 5, 2)


def test_numbers_by_their_bits(gpu):
    sign = ndx.cuda.graph(lambda x, y: ndx.copysign(x, y))
    x = full(2)
    for y in (0.0, -0.0, np.float32(0), np.float32(-0.0)) * 3:
        assert sign(x, y).tolist() == [np.copysign(1.0, y)] * 2
    replays = counts(sign)[1]
    root = ndx.cuda.graph(lambda x, y: x * y)
    for _ in range(3):
        root(x, float("nan"))
    assert (counts(sign)[2], replays, counts(root)[1]) == (4, 8, 2)


def test_nothing_to_compute(gpu):
    same = ndx.cuda.graph(lambda x: (x + 1, (), {}))
    x = full((0, 3))
    for _ in range(3):
        found = same(x)
        assert (found[0].shape, found[1:]) == ((0, 3), ((), {}))


def test_no_more_graphs_than_asked_for(gpu):
    @ndx.cuda.graph(max_graphs=2)
    def doubled(x, power):
        return x * 2**power

    x = full(3)
    for power in (0, 1, 2, 3) * 3:
        assert doubled(x, power).tolist() == [2.0**power] * 3
    assert counts(doubled)[2] == 2
    doubled.reset()
    assert doubled.stats()["bytes"] == counts(doubled)[2] == 0


def test_results_are_the_callers(gpu):
    @ndx.cuda.graph
    def squared(x):
        return x * x

    x = full(3)
    kept = []
    for value in range(4):
        x[...] = float(value)
        with ndx.workspace("caller", backend="cuda:0"):
            inner = squared(x)
            assert inner.workspace == "caller"
        with pytest.raises(ndx.StaleArrayError):
            inner + 1
        kept.append(squared(x))
        assert kept[-1].workspace is None
    assert [y.tolist() for y in kept] == [[float(i * i)] * 3 for i in range(4)]
    assert counts(squared) == (1, 7, 1)


def test_arguments_and_views_of_them(gpu):
    @ndx.cuda.graph
    def step(x, *, others):
        (y,) = others
        y += 1.0
        return x, y[1:], x

    with ndx.workspace("cycle", backend="cuda:0", learn="liveness"):
        pass
    for turn in range(4):
        with ndx.workspace("cycle"):
            x, y = full(3, turn), full((4,), turn)
            same, view, again = step(x, others=(y,))
            assert same is x
            assert again is x
            assert view.tolist() == [turn + 1.0] * 3
            assert y.tolist() == [turn + 1.0] * 4
    assert counts(step)[1] >= 2


def test_what_it_reads_stays_in_its_place(gpu):
    def make():
        table = full((1000,), 7.0)

        @ndx.cuda.graph
        def looked_up(x):
            return x + table[:3]

        return looked_up, table.backend

    graph, backend = make()
    x = full(3)
    assert graph(x).tolist() == graph(x).tolist() == [8.0] * 3
    # The function has it, but would not need to: the graph does.
    graph.__wrapped__.__closure__[0].cell_contents = None
    gc.collect()
    backend.empty_cache() if hasattr(backend, "empty_cache") else backend.trim()
    full((1000,), -1.0)
    assert graph(x).tolist() == [8.0] * 3
    before = backend.stats()["allocated_bytes"]
    del graph
    gc.collect()
    assert backend.stats()["allocated_bytes"] < before - 8000


def test_what_it_reads_has_gone_stale(gpu):
    box = []

    @ndx.cuda.graph
    def shifted(x):
        return x + box[0]

    x = full(3)
    with ndx.workspace("outer", backend="cuda:0"):
        box.append(full(3, 5.0))
        assert shifted(x).tolist() == shifted(x).tolist() == [6.0] * 3
    with pytest.raises(ndx.StaleArrayError, match="outer"):
        shifted(x)
    box[0] = full(3, 1.0)
    for _ in range(3):
        assert shifted(x).tolist() == [2.0] * 3


def test_another_branch_needs_more_memory(gpu):
    """The second call makes more than the first one: it is run eagerly, too."""
    large = itertools.chain([False], itertools.repeat(True))

    @ndx.cuda.graph
    def step(x):
        y = x * 2
        if next(large):
            y = ndx.sum(ndx.broadcast_to(y, (1000, 3)) + 1.0, axis=0)
        return y

    x = full(3)
    assert step(x).tolist() == [2.0] * 3
    for _ in range(4):
        assert step(x).tolist() == [3000.0] * 3
    assert counts(step) == (2, 3, 1)


def test_arguments_in_a_workspace(gpu):
    """Its cycles have the same addresses, so that they are replayed."""

    @ndx.cuda.graph
    def step(x):
        return ndx.sum(x * x)

    for turn in range(8):
        with ndx.workspace("batch", backend="cuda:0", learn="liveness"):
            assert float(step(full((100,), turn))) == 100.0 * turn * turn
    _, replays, graphs = counts(step)
    assert replays >= 4
    assert graphs <= 2


def test_the_memory_is_the_peak_of_what_lives(gpu):
    @ndx.cuda.graph
    def chain(x):
        for _ in range(50):
            x = x + 1
        return x

    x = full(1000)
    for _ in range(3):
        assert chain(x).tolist() == [51.0] * 1000
    assert 8000 <= chain.stats()["bytes"] <= 5 * 8192


@pytest.mark.parametrize("mode", ["spill", "bypass"])
def test_modes_of_workspaces(gpu, mode):
    @ndx.cuda.graph
    def doubled(x):
        return x * 2

    ndx.memory.debug_mode(mode)
    try:
        x = full(3)
        for value in range(4):
            x[...] = float(value)
            assert doubled(x).tolist() == [2.0 * value] * 3
    finally:
        ndx.memory.debug_mode("off")


def test_workspaces_that_are_destroyed(gpu):
    @ndx.cuda.graph
    def doubled(x):
        y = x * 2
        return y + y

    x = full(3)
    doubled(x), doubled(x)
    ndx.memory.destroy_all()
    ndx.memory.empty_cache()
    for value in range(3):
        x[...] = float(value)
        others = [full((100,), -1.0) for _ in range(10)]
        assert doubled(x).tolist() == [4.0 * value] * 3
        assert all(other.tolist() == [-1.0] * 100 for other in others)


def test_streams_wait_for_each_other(machine):
    from .stand_in.standin import Stream

    @ndx.cuda.graph
    def doubled(x):
        return x * 2

    x = full(3)
    doubled(x), doubled(x)
    first, second = Stream(), Stream()
    for stream in (first, second):
        machine.calls.clear()
        with stream:
            doubled(x)
        before = 0 if stream is first else first.ptr
        assert ("streamWaitEvent", stream.ptr, before) in machine.calls
        machine.calls.clear()
        with stream:
            doubled(x)
        assert not [call for call in machine.calls if call[0] == "streamWaitEvent"]
    machine.calls.clear()
    doubled.reset()
    # Its memory goes back when it is done.
    assert ("streamSynchronize", second.ptr) in machine.calls


def test_the_first_call_was_on_another_stream(machine):
    """Its kernels are done in the graph's memory, before that is launched."""
    from .stand_in.standin import Stream

    @ndx.cuda.graph
    def doubled(x):
        return x * 2

    x = full(3)
    first, second = Stream(), Stream()
    with first:
        doubled(x)
    machine.calls.clear()
    with second:
        doubled(x)
    waits = [call[1:] for call in machine.calls if call[0] == "streamWaitEvent"]
    assert (second.ptr, first.ptr) in waits


@pytest.mark.threads
def test_each_thread_has_its_own(gpu):
    @ndx.cuda.graph
    def step(x):
        return ndx.sum(x + 1)

    found = {}

    def work(name):
        x = full((10,), name)
        found[name] = [float(step(x)) for _ in range(20)], step.stats()["graphs"]

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {name: ([10.0 * (name + 1)] * 20, 1) for name in range(4)}
    assert step.stats()["graphs"] == 0


def test_graphs_in_graphs(gpu):
    @ndx.cuda.graph
    def inner(x):
        return x + 1

    @ndx.cuda.graph
    def outer(x):
        return inner(x) * 2

    x = full(3)
    for value in range(4):
        x[...] = float(value)
        assert outer(x).tolist() == [2.0 * (value + 1)] * 3
    assert counts(outer) == (1, 3, 1)
    assert counts(inner) == (0, 0, 0)


class Model:
    def __init__(self):
        self.weights = full(3, 2.0)

    @ndx.cuda.graph
    def __call__(self, x):
        """Return the prediction."""
        self.weights += 1.0
        return x * self.weights


def test_of_a_method(gpu):
    models, x = [Model(), Model()], full(3)
    assert Model.__call__.__doc__ == "Return the prediction."
    for turn in range(4):
        for model in models:
            assert model(x).tolist() == [3.0 + turn] * 3
    Model.__call__.reset()


def test_without_arguments(gpu):
    @ndx.cuda.graph
    def made():
        return ndx.ones(3) * 2

    with pytest.raises(ndx.DeviceError, match="ndx.use"):
        made()
    with ndx.use("cuda:0", limit="64MiB") as backend:
        for _ in range(3):
            found = made()
            assert found.tolist() == [2.0] * 3
            assert found.backend is backend
    assert counts(made) == (1, 2, 1)
    made.reset()


def test_on_the_second_gpu(gpu):
    if _cupy.count_devices() < 2:
        pytest.skip("there is only one GPU")

    @ndx.cuda.graph
    def doubled(x):
        return x * 2

    for index in (0, 1):
        x = ndx.ones(3, device=f"cuda:{index}")
        for _ in range(3):
            assert doubled(x).tolist() == [2.0] * 3
            assert doubled(x).device == f"cuda:{index}"
    assert counts(doubled)[2] == 2


def test_an_address_is_that_of_the_first_element(gpu):
    x = full(4)
    assert address_of(x[1:]) == address_of(x) + 8


def test_training_learns_the_same(gpu):
    """The example's step, as a graph: losses as those of the eager one, but rounded.

    cuBLAS may choose other kernels where it has other memory to work in.
    """
    pytest.importorskip("sklearn")
    import gpu as benchmark
    from digits_data import load_data
    from digits_network import Training

    digits = load_data(0)
    with ndx.use("cuda:0"):
        eager = Training(ndx, digits=digits)
        graph = Training(ndx, digits=digits, step=benchmark.replayed())
        for _ in range(3):
            eager.repeat()
            graph.repeat()
    np.testing.assert_allclose(graph.history, eager.history, rtol=1e-3)
    assert graph.history[-1] < graph.history[0]
