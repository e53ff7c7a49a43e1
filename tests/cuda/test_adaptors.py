"""An adaptor around a GPU's backend passes on what touches and orders the memory."""

import numpy as np
import pytest

import ndx


@pytest.fixture
def tracking(gpu):
    return ndx.memory.TrackingAdaptor("cuda:0")


def test_arrays(tracking):
    with ndx.use(tracking):
        x = ndx.zeros(1000)
        y = x + 1
        assert x.backend is tracking
        assert y.device == ndx.Device("cuda:0")
        assert len(tracking.outstanding()) == 2
    assert np.array_equal(y.to_device("cpu"), np.ones(1000))
    del x, y
    assert tracking.outstanding() == []


def test_a_workspace_zeroes_its_memory_on_the_gpu(tracking):
    with ndx.use(tracking):
        for cycle in range(3):
            with ndx.workspace("adapted", size="64KiB"):
                x = ndx.zeros(500)
                x += cycle
                assert np.array_equal(x.to_device("cpu"), np.full(500, cycle))
                kept = (x + 1).detach()
            assert np.array_equal(kept.to_device("cpu"), np.full(500, cycle + 1))


def test_a_workspace_that_moves_its_arrays(tracking):
    with ndx.use(tracking):
        with ndx.workspace("moving", size="64KiB", escape="detach"):
            kept = ndx.arange(500)
        with ndx.workspace("moving"):
            ndx.zeros(500)
        assert np.array_equal(kept.to_device("cpu"), np.arange(500))


def test_memory_waits_for_the_stream_that_still_uses_it(gpu, tracking, stand_in):
    other = stand_in[0].cuda.Stream(non_blocking=True)
    with ndx.use(tracking):
        x = ndx.full(1000, 3.0)
        with other:
            y = x * 2
        if gpu is not None:
            gpu.calls.clear()
        del x
        z = ndx.zeros(1000)
        if gpu is not None:
            assert gpu.calls[:2] == [
                ("eventRecord", other.ptr),
                ("streamWaitEvent", 0, other.ptr),
            ]
        other.synchronize()
        assert np.array_equal(y.to_device("cpu"), np.full(1000, 6.0))
        assert np.array_equal(z.to_device("cpu"), np.zeros(1000))
