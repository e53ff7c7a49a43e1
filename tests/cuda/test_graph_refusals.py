"""`ndx.cuda.graph`: what no graph can contain, and bad input."""

import gc

import numpy as np
import pytest

import ndx

from .graphs import counts, full

WAITS = {
    "float": lambda x: float(x[0]),
    "bool": lambda x: bool(x[0] > 0),
    "tolist": lambda x: x.tolist(),
    "to the CPU": lambda x: x.to_device("cpu"),
    "from the CPU": lambda x: ndx.asarray([1.0], device="cuda:0"),
    "arange": lambda x: ndx.arange(3, device="cuda:0"),
    "synchronize": lambda x: ndx.synchronize(),
    "waitall": lambda x: ndx.waitall(),
    "nonzero": lambda x: ndx.nonzero(x),
    "unique": lambda x: ndx.unique_values(x),
    "mask": lambda x: x[x > 0],
    "detach": lambda x: (x + 1).detach(),
    "no workspace": lambda x: outside(x),
    "dlpack": lambda x: x.__dlpack__(),
}


def outside(x):
    with ndx.no_workspace():
        return x + 1


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_what_no_graph_can_contain(gpu, wait):
    waiting = True

    @ndx.cuda.graph
    def step(x):
        y = x * 2
        if waiting:
            wait(y)
        return y

    x = full(3)
    backend = x.backend
    assert step(x).tolist() == [2.0] * 3
    for _ in range(2):
        # Captured in every second call; each time it says so, and nothing is left over.
        with pytest.raises(ndx.DeviceError, match="captured|graph"):
            step(x)
        assert step(x).tolist() == [2.0] * 3
    waiting = False
    for _ in range(3):
        assert step(x).tolist() == [2.0] * 3
    assert counts(step)[2] == 1
    step.reset()
    gc.collect()
    assert backend.stats()["allocated_count"] == 1


def test_an_error_of_the_function(gpu):
    failing = [False, True, False, False, False]
    seen = iter(failing)

    @ndx.cuda.graph
    def step(x):
        y = x * 2
        if next(seen):
            raise KeyError("mine")
        return y

    x = full(3)
    assert step(x).tolist() == [2.0] * 3
    with pytest.raises(KeyError, match="mine"):
        step(x)
    for _ in range(4):
        assert step(x).tolist() == [2.0] * 3
    assert counts(step)[2] == 1
    assert ndx.current_backend().name == "host"


def test_what_is_refused(gpu):
    with pytest.raises(TypeError, match="callable, not of int"):
        ndx.cuda.graph(3)
    with pytest.raises(ValueError, match="max_graphs=0"):
        ndx.cuda.graph(len, max_graphs=0)
    same = ndx.cuda.graph(lambda *args: args)
    x = full(3)
    with pytest.raises(TypeError, match="on the CPU"):
        same(x, ndx.ones(3))
    for value in (np.ones(3), {1, 2}, [x, bytearray(3)]):
        with pytest.raises(TypeError, match="hashed"):
            same(x, value)
    with ndx.workspace("cycle", backend="cuda:0"):
        y = full(3)
    with pytest.raises(ndx.StaleArrayError, match="cycle"):
        same(y)
    assert "lambda" in repr(same)
