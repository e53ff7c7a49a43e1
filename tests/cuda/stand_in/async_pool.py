"""CUDA's own pools of the stand-in: memory that streams get and free in their order."""

import ctypes

from .host_memory import FALSE, CUDARuntimeError

RELEASE_THRESHOLD, RESERVED_NOW = 4, 5
FREED = 0xDD


class MemPoolProps:
    def __init__(self, allocType, handleType, locationType, devId):
        assert (allocType, handleType, locationType) == (1, 0, 1)
        self.device = devId


class AsyncRuntime:
    """What of ``cupy.cuda.runtime`` is about pools."""

    MemPoolProps = MemPoolProps

    def memPoolCreate(self, props):
        if not self._machine.has_pools:
            raise CUDARuntimeError(801)  # cudaErrorNotSupported
        pool = self._machine.handle()
        self._machine.pools[pool] = {"device": props.device, "free": [], "held": 0}
        return pool

    def memPoolDestroy(self, pool):
        found = self._machine.pools.pop(pool)
        self._machine.finish_all()
        for address, _, _ in found["free"]:
            self.free(address)

    def memPoolSetAttribute(self, pool, attr, value):
        assert (attr, value) == (RELEASE_THRESHOLD, 2**64 - 1)

    def memPoolGetAttribute(self, pool, attr):
        assert attr == RESERVED_NOW
        return self._machine.pools[pool]["held"]

    def memPoolTrimTo(self, pool, size):
        found = self._machine.pools[pool]
        for free in list(found["free"]):
            if found["held"] > size and self._is_past(*free[1:]):
                found["free"].remove(free)
                found["held"] -= len(self._range_of(free[0]))
                self.free(free[0])

    def mallocFromPoolAsync(self, size, pool, stream):
        self._machine.check_stream(stream)
        found = self._machine.pools[pool]
        assert found["device"] == self._machine.device
        for free in found["free"]:
            # Of the same stream at once; of another when that has come so far.
            own = free[1] == stream or self._is_past(*free[1:])
            if own and len(self._range_of(free[0])) == size:
                found["free"].remove(free)
                break
        else:
            free = (self.malloc(size),)
            found["held"] += size
        self._machine.pooled[free[0]] = pool
        self._machine.calls.append(("mallocFromPoolAsync", size, stream))
        return free[0]

    def freeAsync(self, ptr, stream):
        machine = self._machine
        machine.check_stream(stream)
        pool = machine.pools.get(machine.pooled.pop(ptr, None))
        if pool is None:
            raise CUDARuntimeError(1)  # cudaErrorInvalidValue
        buffer = self._range_of(ptr)
        # Whoever still reads it then finds this.
        machine.queue(
            stream,
            lambda: ctypes.memset(ptr - FALSE, FREED, len(buffer)),
        )
        machine.calls.append(("freeAsync", stream))
        pool["free"].append((ptr, stream, machine.given[stream]))

    def _is_past(self, stream, units):
        return self._machine.done.get(stream, 0) >= units
