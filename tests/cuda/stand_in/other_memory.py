"""Managed memory of the stand-in, and access of GPUs to one another's memory."""

import ctypes

from .host_memory import FALSE, CUDARuntimeError

FOR_ALL = 1
READ_MOSTLY, PREFERRED_LOCATION, ACCESSED_BY = 1, 3, 5
OF_CPU = -1
ALIGN = 512


def aligned(nbytes):
    """Return the address of new bytes, and what keeps them."""
    buffer = (ctypes.c_char * (nbytes + ALIGN))()
    ctypes.memset(buffer, 0xA5, nbytes + ALIGN)
    start = -(-ctypes.addressof(buffer) // ALIGN) * ALIGN
    view = (ctypes.c_char * nbytes).from_address(start)
    view.owner = buffer
    return start, view


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
