"""Memory of the stand-in that others reach: managed, of other GPUs and processes.

Memory of `malloc` is a file without a name, which another process opens by the numbers
of this process and of the file. An event that other processes know has such a file,
too, in which one byte says that it is done.
"""

import ctypes
import mmap
import os
import struct
import time

from .host_memory import FALSE, CUDARuntimeError

FOR_ALL = 1
READ_MOSTLY, PREFERRED_LOCATION, ACCESSED_BY = 1, 3, 5
OF_CPU = -1
ALIGN = 512
OF_OTHERS = "of another process"
PATIENCE = 30  # seconds


def wait_for_others(done):
    """Wait until another process has come to an event."""
    end = time.monotonic() + PATIENCE
    while done[0] != b"\1":
        assert time.monotonic() < end, "the other process never came to the event"
        time.sleep(0.001)


def aligned(nbytes):
    """Return the address of new bytes, and what keeps them."""
    buffer = (ctypes.c_char * (nbytes + ALIGN))()
    ctypes.memset(buffer, 0xA5, nbytes + ALIGN)
    start = -(-ctypes.addressof(buffer) // ALIGN) * ALIGN
    view = (ctypes.c_char * nbytes).from_address(start)
    view.owner = buffer
    return start, view


def in_file(nbytes):
    """Return the address of new bytes that another process can open, as `aligned`."""
    if not hasattr(os, "memfd_create"):
        return aligned(nbytes)
    file = os.memfd_create("stand-in")
    os.truncate(file, nbytes)
    view = mapped(file, nbytes)
    ctypes.memset(view, 0xA5, nbytes)
    return ctypes.addressof(view), view


class Bytes(ctypes.Array):
    _type_, _length_ = ctypes.c_char, 0


def mapped(file, nbytes):
    """Return the bytes of a file, which is closed with them."""
    kind = type("Bytes", (Bytes,), {"_length_": nbytes})
    view = kind.from_buffer(mmap.mmap(file, nbytes))
    view.file = File(file)
    return view


class File:
    def __init__(self, number):
        self.number = number

    def __del__(self, close=os.close):
        close(self.number)


def written(nbytes, file):
    """Return a handle of CUDA's for a file of this process: 64 bytes."""
    return struct.pack("qqq40x", os.getpid(), file, nbytes)


def opened(handle):
    """Return the bytes of a handle that another process has made."""
    process, file, nbytes = struct.unpack("qqq40x", handle)
    if process == os.getpid():
        raise CUDARuntimeError(201)  # cudaErrorDeviceUninitialized
    try:
        return mapped(os.open(f"/proc/{process}/fd/{file}", os.O_RDWR), nbytes)
    except OSError:
        raise CUDARuntimeError(1) from None  # cudaErrorInvalidValue


class OtherRuntime:
    """What of ``cupy.cuda.runtime`` is about memory that several devices reach."""

    def mallocManaged(self, size, flags=FOR_ALL):
        machine = self._machine
        assert flags == FOR_ALL
        room = machine.host_total + machine.total
        if size > room - sum(len(each["view"]) for each in machine.managed.values()):
            raise CUDARuntimeError(2)
        start, view = aligned(size)
        machine.ranges[start + FALSE] = machine.device, view
        # Pages are where they were first used: nowhere yet.
        machine.managed[start + FALSE] = {"view": view, "advice": {}, "pages": None}
        machine.calls.append(("mallocManaged", size))
        return start + FALSE

    def memAdvise(self, devPtr, count, advice, device):
        pages = self._managed(devPtr, count, device)
        kind, unset = advice - 1 | 1, not advice % 2
        assert kind in (READ_MOSTLY, PREFERRED_LOCATION, ACCESSED_BY)
        pages["advice"].pop(kind, None)
        if not unset:
            pages["advice"][kind] = device
        self._machine.calls.append(("memAdvise", count, advice, device))

    def memPrefetchAsync(self, devPtr, count, dstDevice, stream):
        machine = self._machine
        machine.check_stream(stream)
        machine.check_waiting(stream)  # no graph can contain it
        pages = self._managed(devPtr, count, dstDevice)
        machine.calls.append(("memPrefetchAsync", count, dstDevice, stream))
        machine.queue(stream, lambda: pages.update(pages=dstDevice))

    def deviceCanAccessPeer(self, device, peerDevice):
        if not {device, peerDevice} <= set(range(self._machine.count)):
            raise CUDARuntimeError(101)  # cudaErrorInvalidDevice
        return int((device, peerDevice) in self._machine.can_reach)

    def deviceEnablePeerAccess(self, peerDevice):
        machine = self._machine
        pair = machine.device, peerDevice
        if pair not in machine.can_reach:
            raise CUDARuntimeError(217)  # cudaErrorPeerAccessUnsupported
        if pair in machine.reaches:
            raise CUDARuntimeError(704)  # cudaErrorPeerAccessAlreadyEnabled
        machine.reaches.add(pair)

    def deviceGetPCIBusId(self, device):
        return f"0000:{device:02x}:00.0"

    def deviceGetByPCIBusId(self, pci_bus_id):
        device = int(pci_bus_id.split(":")[1], 16)
        if device >= self._machine.count:
            raise CUDARuntimeError(101)  # cudaErrorInvalidDevice
        return device

    def ipcGetMemHandle(self, devPtr):
        found = self._machine.ranges.get(devPtr)
        # Only whole ranges of cudaMalloc.
        if found is None or devPtr in {**self._machine.managed, **self._machine.pooled}:
            raise CUDARuntimeError(1)  # cudaErrorInvalidValue
        return written(len(found[1]), found[1].file.number)

    def ipcOpenMemHandle(self, handle, flags=1):
        machine = self._machine
        if handle in machine.opened.values():
            raise CUDARuntimeError(208)  # cudaErrorAlreadyMapped
        view = opened(handle)
        start = ctypes.addressof(view) + FALSE
        machine.ranges[start] = machine.device, view
        machine.opened[start] = handle
        machine.calls.append(("ipcOpenMemHandle", len(view)))
        return start

    def ipcCloseMemHandle(self, devPtr):
        del self._machine.opened[devPtr]
        _, view = self._machine.ranges.pop(devPtr)
        self._machine.calls.append(("ipcCloseMemHandle", len(view)))

    def ipcGetEventHandle(self, event):
        machine = self._machine
        if machine.event_flags[event] & 6 != 6:
            raise CUDARuntimeError(400)  # cudaErrorInvalidResourceHandle
        _, done = in_file(1)
        done[0] = b"\0"
        machine.shared_events[event] = done
        stream = machine.events[event][0]
        machine.queue(stream, lambda: done.__setitem__(0, b"\1"))
        if len(machine.queued[stream]) == 1:
            # No copy is late.
            machine.flush(stream)
        return written(1, done.file.number)

    def ipcOpenEventHandle(self, handle):
        event = self.eventCreateWithFlags(6)
        self._machine.events[event] = OF_OTHERS, opened(handle)
        return event

    def streamWaitEvent(self, stream, event, flags=0):
        recorded = self._machine.events[event]
        if recorded is None or recorded[0] is not OF_OTHERS:
            return super().streamWaitEvent(stream, event, flags)
        self._machine.check_stream(stream)
        self._machine.queue(stream, lambda: wait_for_others(recorded[1]))

    def _managed(self, address, nbytes, device):
        """Return the managed range that bytes lie in, which can move to a device."""
        machine = self._machine
        if device != OF_CPU and not 0 <= device < machine.count:
            raise CUDARuntimeError(101)  # cudaErrorInvalidDevice
        if not machine.moves_pages:
            raise CUDARuntimeError(101)
        found = machine.managed_range(address, nbytes)
        if found is None:
            raise CUDARuntimeError(1)  # cudaErrorInvalidValue
        return found
