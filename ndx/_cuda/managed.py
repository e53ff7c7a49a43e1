"""Managed memory: advice on where its pages should be, and moving them there."""

from ndx._cuda.bridge import device_index, index_of, span_of
from ndx._cuda.capture_state import refuse
from ndx._cuda.session import session_of
from ndx._lib.device import CPU, find_device, find_kind
from ndx._lib.errors import DeviceError
from ndx.backends._cupy import check_device
from ndx.backends._gpus import KIND

__all__ = ["advise", "prefetch"]

# What cudaMemAdvise sets; the number after each takes it back.
_ADVICE = {"read_mostly": 1, "preferred_location": 3, "accessed_by": 5}
_MANAGED = 3  # cudaMemoryTypeManaged
_MOVES = 89  # cudaDevAttrConcurrentManagedAccess
_OF_CPU = -1  # cudaCpuDeviceId


def advise(x, advice, device=None, *, unset=False):
    """Tell the driver how the memory of an array is used."""
    if advice not in _ADVICE:
        msg = f"advice={advice!r} is not valid; valid are " + ", ".join(
            map(repr, _ADVICE)
        )
        raise ValueError(msg)
    session, start, nbytes = _place(x, "advise")
    target = _target(session, device, x.device)
    if nbytes:
        session.runtime.memAdvise(start, nbytes, _ADVICE[advice] + unset, target)


def prefetch(x, device=None):
    """Move the pages of an array, in the order of the current stream."""
    refuse("prefetching managed memory")
    session, start, nbytes = _place(x, "prefetch")
    target = _target(session, device, x.device)
    if nbytes:
        with session.device:
            session.bridge.use_here(x)
            session.runtime.memPrefetchAsync(start, nbytes, target, session.stream())


def _place(x, name):
    """Return the session of a managed array, and the first byte and bytes it spans."""
    index = device_index(x)
    if index is None:
        where = f"one on {x.device!r}" if hasattr(x, "device") else type(x).__name__
        msg = f"ndx.cuda.{name} takes an array on a GPU, not {where}"
        raise TypeError(msg)
    session = session_of(index)
    start, nbytes = span_of(x)
    if nbytes and session.runtime.pointerGetAttributes(start).type != _MANAGED:
        msg = (
            f"ndx.cuda.{name}: the array (backend {x.backend!r}) is not in managed "
            f"memory, and stays where it is; make it in ndx.use({str(x.device)!r}, "
            "source='managed')"
        )
        raise DeviceError(msg)
    return session, start, nbytes


def _target(session, device, own):
    """Return CUDA's number of a device, to which pages can move."""
    device = own if device is None else find_device(device)
    if device == CPU:
        target, number = _OF_CPU, session.index
    elif find_kind(device) is KIND:
        target = number = index_of(device)
        check_device(number)
    else:
        msg = f"managed memory can be on the CPU and on GPUs, not on {str(device)!r}"
        raise ValueError(msg)
    if not session.runtime.deviceGetAttribute(_MOVES, number):
        msg = (
            f"pages can't move to {str(device)!r} before they are used: 'cuda:{number}'"
            " has them all while it works (cudaDevAttrConcurrentManagedAccess is 0), "
            "as on Windows and on GPUs before Pascal"
        )
        raise DeviceError(msg)
    return target
