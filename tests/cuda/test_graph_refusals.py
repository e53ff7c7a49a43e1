"""`ndx.cuda.graph`: what no graph can contain, and bad input."""

import gc

import numpy as np
import pytest

import ndx
from ndx._cuda.session import session_of
from ndx.backends import _cupy

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
    "solve": lambda x: ndx.linalg.solve(matrix(x), x),
    "inv": lambda x: ndx.linalg.inv(matrix(x)),
    "svd": lambda x: ndx.linalg.svd(matrix(x)),
    "matrix_norm": lambda x: ndx.linalg.matrix_norm(matrix(x), ord=2),
    "matrix_power": lambda x: ndx.linalg.matrix_power(matrix(x), 3),
    "cupy": lambda x: cupys(x).get(),
    "another stream": lambda x: elsewhere(x),
    "detach": lambda x: (x + 1).detach(),
    "no workspace": lambda x: outside(x),
    "dlpack": lambda x: x.__dlpack__(),
}


def matrix(x):
    """Return a matrix that has an inverse."""
    return ndx.tril(x[:, None] * x)


def cupys(x):
    """Return CuPy's array over the memory of ours."""
    return session_of(0).unwrap(x)


def elsewhere(x):
    with _cupy.load().cuda.Stream(non_blocking=True):
        return x + 1


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


class Refused(RuntimeError):
    def __init__(self, status):
        super().__init__("of the driver, say")
        self.status = status


ERRORS = {
    "status 900": (Refused, 900, ndx.DeviceError),
    "status 908": (Refused, 908, ndx.DeviceError),
    "status 700": (Refused, 700, Refused),
    "CuPy's": (NotImplementedError, "not while capturing", ndx.DeviceError),
    "another": (NotImplementedError, "not at all", NotImplementedError),
    "of the user's": (ValueError, "a captured value", ValueError),
    "of ours": (ndx.StaleArrayError, "captured", ndx.StaleArrayError),
}


@pytest.mark.parametrize(("kind", "told", "expected"), ERRORS.values(), ids=ERRORS)
def test_errors_that_say_that_it_can_not_be_captured(gpu, kind, told, expected):
    first = True

    @ndx.cuda.graph
    def step(x):
        if not first:
            raise kind(told)
        return x * 2

    x = full(3)
    step(x)
    first = False
    with pytest.raises(expected) as found:
        step(x)
    assert type(found.value.__cause__ or found.value) is kind
    del found
    first = True
    for _ in range(3):
        assert step(x).tolist() == [2.0] * 3


@pytest.mark.parametrize("then", ["nothing", "a kernel", "an error"])
def test_a_capture_that_was_made_invalid(machine, then):
    """By somebody who waits for the GPU in another way than by ndx."""
    runtime = _cupy.load().cuda.runtime
    spoil = False

    @ndx.cuda.graph
    def step(x):
        y = x * 2
        if spoil:
            with pytest.raises(runtime.CUDARuntimeError):
                runtime.deviceSynchronize()
            if then == "an error":
                raise KeyError("mine")
        return y if then == "nothing" else y + 0

    x = full(3)
    for _ in range(2):
        spoil = False
        assert step(x).tolist() == [2.0] * 3
        spoil = True
        with pytest.raises(ndx.DeviceError, match="can't be captured"):
            step(x)
    spoil = False
    for _ in range(3):
        assert step(x).tolist() == [2.0] * 3
    assert counts(step)[2] == 1


def test_memory_that_a_library_did_not_get(gpu):
    """Thrust tells that by a bare MemoryError: the call is made again, eagerly."""
    failing = iter([False, True, False, False, False])

    @ndx.cuda.graph
    def step(x):
        if next(failing):
            raise MemoryError
        return x * 2

    x = full(3)
    for _ in range(4):
        assert step(x).tolist() == [2.0] * 3
    assert counts(step) == (2, 2, 1)


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
