"""Page-locked memory and copies of the stand-in: they are done late, as CUDA may.

A copy whose CPU side is page-locked is only queued. It reads and writes when its
stream is waited for, or when a later kernel of the stream needs what it wrote: as late
as can be, so that whoever changes or reuses its memory too early gets wrong data. Of
pageable memory a copy to the GPU has read all when the call returns, and a copy from
it is done, as CUDA says.
"""

import ctypes
import threading
from types import SimpleNamespace

# Non-canonical: no process has anything there.
FALSE = 1 << 62
HOST_MEMORY = 1 << 28
PORTABLE, MAPPED = 1, 2
UNREGISTERED, HOST, DEVICE, MANAGED = 0, 1, 2, 3
IN_A_FREED_RANGE = 0xDD
CAPTURED = "captured"


class CUDARuntimeError(RuntimeError):
    def __init__(self, status):
        super().__init__(f"error {status}")
        self.status = status


class CUDADriverError(RuntimeError):
    """What a kernel's launch raises: of another kind than errors of the runtime."""

    def __init__(self, status):
        super().__init__(
            "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: operation failed due to a previous "
            "error during capture"
        )
        self.status = status


class Queues:
    """Streams: units of work, of which some are copies still to be made."""

    def __init__(self):
        self.given = {}  # stream -> units of work
        self.done = {}
        self.events = {}  # event -> (stream, units), None before it is recorded
        self.event_devices = {}
        self.event_flags = {}
        self.queued = {}  # stream -> [(units, function)]
        self.host_ranges = {}  # address -> (nbytes, flags, buffer)
        self.pools = {}  # handle -> a pool of CUDA's (`async_pool`)
        self.pooled = {}  # address -> handle
        self.host_held = 0
        self.host_total = HOST_MEMORY
        self.captures = {}  # stream -> what it was given since `begin_capture`
        self.streams = {0, 1, 2}  # handles of those that there are
        self.lock = threading.RLock()

    def check_stream(self, stream):
        """Refuse the handle of a stream that is over."""
        if stream not in self.streams:
            raise CUDARuntimeError(400)  # cudaErrorInvalidResourceHandle

    def submit(self, stream):
        """Give a stream a kernel, for which all that was queued before is done."""
        with self.lock:
            self.given[stream] = self.given.get(stream, 0) + 1
            self.flush(stream)

    def perform(self, work, stream):
        """Launch a kernel: it is done now or, while captured, written down."""
        if self.captures.get(stream, ()) is None:
            raise CUDADriverError(901)
        if not self.is_written_down(work, stream):
            self.submit(stream)
            work()

    def is_written_down(self, work, stream):
        """Whether a stream is captured, and so has work to do later only."""
        if stream not in self.captures:
            return False
        if self.captures[stream] is None:
            raise CUDARuntimeError(901)  # cudaErrorStreamCaptureInvalidated
        self.captures[stream].append(work)
        return True

    def check_waiting(self, *streams):
        """Refuse to wait for what is only being written down.

        Whoever asked for it, the captures are invalid from now on.
        """
        found = [x for x in streams or list(self.captures) if x in self.captures]
        for stream in found:
            self.captures[stream] = None
        if found:
            raise CUDARuntimeError(900)  # cudaErrorStreamCaptureUnsupported

    def queue(self, stream, function):
        """Give a stream work that is done late."""
        if self.is_written_down(function, stream):
            return
        with self.lock:
            units = self.given[stream] = self.given.get(stream, 0) + 1
            self.queued.setdefault(stream, []).append((units, function))

    def flush(self, stream, units=None):
        """Do what was queued, up to some units."""
        with self.lock:
            queue = self.queued.get(stream, [])
            while queue and (units is None or queue[0][0] <= units):
                queue.pop(0)[1]()

    def finish(self, stream, units=None):
        """Let a stream have done all that it was given, or so many units."""
        with self.lock:
            self.flush(stream, units)
            if units is None:
                units = self.given.get(stream, 0)
            self.done[stream] = max(self.done.get(stream, 0), units)

    def finish_all(self):
        for stream in list(self.given):
            self.finish(stream)

    def host_range(self, address, nbytes=0):
        """Return the page-locked range that bytes lie in; None: they lie in none."""
        for start, found in self.host_ranges.items():
            if start <= address and address + nbytes <= start + found[0]:
                return found
        return None


