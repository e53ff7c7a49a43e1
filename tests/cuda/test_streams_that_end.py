"""Streams that used memory of ours, and are over before it is used again."""

import gc

import pytest
from ndx._cuda.bridge import address_of

import ndx

MIB = 1 << 20


@pytest.fixture(params=["pool", "async"])
def backend(request, machine):
    with ndx.use("cuda:0", source=request.param) as backend:
        yield backend
    gc.collect()
    # None of them is kept alive by what is over.
    del backend


def calls(machine, *names):
    return [call for call in machine.calls if call[0] in names]


def read_late(machine, stand_in, x, stream):
    """Let a stream read an array as late as it may; return where it writes to."""
    with ndx.use("pinned"):
        out = ndx.empty(x.shape, dtype=x.dtype)
    runtime = stand_in[0].cuda.runtime
    nbytes = out.nbytes
    runtime.memcpyAsync(address_of(out), address_of(x), nbytes, 4, stream.ptr)
    return out


def test_a_consumers_current_stream_stays(machine, stand_in, backend):
    x = ndx.full(1000, 3.0)
    with stand_in[0].cuda.Stream() as stream:
        handle = stream.ptr
        capsule = x.__dlpack__(stream=handle)
    del stream
    gc.collect()
    assert handle in machine.streams
    del capsule, x
    backend.trim()
    backend.close_stream(handle)
    gc.collect()
    assert handle not in machine.streams


def test_a_consumers_stream_is_over(machine, stand_in, backend):
    x = ndx.full(1000, 3.0)
    stream = stand_in[0].cuda.Stream()
    capsule = x.__dlpack__(stream=stream.ptr)
    out = read_late(machine, stand_in, x, stream)
    del stream
    machine.calls.clear()
    del capsule, x
    # What it was given is done before anyone has that memory.
    y = ndx.full(1000, 4.0)
    assert out.tolist() == [3.0] * 1000
    assert y.tolist() == [4.0] * 1000
    del y
    # It is waited for once.
    assert len(calls(machine, "deviceSynchronize")) == 1
    machine.calls.clear()
    for _ in range(3):
        ndx.full(1000, 5.0)
        backend.synchronize()
    assert len(calls(machine, "deviceSynchronize")) == 3


def test_there_may_be_any_number_of_them(machine, stand_in, backend):
    for number in range(100):
        x = ndx.full(1000, float(number))
        stream = stand_in[0].cuda.Stream()
        capsule = x.__dlpack__(stream=stream.ptr)
        del stream, capsule, x
    with stand_in[0].cuda.Stream() as stream:
        x = ndx.full(1000, 7.0)
        assert float(ndx.sum(x)) == 7000.0
        del x
    backend.close_stream(stream.ptr)


def test_in_a_workspace(machine, stand_in, backend):
    ws = ndx.workspace("step", size="64KiB")
    with ws:
        x = ndx.full(1000, 3.0)
        stream = stand_in[0].cuda.Stream()
        capsule = x.__dlpack__(stream=stream.ptr)
        out = read_late(machine, stand_in, x, stream)
        del stream, capsule
    for value in (4.0, 5.0):
        with ws:
            y = ndx.full(1000, value)
            assert y.tolist() == [value] * 1000
    assert out.tolist() == [3.0] * 1000
    ws.destroy()


def test_arrays_that_a_closed_stream_made(machine, stand_in, backend):
    with stand_in[0].cuda.Stream() as stream:
        arrays = [ndx.full(1000, float(i)) for i in range(4)]
    backend.close_stream(stream.ptr)
    del stream
    gc.collect()
    assert machine.streams == {0, 1, 2}
    assert [float(x[0]) for x in arrays] == [0.0, 1.0, 2.0, 3.0]
    del arrays
    # Another has their memory, then.
    for _ in range(2):
        arrays = [ndx.full(1000, float(i)) for i in range(4)]
        assert [float(x[-1]) for x in arrays] == [0.0, 1.0, 2.0, 3.0]
    del arrays
    backend.trim()
    assert backend.stats()["allocated_bytes"] == 0
    assert machine.held[0] == 0


def test_a_handle_that_is_another_streams_now(machine, stand_in, backend):
    x = ndx.full(1000, 3.0)
    stream = stand_in[0].cuda.Stream()
    handle = stream.ptr
    capsule = x.__dlpack__(stream=handle)
    del stream, capsule, x
    backend.synchronize()
    machine.last_handle = handle - 1
    with stand_in[0].cuda.Stream() as stream:
        assert stream.ptr == handle
        x = ndx.full(1000, 3.0)
        out = read_late(machine, stand_in, x, stream)
        del x
    y = ndx.full(1000, 4.0)
    ndx.synchronize()
    assert out.tolist() == [3.0] * 1000
    del y
    backend.close_stream(handle)
