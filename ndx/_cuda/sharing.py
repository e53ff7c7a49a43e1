"""Arrays of a GPU that other processes open: the same memory, without a copy.

CUDA lets a process map a range of another's memory by a handle of 64 bytes, once. So
the arrays of one range share one mapping here, which ends with the last of them.
"""

import secrets
import sys

from ndx._cuda.bridge import address_of, device_index, range_of, span_of
from ndx._cuda.capture_state import refuse
from ndx._cuda.session import session_of
from ndx._lib.errors import DeviceError
from ndx.backends import _cupy
from ndx.backends._capture_lock import wait_or_owe, waiting

__all__ = ["SharedArray", "share"]

_FOR_PROCESSES = 2 | 4  # cudaEventDisableTiming, cudaEventInterprocess

# CUDA opens no handle in the process that it is from.
_here = secrets.token_bytes(8)
# (GPU, handle) -> address, and how many arrays lie there: what is mapped now. Used with
# the lock of `waiting`, which an array needs at its end.
_mapped = {}


class SharedArray:
    """An array on a GPU that other processes can open; `ndx.cuda.share` makes it.

    Its pickle has about 300 bytes, and no elements. Where it was made, it keeps the
    memory in place until it is closed or dropped.
    """

    def __init__(self, guard, event, place, order, layout):
        self._guard = guard  # None in other processes
        self._event = event
        self._place = place  # PCI address of the GPU, handle of the range, bytes of it
        self._order = order  # handle of the event
        self._layout = layout  # shape, dtype, strides, whether it is read-only
        self._from = _here

    def __reduce__(self):
        if self._from == _here and self._guard is None:
            msg = (
                "this SharedArray is closed: its memory may hold other arrays; call "
                "ndx.cuda.share again"
            )
            raise ValueError(msg)
        return _received, (self._from, self._place, self._order, self._layout)

    def __repr__(self):
        shape, dtype, _, _ = self._layout
        closed = ", closed" if self._from == _here and self._guard is None else ""
        return f"<SharedArray shape={shape} dtype={dtype}{closed}>"

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def open(self):
        """Return an array over the memory, in another process than the owner's.

        Returns
        -------
        NDArray
            On the same GPU. CuPy's current stream waits, on the GPU, for the work that
            the owner had submitted when it called `share`. The array is read-only if
            the owner's is.

        Raises
        ------
        DeviceError
            If CUDA can't be used here; if this process doesn't see the GPU; in the
            owner's process, where the array itself can be used; or if CUDA can't open
            the memory, as when the owner has ended.
        """
        refuse("opening an array of another process")
        if self._from == _here:
            msg = (
                "this SharedArray is of this very process, and CUDA opens it in others "
                "only: use the array itself"
            )
            raise DeviceError(msg)
        bus, handle, *part = self._place
        runtime = _cupy.load().cuda.runtime
        try:
            session = session_of(runtime.deviceGetByPCIBusId(bus))
        except runtime.CUDARuntimeError as error:
            msg = (
                f"the array lies on the GPU at PCI address {bus}, which this process "
                f"does not see ({error}); see CUDA_VISIBLE_DEVICES"
            )
            raise DeviceError(msg) from error
        with session.device:
            try:
                mapping = _Mapping(session, handle)
                self._wait(session)
            except runtime.CUDARuntimeError as error:
                msg = (
                    f"CUDA can't open the memory of another process ({error}): the "
                    "owner must still run, and keep its SharedArray"
                )
                raise DeviceError(msg) from error
            return _array_over(session, mapping, part, self._layout)

    def _wait(self, session):
        """Make the current stream wait for the work of the owner."""
        runtime = session.runtime
        event = runtime.ipcOpenEventHandle(self._order)
        try:
            runtime.streamWaitEvent(session.stream(), event, 0)
        finally:
            runtime.eventDestroy(event)

    def close(self):
        """Let the memory be used again, in the owner's process.

        Call it when the others are done: they must have dropped their arrays, after
        `ndx.synchronize`. In other processes it does nothing.
        """
        guard, self._guard = self._guard, None
        if guard is not None:
            event, self._event = self._event, None
            _destroy(*event)

    def __del__(self, is_finalizing=sys.is_finalizing):
        # Not made to its end; or the driver may be gone.
        if vars(self).get("_event") and not is_finalizing():
            self.close()


def share(x):
    """Return a handle by which other processes open an array."""
    refuse("sharing an array")
    index = device_index(x)
    if index is None:
        where = f"one on {x.device!r}" if hasattr(x, "device") else type(x).__name__
        msg = (
            f"ndx.cuda.share takes an array on a GPU, not {where}; on the host, "
            "ndx.parallel.share(x) is memory that processes see without a copy"
        )
        raise TypeError(msg)
    session = session_of(index)
    runtime = session.runtime
    guard, start = range_of(x)
    low, nbytes = span_of(x)
    if not start:
        msg = (
            f"CUDA lets no other process open the memory of this array (backend "
            f"{x.backend!r}): copy it to memory of ndx.use({str(x.device)!r}), whose "
            "source='pool' can be opened, as memory of another GPU can"
        )
        raise DeviceError(msg)
    with session.device:
        session.bridge.use_here(x)
        handle = runtime.ipcGetMemHandle(start)
        event = runtime.eventCreateWithFlags(_FOR_PROCESSES)
        try:
            runtime.eventRecord(event, session.stream())
            order = runtime.ipcGetEventHandle(event)
        except BaseException:
            runtime.eventDestroy(event)
            raise
    part = low - start, nbytes, address_of(x) - low
    place = (runtime.deviceGetPCIBusId(index), handle, *part)
    layout = x.shape, x.dtype.str, x.strides, not x.flags.writeable
    return SharedArray(guard, (session, event), place, order, layout)


def _destroy(session, event):
    if not _cupy.is_forked():
        with session.device:
            session.runtime.eventDestroy(event)


def _received(origin, place, order, layout):
    """Return a handle that came from a process."""
    made = SharedArray(None, None, place, order, layout)
    made._from = origin
    return made


class _Mapping:
    """Keeps a range of another process mapped while an array lies in it."""

    def __init__(self, session, handle):
        key = session.index, handle
        with waiting():
            found = _mapped.get(key)
            if found is None:
                found = _mapped[key] = [session.runtime.ipcOpenMemHandle(handle), 0]
            found[1] += 1
            self.address = found[0]
            self.session, self.key = session, key

    def __del__(self, is_finalizing=sys.is_finalizing):
        if "key" in vars(self) and not is_finalizing() and not _cupy.is_forked():
            # The GPU may still use it.
            wait_or_owe(self._end)

    def _end(self):
        with self.session.device:
            found = _mapped[self.key]
            found[1] -= 1
            if not found[1]:
                del _mapped[self.key]
                self.session.runtime.deviceSynchronize()
                self.session.runtime.ipcCloseMemHandle(found[0])


def _array_over(session, mapping, part, layout):
    """Return an array of ndx over a part of a mapping, which it keeps."""
    low, nbytes, first = part
    shape, dtype, strides, readonly = layout
    memory = session.cuda.UnownedMemory(
        mapping.address + low, nbytes, mapping, session.index
    )
    pointer = session.cuda.MemoryPointer(memory, first)
    x = session.wrap(session.ndarray(shape, dtype, pointer, strides))
    if readonly:
        x.flags.writeable = False
    return x
