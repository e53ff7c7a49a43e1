"""Large copies between pageable memory and a GPU, through page-locked buffers.

The buffers come from the backend ``"pinned"``, whose pool counts them, and reuses them
when the GPU is done.
"""

from collections import deque
from ctypes import memmove

from ndx import backends
from ndx._lib.errors import OutOfMemoryError

__all__ = ["ANY_WAY", "SMALL", "Staging"]

SMALL = 1 << 16  # up to this, CUDA's own staging neither waits nor costs more
CHUNK = 1 << 22
MOST = 8  # chunks in transit to one GPU
ANY_WAY = 4  # cudaMemcpyDefault: direction by the addresses
WITHOUT_TIMING = 2  # cudaEventDisableTiming


class Staging:
    """Copies to and from one GPU.

    Parameters
    ----------
    runtime : module
        CuPy's ``cupy.cuda.runtime``; the GPU is the current one in all calls.
    """

    def __init__(self, runtime):
        self.runtime = runtime
        self.flying = deque()  # events of chunks in transit, in order
        self.idle = []  # events

    def send(self, target, address, nbytes, stream):
        """Copy memory of the CPU, which may change when this returns, to the GPU.

        The CPU waits only while `MOST` chunks are in transit.
        """
        for start in range(0, nbytes, CHUNK):
            size = min(CHUNK, nbytes - start)
            self._make_room()
            try:
                buffer = self._buffer(size)
            except OutOfMemoryError:
                # CUDA stages the rest, and waits if necessary.
                self._copy(target + start, address + start, nbytes - start, stream)
                return
            try:
                memmove(buffer.address, address + start, size)
                self._copy(target + start, buffer.address, size, stream)
                self.flying.append(self._record(stream))
            finally:
                # The pool reuses the buffer, freed now, only after the copy.
                buffer.record_use(stream)

    def fetch(self, address, source, nbytes, stream):
        """Copy memory of the GPU to the CPU: one chunk arrives, one is copied out."""
        arriving = deque()
        buffers = []
        try:
            for start in range(0, nbytes, CHUNK):
                size = min(CHUNK, nbytes - start)
                if len(arriving) == 2:
                    buffers.append(self._put_away(arriving.popleft()))
                try:
                    buffer = buffers.pop() if buffers else self._buffer(size)
                except OutOfMemoryError:
                    self._copy(address + start, source + start, nbytes - start, stream)
                    break
                arriving.append((None, buffer, address + start, size))
                self._copy(buffer.address, source + start, size, stream)
                arriving[-1] = (self._record(stream), *arriving[-1][1:])
            while arriving:
                self._put_away(arriving.popleft())
        finally:
            # For CUDA's own staging; and after an error no copy may continue.
            self.runtime.streamSynchronize(stream)

    def _make_room(self):
        """Forget the chunks that have arrived; wait while too many are in transit."""
        while True:
            try:
                event = self.flying.popleft()
            except IndexError:
                # The queue is empty, or another thread took the last event.
                return
            if self.runtime.eventQuery(event) == 0:
                self.idle.append(event)
            elif len(self.flying) + 1 < MOST:
                self.flying.appendleft(event)
                return
            else:
                self._wait_for(event)

    def _buffer(self, size):
        return backends.Buffer(backends.get("pinned"), size)

    def _copy(self, target, source, nbytes, stream):
        self.runtime.memcpyAsync(target, source, nbytes, ANY_WAY, stream)

    def _put_away(self, chunk):
        event, buffer, address, size = chunk
        self._wait_for(event)
        memmove(address, buffer.address, size)
        return buffer

    def _record(self, stream):
        event = (
            self.idle.pop()
            if self.idle
            else self.runtime.eventCreateWithFlags(WITHOUT_TIMING)
        )
        self.runtime.eventRecord(event, stream)
        return event

    def _wait_for(self, event):
        self.runtime.eventSynchronize(event)
        self.idle.append(event)
