"""Copies between the CPU and GPUs; interchange of arrays and streams."""

import contextlib
import functools
import operator
from ctypes import memmove

import numpy as np

from ndx._api.creation import empty
from ndx._api.manipulation import reshape
from ndx._cuda.bridge import (
    address_of,
    device_index,
    from_capsule,
    index_of,
    is_contiguous,
    is_pinned,
    lend,
    mirror_array,
    new_array,
    note_copy_from_mirror,
    send_pinned,
    stage_in_mirror,
    use_on,
)
from ndx._cuda.capture_state import refuse
from ndx._cuda.session import session_for, session_of
from ndx._cuda.staging import ANY_WAY, SMALL
from ndx._lib.device import CPU
from ndx.backends import _cupy
from ndx.backends._capture_lock import wait_or_owe, waiting

__all__ = [
    "copy_into",
    "from_gpu",
    "hand_to_stream",
    "interface",
    "synchronize",
    "to_device",
    "to_host",
    "upload",
    "wait_for",
]

_PAGEABLE, _PINNED, _DEVICE = 0, 1, 2  # cudaMemoryType: Unregistered, Host, Device
_NO_SUCH_HANDLE = 400  # cudaErrorInvalidResourceHandle
_LEGACY, _PER_THREAD = 1, 2  # streams of DLPack and __cuda_array_interface__


def to_device(x, device, *, stream=None):
    """Return a copy on another device."""
    if device == CPU:
        return to_host(x, stream=stream)
    target = session_of(index_of(device))
    source = device_index(x)
    with _current(target, stream):
        if source is None:
            return upload(target, x)
        return _across(x, session_of(source), target)


def upload(session, x, *, detached=False):
    """Return a copy on a GPU of an array on the CPU, of ndx or NumPy.

    `x` may change and be freed as soon as this returns.
    """
    refuse("a copy from the CPU")
    ours = is_pinned(x)
    if not ours:
        x = np.ascontiguousarray(x).reshape(np.shape(x))
    with session.at_work():
        result = new_array(session.index, x.shape, x.dtype, detached=detached)
        if not x.size:
            return result
        # CuPy's view keeps it in place.
        held = session.unwrap(result)
        stream, target = session.stream(), held.data.ptr
        if not ours:
            if not _send_by_mirror(session, result, x, stream):
                _send(session, target, x.ctypes.data, x.nbytes, stream)
            return result

        def copy(source):
            session.runtime.memcpyAsync(target, source, x.nbytes, ANY_WAY, stream)

        if not send_pinned(x, copy, stream):
            session.runtime.streamSynchronize(stream)
    return result


def _send_by_mirror(session, result, x, stream):
    """Copy to an arena by way of its mirror; return False if there is none."""
    place = stage_in_mirror(result)
    if not place:
        return False
    memmove(place, x.ctypes.data, x.nbytes)
    target = address_of(result)
    try:
        session.runtime.memcpyAsync(target, place, x.nbytes, ANY_WAY, stream)
    finally:
        note_copy_from_mirror(result, stream)
    return True


def _send(session, target, source, nbytes, stream):
    """Copy memory of the CPU that may change or be freed as soon as this returns."""
    if _is_pinned(session, source):
        # The memory's owner could change it unnoticed, so wait for the copy.
        session.runtime.memcpyAsync(target, source, nbytes, ANY_WAY, stream)
        session.runtime.streamSynchronize(stream)
    elif nbytes <= SMALL:
        session.runtime.memcpyAsync(target, source, nbytes, ANY_WAY, stream)
    else:
        session.staging.send(target, source, nbytes, stream)


def to_host(x, *, stream=None):
    """Return a copy on the CPU, once the GPU has computed it."""
    refuse("a copy to the CPU")
    session = session_of(device_index(x))
    with _current(session, stream):
        x = x if is_contiguous(x) else reshape(x, x.shape, copy=True)
        result = mirror_array(x)
        if result is None:
            result = empty(x.shape, dtype=x.dtype, device=CPU)
        if x.size:
            with session.at_work():
                # CuPy's view keeps the memory in place, as in a computation.
                source = session.unwrap(x)
                target = np.asarray(result).ctypes.data
                _fetch(session, target, source.data.ptr, x.nbytes, session.stream())
    return result


