"""The engine of GPUs: it has what the contract asks for, and is near."""

import inspect
import sys

import pytest

import ndx
from ndx._array.engine import Engine
from ndx._cuda.engine import CudaEngine


def methods(engine):
    return {
        name: inspect.signature(getattr(engine(), name))
        for name in dir(engine)
        if not name.startswith("_")
    }


def test_the_engine_has_all_methods_of_the_contract_and_no_others():
    wanted, found = methods(Engine), methods(CudaEngine)
    assert found.keys() == wanted.keys()
    for name, signature in wanted.items():
        assert vars(CudaEngine)[name] is not None
        assert list(found[name].parameters) == list(signature.parameters)


def test_what_an_engine_does_not_have_raises():
    with pytest.raises(NotImplementedError):
        Engine().compute("sum")


CALLS = {
    "mean": lambda x: ndx.mean(x, axis=0),
    "add": lambda x: x + x,
    "matmul": lambda x: x @ x,
    "sort": lambda x: ndx.sort(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_few_frames_lie_between_a_call_and_the_gpu(gpu, name):
    """Each is about 100 ns, and the kernel of a small array takes a few thousand."""
    x = ndx.ones((4, 4), device="cuda:0")
    frames = []

    def count(frame, event, arg):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("ndx."):
            frames.append(f"{module}.{frame.f_code.co_name}")

    for _ in range(2):
        CALLS[name](x)
    sys.setprofile(count)
    try:
        CALLS[name](x)
    finally:
        sys.setprofile(None)
    assert len(frames) <= 13, frames
