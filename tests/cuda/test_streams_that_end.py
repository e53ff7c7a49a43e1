"""Streams that used memory, ours or others', and may be over before it is freed."""

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
    before = set(machine.streams)
    with stand_in[0].cuda.Stream() as stream:
        arrays = [ndx.full(1000, float(i)) for i in range(4)]
    backend.close_stream(stream.ptr)
    del stream
    gc.collect()
    assert machine.streams == before
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


class Foreign:
    """Another library's array; its memory is free as soon as nobody has it."""

    def __init__(self, x):
        self.x = x

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)


@pytest.mark.parametrize("take", [ndx.asarray, ndx.from_dlpack])
def test_foreign_memory_goes_back_after_what_used_it(machine, stand_in, backend, take):
    side = stand_in[0].cuda.Stream()
    x = take(Foreign(ndx.full(1000, 3.0)))
    assert x.backend is None
    with side:
        y = x[5:] + 1
        out = read_late(machine, stand_in, x, side)
    view = x[3:]
    del x
    machine.calls.clear()
    del view
    assert machine.calls[:2] == [
        ("eventRecord", side.ptr), ("streamWaitEvent", 0, side.ptr)]  # fmt: skip
    # Its owner uses it again, on the stream that it was asked for.
    z = ndx.full(1000, 4.0)
    assert z.tolist() == [4.0] * 1000
    assert out.tolist() == [3.0] * 1000
    handle = side.ptr
    del y, z, side
    backend.close_stream(handle)


def test_on_the_stream_of_the_import_there_is_nothing_to_wait_for(machine, backend):
    x = ndx.asarray(Foreign(ndx.full(1000, 3.0)))
    assert (x + 1).tolist() == [4.0] * 1000
    machine.calls.clear()
    del x
    assert not calls(machine, "eventRecord", "streamWaitEvent", "deviceSynchronize")


def test_foreign_memory_that_was_given_on(machine, stand_in, backend):
    side = stand_in[0].cuda.Stream()
    x = ndx.asarray(Foreign(ndx.full(1000, 3.0)))
    capsule = x.__dlpack__(stream=side.ptr)
    out = read_late(machine, stand_in, x, side)
    # The consumer's stream ends; then the GPU is waited for.
    del side, x
    machine.calls.clear()
    del capsule
    assert calls(machine, "deviceSynchronize")
    assert ndx.full(1000, 4.0).tolist() == [4.0] * 1000
    assert out.tolist() == [3.0] * 1000


def test_the_streams_live_as_long_as_the_memory(machine, stand_in, backend):
    with stand_in[0].cuda.Stream() as importing:
        x = ndx.asarray(Foreign(ndx.full(1000, 3.0)))
    with stand_in[0].cuda.Stream() as using:
        y = x + 1
    handles = [importing.ptr, using.ptr]
    del importing, using, y
    for handle in handles:
        backend.close_stream(handle)
    gc.collect()
    assert set(handles) <= machine.streams
    del x
    for handle in handles:
        backend.close_stream(handle)
    gc.collect()
    assert not set(handles) & machine.streams