def _fetch(session, target, source, nbytes, stream):
    """Copy memory of a GPU to the CPU's, and wait for that."""
    if nbytes > SMALL and not _is_pinned(session, target):
        session.staging.fetch(target, source, nbytes, stream)
        return
    session.runtime.memcpyAsync(target, source, nbytes, ANY_WAY, stream)
    session.runtime.streamSynchronize(stream)


def _across(x, source, target):
    """Return a copy on another GPU."""
    refuse("a copy from another GPU")
    x = x if is_contiguous(x) else reshape(x, x.shape, copy=True)
    with target.at_work():
        result = new_array(target.index, x.shape, x.dtype)
        if not x.size:
            return result
        # The copy, on another stream, starts when this one is done.
        with source.device:
            source.runtime.streamSynchronize(source.stream())
        runtime, stream = target.runtime, target.stream()
        held = target.unwrap(result), source.unwrap(x)
        ends = [each.data.ptr for each in held]
        places = [runtime.pointerGetAttributes(end) for end in ends]
        if all(place.type == _DEVICE for place in places):
            # Only this call copies memory to which the other GPU has no access.
            there, here = (place.device for place in places)
            runtime.memcpyPeerAsync(ends[0], there, ends[1], here, x.nbytes, stream)
        else:
            # Spilled to the host or to files, or managed: not of one GPU.
            runtime.memcpyAsync(*ends, x.nbytes, ANY_WAY, stream)
        runtime.streamSynchronize(stream)
    return result


def _is_pinned(session, address):
    return _kind_of(session, address) == _PINNED


def _kind_of(session, address):
    return session.runtime.pointerGetAttributes(address).type


@contextlib.contextmanager
def _current(session, stream):
    """Use a stream of the user, after the earlier work of the current one."""
    if stream is None:
        yield
        return
    stream = stream_of(_cupy.load(), stream)
    with session.device:
        before = session.stream()
        wait_for(session, stream.ptr, before)
        with stream:
            yield


class _Foreign:
    """A foreign stream in the form that CuPy accepts, with its owner."""

    def __init__(self, handle, owner):
        self.handle = handle
        self.owner = owner

    def __cuda_stream__(self):
        return 0, self.handle


def stream_of(cupy, stream):
    """Return CuPy's stream for a stream of the user, which it keeps alive.

    Parameters
    ----------
    cupy : module
    stream : cupy.cuda.Stream, object with ``__cuda_stream__`` or ``cuda_stream``, int

    Raises
    ------
    TypeError
        If it is none of these.
    """
    if isinstance(stream, cupy.cuda.Stream):
        return stream
    if hasattr(type(stream), "__cuda_stream__"):
        return cupy.cuda.Stream.from_external(stream)
    # PyTorch before 2.9.
    handle = getattr(stream, "cuda_stream", stream)
    if isinstance(handle, (bool, np.bool)) or not hasattr(type(handle), "__index__"):
        handle = -1
    handle = operator.index(handle)
    if handle < 0:
        msg = (
            f"stream={stream!r} is not a stream: valid are a cupy.cuda.Stream, another "
            "library's with __cuda_stream__ (or cuda_stream, as PyTorch's), and the "
            "handle of one as an int"
        )
        raise TypeError(msg)
    if handle in (0, _LEGACY):
        return cupy.cuda.Stream.null
    return cupy.cuda.Stream.from_external(_Foreign(handle, stream))


def wait_for(session, stream, before):
    """Make a stream wait, on the GPU, for the earlier work of another."""
    if stream == before:
        return
    runtime = session.runtime
    with session.device:
        event = runtime.eventCreateWithFlags(2)
        try:
            runtime.eventRecord(event, before)
            runtime.streamWaitEvent(stream, event, 0)
        finally:
            # CUDA keeps the event until the wait is over.
            runtime.eventDestroy(event)