class HostRuntime:
    """What of ``cupy.cuda.runtime`` is about the host's memory, copies and events."""

    def hostAlloc(self, size, flags):
        machine = self._machine
        assert flags & ~(PORTABLE | MAPPED) == 0
        if size > machine.host_total - machine.host_held:
            raise CUDARuntimeError(2)
        buffer = (ctypes.c_char * (size + 4096))()
        ctypes.memset(buffer, 0xA5, size + 4096)
        start = -(-ctypes.addressof(buffer) // 4096) * 4096
        machine.host_held += size
        machine.host_ranges[start] = size, flags, buffer
        machine.calls.append(("hostAlloc", size, flags))
        return start

    def freeHost(self, ptr):
        machine = self._machine
        if ptr not in machine.host_ranges:
            raise CUDARuntimeError(1)  # cudaErrorInvalidValue
        size, _, buffer = machine.host_ranges.pop(ptr)
        machine.host_held -= size
        # What is queued still has the buffer, and finds this in it.
        ctypes.memset(buffer, IN_A_FREED_RANGE, len(buffer))
        machine.calls.append(("freeHost", size))

    def pointerGetAttributes(self, ptr):
        machine = self._machine
        if machine.host_range(ptr) or ptr < FALSE:
            found = HOST if machine.host_range(ptr) else UNREGISTERED
            return SimpleNamespace(type=found, device=-2)
        found = MANAGED if machine.managed_range(ptr) else DEVICE
        return SimpleNamespace(type=found, device=self._device_of(ptr))

    def streamCreate(self):
        handle = self._machine.handle()
        self._machine.streams.add(handle)
        return handle

    def streamDestroy(self, stream):
        # What it was given is still done.
        self._machine.streams.remove(stream)

    def memcpyAsync(self, dst, src, size, kind, stream):
        machine = self._machine
        machine.check_stream(stream)
        sides = [self._side(dst, size), self._side(src, size)]
        is_device = [kind_of == DEVICE for kind_of, _, _ in sides]
        # What the direction is said to be, and is: 4 is cudaMemcpyDefault.
        found = {(0, 0): 0, (1, 0): 1, (0, 1): 2, (1, 1): 3}[tuple(map(int, is_device))]
        mapped = any(kind_of == HOST for kind_of, _, _ in sides)
        assert kind in (found, 4) or mapped, (kind, found)
        machine.calls.append(("memcpyAsync", found, stream))
        if UNREGISTERED in (sides[0][0], sides[1][0]):
            machine.check_waiting(stream)
        keep = [owner for _, _, owner in sides]

        def copy(target=sides[0][1], source=sides[1][1], keep=keep):
            ctypes.memmove(target, source, size)

        machine.queue(stream, copy)
        if sides[1][0] == UNREGISTERED:
            machine.flush(stream)
        if sides[0][0] == UNREGISTERED:
            machine.finish(stream)

    def memcpyPeerAsync(self, dst, dstDevice, src, srcDevice, size, stream):
        machine = self._machine
        machine.check_stream(stream)
        for address, device in ((dst, dstDevice), (src, srcDevice)):
            assert self._side(address, size)[0] == DEVICE
            assert self._device_of(address) == device
        machine.calls.append(("memcpyPeerAsync", stream))
        sides = self._side(dst, size), self._side(src, size)
        machine.queue(stream, lambda: ctypes.memmove(sides[0][1], sides[1][1], size))

    def _side(self, address, nbytes):
        """Return of which kind memory is, where it really is, and what keeps it."""
        if address >= FALSE:
            keep = self._range_of(address, nbytes)
            if keep is None:
                raise CUDARuntimeError(1)  # cudaErrorInvalidValue
            return DEVICE, address - FALSE, keep
        found = self._machine.host_range(address, nbytes)
        if found:
            return HOST, address, found[2]
        return UNREGISTERED, address, None

    def eventCreateWithFlags(self, flags):
        event = self._machine.handle()
        self._machine.events[event] = None
        self._machine.event_devices[event] = self._machine.device
        self._machine.event_flags[event] = flags
        return event

    def eventRecord(self, event, stream):
        machine = self._machine
        machine.check_stream(stream)
        if machine.event_devices[event] != machine.device:
            raise CUDARuntimeError(400)  # cudaErrorInvalidResourceHandle
        if stream in machine.captures:
            machine.events[event] = CAPTURED, stream
            return
        machine.events[event] = stream, machine.given.get(stream, 0)
        machine.calls.append(("eventRecord", stream))

    def eventQuery(self, event):
        machine = self._machine
        recorded = machine.events[event]
        if recorded is None:
            return 0
        stream, units = recorded
        if stream is CAPTURED:
            # CuPy returns it, and the capture is invalid.
            machine.captures[units] = None
            return 907  # cudaErrorCapturedEvent
        return 0 if machine.done.get(stream, 0) >= units else 600

    def eventSynchronize(self, event):
        recorded = self._machine.events[event]
        self._machine.calls.append(("eventSynchronize", event))
        if recorded is None:
            return
        if recorded[0] is CAPTURED:
            self._machine.check_waiting(recorded[1])
        self._machine.finish(*recorded)

    def eventDestroy(self, event):
        del self._machine.events[event]
        del self._machine.event_devices[event]
        del self._machine.event_flags[event]
        self._machine.shared_events.pop(event, None)

    def streamWaitEvent(self, stream, event, flags=0):
        machine = self._machine
        machine.check_stream(stream)
        recorded = machine.events[event]
        if recorded is None:
            return
        if recorded[0] is CAPTURED:
            # The other stream is part of the capture now, which nobody joins.
            machine.captures[recorded[1]] = None
            return
        if stream in machine.captures:
            machine.captures[stream] = None
            raise CUDARuntimeError(905)  # cudaErrorStreamCaptureIsolation
        machine.calls.append(("streamWaitEvent", stream, recorded[0]))
        machine.queue(stream, lambda: machine.flush(*recorded))

    def streamSynchronize(self, stream):
        self._machine.check_stream(stream)
        self._machine.check_waiting(stream)
        self._machine.calls.append(("streamSynchronize", stream))
        self._machine.finish(stream)

    def deviceSynchronize(self):
        self._machine.check_waiting()
        self._machine.calls.append(("deviceSynchronize",))
        self._machine.finish_all()
