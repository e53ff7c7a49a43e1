"""The contract of a backend: where the bytes of arrays come from.

A backend hands out ranges of memory and takes them back. Nothing else in the
package knows how memory is obtained, and a backend knows nothing of arrays.
"""

cimport cython
from libc.string cimport memcpy, memset

from ndx._lib.clock cimport clock_time, wall_time
from ndx._lib.free_threading cimport ndx_load_time
from ndx._lib.guards cimport Damage, described, tell
from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx._lib.unraisable cimport report_ignored

from ndx._lib.device import MOST, device_of, kind_named
from ndx._lib.sizes import parse_limit
from ndx.backends import _pressure

__all__ = ["Backend", "check_whole"]

# The names of `Remedy`.
cdef tuple REMEDIES = (
    "idle", "others", "eviction", "fallback", "trim", "collection", "callback")

IS_BASE = ("is a base class and has no memory: derive from it, or take one of ndx's "
           "own, such as 'host'")


@cython.binding(False)
@cython.embedsignature(True)
cdef class Backend:
    """Base class of all kinds of memory.

    A backend in Cython derives from this class (``from ndx.backends.base cimport
    Backend, Memory``) and overrides `allocate` and `release`; one in Python
    derives from `ndx.backends.PythonBackend`.

    Parameters
    ----------
    name : str
        Name under which messages and statistics show it.
    limit : int or str, optional
        Upper bound on the bytes held from the system, such as ``"2GiB"`` or
        ``"60%"`` of the machine's memory; ``None`` for no bound, 0 to refuse
        everything.

    Attributes
    ----------
    device_kind : str or None
        Of the class: the kind of devices whose memory it gives, `ndx.engines` of which
        computes. The option ``device=``, an int, is then the number of the device. None
        for the CPU's.

    Notes
    -----
    Thread rule: `allocate` and `release` may be called by any thread, with or
    without the GIL. Whoever holds a range keeps a reference to its backend, so a
    change of the current backend never re-routes a release.
    """

    device_kind = None

    def __cinit__(self, *args, limit=None, **options):
        self.name = "backend"
        self.device = "cpu"
        if self.device_kind is not None:
            self.lie_on(self.device_kind, options.get("device", 0))
        self.host_accessible = True
        self.limit_nbytes = -1 if limit is None else parse_limit(limit)
        _pressure.backends[next(_pressure.numbers)] = self

    def __init__(self, *, limit: Size | None = None) -> None:
        # Unknown options raise here; `__cinit__` has taken the known ones.
        pass

    cdef int lie_on(self, object kind, object index) except -1:
        """Make the backend one of a device's memory."""
        found = kind_named(kind)
        if type(index) is not int or not 0 <= index < MOST:
            raise ValueError(
                f"device={index!r} is not valid: devices of kind {kind!r} have the "
                f"numbers 0 to {MOST - 1}")
        self.device_number = found.first + index
        self.device = str(device_of(self.device_number))
        devices.in_use = found.in_use = True
        return 0

    @property
    def limit(self) -> int | None:
        """Upper bound on the bytes held from the system; None for no bound."""
        return None if self.limit_nbytes < 0 else self.limit_nbytes

    def trim(self) -> int:
        """Give idle memory back to the system; return the bytes given back."""
        cdef size_t released
        with nogil:
            released = self.trim_idle()
        return released

    def stats(self) -> dict[str, int | None]:
        """Return what is allocated and reserved, as a dict of bytes and counts.

        Returns
        -------
        dict
            ``allocated_bytes`` and ``allocated_count`` (live ranges),
            ``peak_bytes`` and ``peak_count`` (the most of each, with several threads at
            most these), ``total_allocations`` and ``total_bytes`` (of all requests
            since the start); ``reserved_bytes`` (held from the system, idle ones
            included), ``peak_reserved_bytes``, ``system_allocations``,
            ``system_frees``; ``limit``; ``peak_time`` and ``peak_reserved_time`` (when
            the peaks of bytes were set, in seconds since 1970; None: not known).
        """
        cdef Counters counters
        with nogil:
            self.read_counters(&counters)
        return {
            "allocated_bytes": counters.allocated,
            "allocated_count": counters.live,
            "peak_bytes": counters.peak_allocated,
            "peak_count": counters.peak_live,
            "total_allocations": counters.allocations,
            "total_bytes": counters.lent,
            "reserved_bytes": counters.reserved,
            "peak_reserved_bytes": counters.peak_reserved,
            "system_allocations": counters.system_allocations,
            "system_frees": counters.system_frees,
            "limit": self.limit,
            "peak_time": wall_time(counters.peak_time),
            "peak_reserved_time": wall_time(counters.peak_reserved_time),
        }

    def relief(self) -> dict[str, int | float]:
        """Return how often memory was short, and what helped.

        Returns
        -------
        dict
            ``refused_requests``: at first; ``out_of_memory_errors``: of these, that
            were never served; ``relief_seconds``: time until they were served or the
            error was raised. How many were served after which step (docs/pool.md):
            ``helped_by_idle`` memory of its own pool, ``helped_by_others`` (idle memory
            of closed workspaces and of pools that compete), ``helped_by_eviction`` of
            arrays (``evict=``), ``helped_by_fallback``, ``helped_by_trim`` (of a
            backend without a pool), ``helped_by_collection``, ``helped_by_callback``.
        """
        cdef ReliefCounters *counters = &self.relief_counters
        cdef int remedy
        found = {
            "refused_requests": ndx_load_time(&counters.refused),
            "out_of_memory_errors": ndx_load_time(&counters.errors),
            "relief_seconds": ndx_load_time(&counters.nanoseconds) * 1e-9,
        }
        for remedy in range(NREMEDIES):
            found[f"helped_by_{REMEDIES[remedy]}"] = ndx_load_time(
                &counters.helped[remedy])
        return found

    def largest_live(self) -> list[tuple[int, int]]:
        """Return (bytes, number) of the largest live ranges, where that is known."""
        return []

    def memory_info(self) -> tuple[int | None, int | None]:
        """Return the free and all bytes of the source; None where not known."""
        return None, None

    def reset_peak(self) -> None:
        """Reset the peaks to what is held now."""
        with nogil:
            self.rewind_peak()

    def raise_peak(self, peaks: dict[str, int | float | None]) -> None:
        """Raise the peaks to at least those of earlier `stats`, with their times."""
        cdef Counters before
        before.peak_allocated = peaks["peak_bytes"]
        before.peak_live = peaks["peak_count"]
        before.peak_reserved = peaks["peak_reserved_bytes"]
        before.peak_time = clock_time(peaks["peak_time"])
        before.peak_reserved_time = clock_time(peaks["peak_reserved_time"])
        with nogil:
            self.lift_peak(&before)

    def _missing(self):
        """Return what an instance lacks to give memory, in words; None: nothing."""
        return IS_BASE if type(self) is Backend else None

    def _take_refusal(self):
        """Return, and forget, the error by which its memory was last refused here."""
        return None

    def _damage(self):
        """Return what was written around its ranges, or to free ones: each once."""
        cdef Damage some[8]
        cdef int count = 8, i
        cdef list found = []
        while count >= 7:
            with nogil:
                count = self.find_damage(some, 8)
            for i in range(count):
                found.append(described(&some[i], self.name, None))
        return found

    def __repr__(self):
        limit = "" if self.limit is None else f", limit={self.limit}"
        return f"<{type(self).__name__} {self.name!r}{limit}>"

    # To override: `allocate` fills `out` with an aligned range (of zeros, if asked)
    # and returns ALLOCATED; or another Status, with nothing changed; or raises.

    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} has no allocate")

    cdef void release(self, Memory *memory) noexcept nogil:
        pass

    cdef void purge(self, Memory *memory, size_t low, size_t high) noexcept nogil:
        """Give back pages of a range outside of [low, high), which is still read."""

    cdef size_t trim_idle(self) noexcept nogil:
        return 0

    cdef int allocate_on(self, size_t nbytes, bint zero, size_t stream,
                         Memory *out) except -1 nogil:
        """Like `allocate`, for a stream that need not be the current one."""
        return self.allocate(nbytes, zero, out)

    cdef int allocate_from_fallback(self, size_t nbytes, bint zero, Memory *out,
                                    PyObject **server) except -1:
        """Like `allocate`, from the fallback or, if that refuses, its own fallback.

        `server` is set to the backend that the range is to be released to, a borrowed
        reference.
        """
        return NO_MEMORY

    # The following work on ranges of the backend's memory, which may be a device's. On
    # a device they are ordered by its current stream.

    cdef void clear(self, char *ptr, size_t nbytes) noexcept nogil:
        """Set bytes to zero."""
        memset(ptr, 0, nbytes)

    cdef void copy(self, char *out, const char *ptr, size_t nbytes) noexcept nogil:
        """Copy bytes to another place of its memory."""
        memcpy(out, ptr, nbytes)

    cdef size_t current_stream(self) except? 0:
        """Return the handle of the device's current stream."""
        return 0

    cdef int check_arena(self, str name) except -1:
        """Raise if the arena of a workspace may not serve here, now."""
        return 0

    cdef void use_on(self, Memory *memory, size_t stream) noexcept nogil:
        """Note that a stream uses a range, which is not reused before that is done."""

    cdef int finish(self, Memory *memory) except -1 nogil:
        """Wait, on the CPU, until the uses that `use_on` noted are done."""
        return 0

    cdef void hand_over(self, size_t stream, size_t before) noexcept nogil:
        """Make a stream wait, on the device, for the work submitted to another."""

    cdef bint take_cell(self, size_t nbytes) noexcept nogil:
        """Count an array of at most CELL bytes, whose elements lie in its object.

        False: the array needs a range.
        """
        return False

    cdef void give_cell(self, char *ptr, size_t nbytes) noexcept nogil:
        """Count an array of `take_cell` as gone."""

    cdef int find_damage(self, Damage *out, int room) noexcept nogil:
        """Describe, and mend, what was written around its ranges, or to free ones.

        Returns how much there is: at most `room`, which is at least 2. Where that is
        `room` or one less, there may be more.
        """
        return 0

    cdef void tell_damage(self, const Damage *damage, int count) noexcept nogil:
        """Report damage that was found where nothing can be raised."""
        if count:
            with gil:
                tell_of_damage(self, damage, count)

    cdef void read_counters(self, Counters *out) noexcept nogil:
        out[0] = self.counters

    cdef void lift_peak(self, const Counters *peaks) noexcept nogil:
        counters_restore(&self.counters, peaks)

    cdef void rewind_peak(self) noexcept nogil:
        counters_rewind(&self.counters)


cdef void tell_of_damage(Backend self, const Damage *damage, int count) noexcept:
    cdef PendingError pending = set_error_aside()
    cdef list found = []
    cdef int i
    try:
        for i in range(count):
            found.append(described(&damage[i], self.name, None))
        tell(found)
    except BaseException as error:
        report_ignored(self, error)
    put_error_back(pending)


def check_whole(Backend backend) -> None:
    """Raise if a backend has no memory to give, such as one that is not initialized."""
    missing = backend._missing()
    if missing is not None:
        raise TypeError(f"{type(backend).__name__} {missing}")