def copy_into(out, x):
    """Copy the elements of an array, broadcast and cast, into another."""
    session = session_for(out)
    with session.at_work():
        session.unwrap(out)[...] = session.unwrap(x)


# ---------------------------------------------------------------- interchange


def hand_to_stream(x, stream):
    """Make the stream of a DLPack consumer wait for the computation of an array."""
    refuse("an array for another library")
    if stream == -1:
        return
    if stream is not None and (not isinstance(stream, int) or stream in (0, -2)):
        msg = (
            f"stream={stream!r} is not a stream of DLPack: give the handle of one, 1 "
            "for the default stream, or -1 for no order"
        )
        raise BufferError(msg)
    session = session_of(device_index(x))
    if stream == _PER_THREAD:
        # At reuse, the handle would not tell the thread of the stream.
        session.runtime.streamSynchronize(session.stream())
        return
    consumer = 0 if stream in (None, _LEGACY) else stream
    current = session.cuda.get_current_stream(session.index)
    if consumer == current.ptr:
        use_on(x, consumer, current)
    else:
        use_on(x, consumer)
        wait_for(session, consumer, current.ptr)


def from_gpu(x):
    """Return an array over the memory of another library's array on a GPU."""
    if not hasattr(x, "__dlpack__"):
        x = _cupy.load().asarray(x)
    _, index = x.__dlpack_device__()
    session = session_of(index)
    stream = session.cuda.get_current_stream(index)
    handle = stream.ptr or _LEGACY
    with session.device:
        try:
            capsule = x.__dlpack__(stream=handle, max_version=(1, 0))
        except TypeError:
            # An exporter from before DLPack 1.0.
            capsule = x.__dlpack__(stream=handle)
    result = from_capsule(capsule)
    lend(result, stream, functools.partial(_wait_at_last, session, stream))
    return result


def _wait_at_last(session, stream, before):
    """Make a stream wait for another, or the CPU for the GPU if that has ended."""
    if _cupy.is_forked():
        return
    try:
        wait_for(session, stream.ptr, before)
    except session.runtime.CUDARuntimeError as error:
        if error.status != _NO_SUCH_HANDLE:
            raise
        wait_or_owe(functools.partial(_wait_for_gpu, session))


def _wait_for_gpu(session):
    with session.device:
        session.runtime.deviceSynchronize()


def interface(x):
    """Return ``__cuda_array_interface__`` of an array, whose bytes are pinned."""
    refuse("an array for another library")
    index = device_index(x)
    session = session_of(index)
    address = address_of(x) if x.size else 0
    place = session.runtime.pointerGetAttributes(address) if address else None
    elsewhere = place and place.type == _DEVICE and place.device != index
    if elsewhere or (place and place.type == _PAGEABLE):
        what = f"memory of GPU {place.device}" if elsewhere else "a file"
        msg = (
            f"this array of {str(x.device)!r} lies in {what}, by which others can't "
            "tell its GPU; __cuda_array_interface__ doesn't say, either: hand it over "
            "by DLPack, which does (cupy.from_dlpack(x)), or copied to the GPU's own "
            "memory"
        )
        raise BufferError(msg)
    return {
        "shape": x.shape,
        "typestr": x.dtype.str,
        "data": (address, False),
        "strides": None if is_contiguous(x) else x.strides,
        "version": 3,
        "stream": session.stream() or _LEGACY,
    }


def synchronize(device=None):
    """Wait until a GPU is done, or all GPUs."""
    refuse("waiting for the GPU")
    if device is None and not _cupy.is_loaded():
        return
    library = _cupy.load()
    indices = range(library.cuda.runtime.getDeviceCount())
    if device is not None:
        indices = [index_of(device)]
    for number in indices:
        with library.cuda.Device(number), waiting():
            library.cuda.runtime.deviceSynchronize()
