"""The base class of all backends with a pool, for any source of memory."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memset

from ndx._lib.clock cimport ndx_milliseconds
from ndx._lib.free_threading cimport (
    ndx_load_address, ndx_load_flag, ndx_load_size, ndx_store_size,
)
from ndx._lib.guards cimport (
    FRESH_BYTE, Damage, forget_maker, guards, note_maker,
)
from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx._lib.unraisable cimport report_ignored
from ndx.backends._budget cimport budget_short, watch, watch_is_due
from ndx.backends._pool.guards cimport (
    pool_find_damage, pool_guard, pool_unguard, pool_use_guards,
)
from ndx.backends._pool.index cimport PoolBlock
from ndx.backends._pool.pool cimport Pool
from ndx.backends._pool.report cimport (
    pool_events, pool_largest_live, pool_snapshot, pool_stats,
)
from ndx.backends._pool.store cimport (
    ARENA, SPLIT, cell_give, cell_take, ndx_lock_acquire, ndx_lock_release, quick_give,
    quick_take, requests_of,
)
from ndx.backends._pool.trim cimport (
    look_at_pools, pool_close_stream, pool_purge_used, pool_release_bounded,
    pool_release_since, pool_settle, pool_shrink, pool_synchronize, pool_trim,
)
from ndx.backends._relief cimport retry_from_idle
from ndx.backends.base cimport (
    ALLOCATED, NO_MEMORY, Backend, Counters, Memory, counters_restore, counters_rewind,
)
from ndx.backends.source cimport Source
from ndx.backends.user_code cimport UserCode

from ndx._lib.sizes import parse_limit, parse_size
from ndx._lib.system import machine_memory
from ndx.backends import _pressure
from ndx.backends._budget import warn_beyond
from ndx.backends._pool.options import OptionsSignature, PoolOptions
from ndx.backends._pool.trim import set_release_of_arenas
from ndx.backends._relief import warm_up

__all__ = ["PooledBackend"]

cdef enum:
    RECYCLE_SHIFT = 4            # one byte of so many powers of two of traffic
    # Idle bytes that are kept when NumPy frees an array in the scope of `numpy=True`:
    # enough for a loop over arrays of some MiB.
    NUMPY_IDLE = 67108864

cdef uint64_t FOR_EVER = <uint64_t>-1

# Smaller limits are not compared with what the machine has, which is read from files.
cdef size_t LARGE = <size_t>1 << 30


# The pool until `setup` makes another: derived classes may not call `__init__`, and
# calls of their methods must not crash then. Its source gives no memory.
cdef Pool NO_POOL = Pool(Source())


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class PooledBackend(Backend):
    """A backend whose memory a pool keeps: base class, and for sources of one's own.

    Parameters
    ----------
    source : ndx.backends.Source
        Where the pool takes its memory from.
    limit : int or str, optional
        Upper bound on the bytes held from the source, idle ones included, such as
        ``"2GiB"`` or ``"60%"``; None for no bound. Never exceeded, not by a byte.
    pool : {'split', 'round', 'naive', 'unpooled', 'arena'}, default 'split'
        What is done with memory that is released. ``split``: kept, cut and merged
        as needed. ``round``: kept, in powers of two. ``naive``: kept, for requests
        of its very size in pages. ``unpooled``: given back at once. ``arena``: one
        segment of `initial` bytes, and no more.
    initial : int or str, optional
        Bytes that the pool takes from its source at once, and keeps however long they
        are idle; of ``round`` and ``naive`` for requests of that size. The size of an
        ``arena``; default there: `limit`.
    idle_release : float or None, default 30
        Seconds after which idle memory is given back to the system; None for never.
        A thread does so for the host's memory and for files, unless the environment
        says ``NDX_IDLE_THREAD=0``; for others one of the next requests does.
    reserve_fraction : float, default 0
        The part of the source's memory that is left to others: before the pool
        takes more than that, it gives back what it keeps idle.
    fallback : str or Backend, optional
        The backend that serves what this one can't.
    evict : str or Backend, optional
        Where arrays go, those first that were not used for longest, when there is no
        memory for new ones: a backend of the host, such as ``"mmap"``; of a GPU, what
        that can address: ``"host"``, ``"mmap"``, or another GPU. They are used
        there, and come back when they are used often and there is room, or others were
        not used meanwhile. Arrays of 64 KiB or more move, unless an operation computes
        on them, foreign code may read them, or they are in a workspace.
    cutoff : int, optional
        Of ``round``: sizes up to ``2**cutoff`` bytes are powers of two, larger ones
        multiples of that. Default: 24 (16 MiB).
    """

    # The class of the constructor's options. Derived backends derive theirs from it.
    _options = PoolOptions
    __signature__ = OptionsSignature("source")

    def __cinit__(self, *args, **given):
        self.hooks = ()
        self.inside = UserCode()
        self.pool = NO_POOL

    def __init__(self, *args: Source, **given: Unpack[PoolKeywords]) -> None:
        derived = self.pool is not NO_POOL
        if not derived and "source" in given:
            args = (*args, given.pop("source"))
        if len(args) != (not derived):
            raise TypeError(
                f"{type(self).__name__} takes its options by name"
                + ("" if derived else f", after one source; {len(args)} were given"))
        self._options.refuse_others(type(self).__name__, given)
        if derived:
            # `__cinit__` of its class has made the pool.
            return
        source = args[0]
        if not isinstance(source, Source):
            raise TypeError(
                f"source must be an ndx.backends.Source, not {type(source).__name__}")
        self.name = type(source).__name__.removesuffix("Source").lower() or "pooled"
        self.setup(source, self.take_options(given))

    def _missing(self):
        if self.pool is not NO_POOL:
            return None
        return ("has no pool, since its __init__ did not call that of the base class: "
                "super().__init__(source)")

    def _take_refusal(self):
        return self.pool.source._take_refusal()

    cdef object take_options(self, dict given):
        """Return the options among the arguments; `__init__` refuses others."""
        return self._options.among(given)

    cdef int setup(self, Source source, object options) except -1:
        """Make the backend's pool, over a source."""
        cdef size_t total = 0
        known = (options.is_share or options.reserve_fraction) and source.info(
            NULL, &total)
        options = options.for_source(total if known else None, source.granularity)
        self.given = options
        # The pool has the limit.
        self.limit_nbytes = -1
        if options.limit is not None:
            warn_of_limit(source, options.limit)
        self.headroom_nbytes = <size_t>(options.reserve_fraction * total)
        self.fallback = options.fallback
        if self.fallback is not None and \
                self.fallback.device_number != self.device_number:
            raise ValueError(
                f"fallback={self.fallback!r} is not memory of {self.device}, where "
                "its arrays are computed on" + (
                    f"; ndx.use({self.device!r}, fallback='host') falls back to memory "
                    "of the host that it can address" if self.device_number else ""))
        if options.evict is not None:
            if options.evict.device_number != self.device_number:
                raise ValueError(
                    f"evict={options.evict!r} of {self.name!r} is not memory of "
                    f"{self.device}, where its arrays are computed on" + (
                        f"; ndx.use({self.device!r}, evict='host') lets them leave for "
                        "memory of the host that it can address"
                        if self.device_number else ""))
            if self.device_number and not hasattr(options.evict, "_receive"):
                raise ValueError(
                    f"evict={options.evict!r} of {self.name!r}: its class "
                    f"{type(options.evict).__name__} has no order of copies on a "
                    "device; valid are backends of ndx's own, such as 'host'")
            self.evictor = _pressure.new_evictor(self, options.evict)
        self.host_accessible = source.host_accessible
        self.pool = Pool(source, kind=options.pool, limit=options.limit,
                         initial=options.initial, cutoff=options.round_below,
                         idle_after=options.idle_milliseconds)
        if guards.mode and self.host_accessible and not self.device_number:
            pool_use_guards(self.pool)
            self.guarded = self.attended = True
        _pressure.pooled.add(self)
        if options.initial and options.pool != "arena":
            ndx_store_size(&self.pool.kept, options.initial)
            # With guards around it, it takes as much.
            warm_up(self, options.initial - min(
                2 * self.pool.guard, <size_t>options.initial), False)
        return 0

    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil:
        cdef PoolBlock *block
        if self.attended or watch_is_due(requests_of(self.pool)):
            return self.allocate_on(nbytes, zero, self.stream, out)
        block = quick_take(self.pool, nbytes)
        if block == NULL:
            return self.allocate_on(nbytes, zero, self.stream, out)
        out.ptr = block.ptr
        out.nbytes = nbytes
        out.cookie = block
        out.purged = 0
        if zero:
            memset(block.ptr, 0, nbytes)
        return ALLOCATED

    cdef bint take_cell(self, size_t nbytes) noexcept nogil:
        # Where pools are due for a look, a request for a range looks.
        return self.has_cells and not self.attended \
            and not watch_is_due(requests_of(self.pool)) \
            and cell_take(self.pool, nbytes)

    cdef void give_cell(self, char *ptr, size_t nbytes) noexcept nogil:
        cdef Memory memory
        if self.hooked:
            memory.ptr, memory.nbytes = ptr, nbytes
            memory.cookie, memory.purged = NULL, 0
            with gil:
                tell_of_release(self, &memory)
        cell_give(self.pool, nbytes)

    cdef int allocate_on(self, size_t nbytes, bint zero, size_t stream,
                         Memory *out) except -1 nogil:
        cdef PoolBlock *block = NULL
        cdef bint clean = False
        cdef int status, damages = 0
        cdef Damage damage
        if watch_is_due(requests_of(self.pool)):
            look_at_pools()
        if self.headroom_nbytes and nbytes > self.pool.quick_max:
            self.keep_headroom(nbytes)
        ndx_store_size(&self.traffic, ndx_load_size(&self.traffic) + nbytes)
        cdef size_t reserved = ndx_load_size(&self.pool.counters.reserved)
        if self.pool.kind == SPLIT and \
                reserved + nbytes > ndx_load_size(&self.pool.counters.peak_reserved):
            self.recycle(nbytes)
        status = self.pool.allocate(nbytes, stream, &block, &clean)
        if status != ALLOCATED:
            status = retry_from_idle(
                self.pool, nbytes, stream, status, &block, &clean,
                &self.relief_counters)
            if status != ALLOCATED:
                return status
        out.ptr = block.ptr
        out.nbytes = nbytes
        out.cookie = block
        out.purged = 0
        if self.guarded:
            out.ptr = pool_guard(self.pool, block, &damage, &damages)
            self.tell_damage(&damage, damages)
            if not zero:
                memset(out.ptr, FRESH_BYTE, nbytes)
            if ndx_load_address(<const void *const *>&guards.find_maker) != NULL:
                with gil:
                    note_maker(out.ptr)
        if zero and not clean:
            self.pool.source.clear(out.ptr, nbytes, stream)
        if self.hooked:
            with gil:
                try:
                    self.notify("allocate", nbytes, out.ptr)
                except BaseException:
                    self.pool.release(block)
                    raise
        return ALLOCATED

    cdef int allocate_from_fallback(self, size_t nbytes, bint zero, Memory *out,
                                    PyObject **server) except -1:
        cdef int status
        if self.fallback is None:
            return NO_MEMORY
        server[0] = <PyObject *>self.fallback
        status = self.fallback.allocate(nbytes, zero, out)
        if status != ALLOCATED and self.fallback.allocate_from_fallback(
                nbytes, zero, out, server) == ALLOCATED:
            return ALLOCATED
        # The reason is the fallback's own.
        return status

    cdef void release(self, Memory *memory) noexcept nogil:
        cdef PoolBlock *block = <PoolBlock *>memory.cookie
        if not self.attended and quick_give(self.pool, block):
            return
        if self.guarded:
            self.check_guards(memory)
        if self.hooked:
            with gil:
                tell_of_release(self, memory)
        self.pool.release(block)
        self.respect_limits()

    cdef void check_guards(self, Memory *memory) noexcept nogil:
        """Look for writes around a range whose guards its holder gives up."""
        cdef Damage damage[2]
        cdef int count = pool_unguard(
            self.pool, <PoolBlock *>memory.cookie, damage)
        self.tell_damage(damage, count)
        if ndx_load_address(<const void *const *>&guards.find_maker) != NULL:
            with gil:
                forget_maker(memory.ptr)

    cdef int find_damage(self, Damage *out, int room) noexcept nogil:
        return pool_find_damage(self.pool, out, room)

    cdef void respect_limits(self) noexcept nogil:
        """Give back idle memory above a limit that was lowered meanwhile."""
        cdef size_t reserved = ndx_load_size(&self.pool.counters.reserved)
        cdef size_t most = min(reserved, ndx_load_size(&self.pool.limit))
        if ndx_load_flag(&watch.over) and self.pool.source.budgeted:
            most -= min(most, budget_short(0))
        if reserved > most:
            pool_trim(self.pool, most, FOR_EVER)

    cdef void release_plain(self, Memory *memory) noexcept nogil:
        """Take back memory that NumPy frees, and keep little of it idle.

        Programs for NumPy expect that others can have freed memory at once.
        """
        if self.attended or memory.nbytes <= self.pool.quick_max \
                or not self.pool.source.budgeted:
            self.release(memory)
        else:
            pool_release_bounded(self.pool, <PoolBlock *>memory.cookie, NUMPY_IDLE)
            self.respect_limits()

    cdef void clear(self, char *ptr, size_t nbytes) noexcept nogil:
        self.pool.source.clear(ptr, nbytes, self.stream)

    cdef void use_on(self, Memory *memory, size_t stream) noexcept nogil:
        self.pool.record_use(<PoolBlock *>memory.cookie, stream)

    cdef void purge(self, Memory *memory, size_t low, size_t high) noexcept nogil:
        # A range is purged once; and small ranges are worth more whole.
        if memory.purged or memory.nbytes <= self.pool.quick_max:
            return
        if self.guarded:
            self.check_guards(memory)
        memory.purged = pool_purge_used(
            self.pool, <PoolBlock *>memory.cookie, low + self.pool.guard,
            high + self.pool.guard)

    cdef size_t trim_idle(self) noexcept nogil:
        return pool_trim(self.pool, 0, FOR_EVER)

    cdef void recycle(self, size_t nbytes) noexcept nogil:
        """Give back idle memory before the pool would grow beyond its peak.

        Fresh memory costs page faults, whether the pool grows for it or not. The bytes
        recycled in all are bounded by twice the pool's peak plus a part of the bytes
        allocated. So a program whose sizes alternate grows in the end, and never pays
        for more than that part.
        """
        cdef size_t reserved = ndx_load_size(&self.pool.counters.reserved)
        cdef size_t peak = ndx_load_size(&self.pool.counters.peak_reserved)
        cdef size_t idle = self.pool.idle()
        cdef size_t wanted = max(nbytes, reserved >> 4)
        cdef size_t budget = 2 * peak + (ndx_load_size(&self.traffic) >> RECYCLE_SHIFT)
        # Large requests may always recycle: at worst they cost as much as in the C
        # library, which gets each of them from the system.
        if nbytes < peak >> 3 and ndx_load_size(&self.recycled) > budget:
            return
        if idle < wanted >> 2 or self.pool.would_hit(nbytes):
            return
        if reserved - idle + nbytes > ndx_load_size(&self.pool.limit):
            # The limit will refuse the request all the same.
            return
        if self.pool.source.streams:
            pool_settle(self.pool, False)
            if self.pool.would_hit(nbytes):
                return
        if self.pool.source.paged and reserved > wanted:
            wanted = pool_shrink(self.pool, wanted, False)
            ndx_store_size(&self.recycled, ndx_load_size(&self.recycled) + wanted)

    cdef void keep_headroom(self, size_t nbytes) noexcept nogil:
        """Give back idle memory before the pool grows into the source's reserve."""
        cdef size_t idle = 0, total = 0, missing, released
        if self.pool.idle() == 0 or self.pool.would_hit(nbytes) \
                or not self.pool.source.info(&idle, &total):
            return
        if idle >= nbytes + self.headroom_nbytes:
            return
        missing = nbytes + self.headroom_nbytes - idle
        released = pool_shrink(self.pool, missing, False)
        if released < missing and self.pool.source.streams and self.pool.idle():
            # Some idle memory belongs to streams that are not done.
            pool_synchronize(self.pool)
            pool_shrink(self.pool, missing - released, False)

    cdef void read_counters(self, Counters *out) noexcept nogil:
        ndx_lock_acquire(&self.pool.lock)
        self.pool.gather()
        out[0] = self.pool.counters
        ndx_lock_release(&self.pool.lock)

    cdef void rewind_peak(self) noexcept nogil:
        ndx_lock_acquire(&self.pool.lock)
        self.pool.gather()
        counters_rewind(&self.pool.counters)
        ndx_lock_release(&self.pool.lock)

    cdef void lift_peak(self, const Counters *peaks) noexcept nogil:
        ndx_lock_acquire(&self.pool.lock)
        self.pool.gather()
        counters_restore(&self.pool.counters, peaks)
        ndx_lock_release(&self.pool.lock)

    cdef int notify(self, str action, size_t nbytes, char *ptr) except -1:
        # A hook may drop arrays of the pool, whose release calls the hooks again.
        entered = self.inside.enter(None if action == "free" else (
            f"a hook of backend {self.name!r} made an array in this very backend; it "
            "must make none: inside of it, use another backend or NumPy"))
        try:
            for hook in self.hooks:
                hook(action, nbytes, <uintptr_t>ptr)
        finally:
            self.inside.leave(entered)
        return 0

    @property
    def kind(self) -> str:
        """How released memory is kept: the option ``pool``."""
        return self.given.pool

    @property
    def options(self) -> PoolOptions:
        """The options that the backend has now, as a frozen value."""
        return self.given.changed(limit=self.limit, fallback=self.fallback)

    @property
    def limit(self) -> int | None:
        """Upper bound on the bytes held from the system; None for no bound.

        A lower one holds at once: idle memory above it goes back. Where live arrays are
        above it, requests are refused until they fit.
        """
        return None if self.pool.limit == <size_t>-1 else self.pool.limit

    @limit.setter
    def limit(self, value: Size | None) -> None:
        self.set_limit(value)

    cdef int set_limit(self, object value) except -1:
        cdef size_t nbytes
        if value is None:
            self.pool.set_limit(<size_t>-1)
            return 0
        nbytes = limit_on(self.pool.source, value)
        warn_of_limit(self.pool.source, nbytes)
        self.pool.set_limit(nbytes)
        _pressure.settle("limit", self)
        return 0

    @property
    def kept_nbytes(self) -> int:
        """Bytes that the pool holds at least, even if idle: `initial`, or reserved."""
        return self.pool.kept

    @kept_nbytes.setter
    def kept_nbytes(self, size_t value) -> None:
        ndx_store_size(&self.pool.kept, value)
        self.pool.note_idle(ndx_milliseconds())

    @property
    def page_nbytes(self) -> int:
        """Bytes of a page: memory is obtained in multiples of it."""
        return self.pool.source.granularity

    @property
    def guard_nbytes(self) -> int:
        """Bytes of a guard, of which each range has two; 0: `NDX_DEBUG_MEMORY` is off.

        They count as held (``reserved_bytes``, ``rounded_bytes``), not as allocated.
        """
        return self.pool.guard

    @property
    def idle_nbytes(self) -> int:
        """Bytes that are held, but in no array nor in an arena of a workspace."""
        return self.pool.idle()

    @property
    def arena_nbytes(self) -> int:
        """Bytes of the one segment of ``pool="arena"``; 0 for other pools."""
        return self.pool.initial if self.pool.kind == ARENA else 0

    @property
    def budgeted(self) -> bool:
        """Whether `ndx.memory.set_limit` bounds it with the others."""
        return self.pool.source.budgeted

    @property
    def gpu(self) -> int:
        """The GPU whose limit counts the memory, numbered from 1; 0: no GPU."""
        return self.pool.source.gpu

    @property
    def resource(self) -> object:
        """The resource that the memory comes from; pools with equal ones compete."""
        return self.pool.source.resource

    @property
    def place(self) -> str | None:
        """Where the memory is, as messages name it: a folder; None: in the machine."""
        return self.pool.source.place

    def trim(self, target: Size = 0, idle: float | None = None) -> int:
        """Give idle memory back to the system, the longest idle first.

        Parameters
        ----------
        target : int or str, default 0
            Bytes at which to stop: no more than that is held then, if so much is
            idle.
        idle : float, optional
            Only what has been idle for so many seconds. Default: all.

        Returns
        -------
        int
            Bytes given back.
        """
        cdef size_t nbytes = parse_size(target, "target")
        cdef uint64_t before = FOR_EVER
        cdef uint64_t now = ndx_milliseconds()
        cdef size_t released
        cdef double seconds = 0.0 if idle is None else idle
        if not seconds >= 0:
            raise ValueError(
                f"idle={idle!r} is not a time: give seconds, 0 or more, or None")
        if idle is not None:
            before = now - min(now, <uint64_t>(1000 * min(seconds, 1e9))) + 1
        if before == FOR_EVER:
            # A full trim drops the memory that `initial` or `reserve` set aside, too.
            ndx_lock_acquire(&self.pool.lock)
            ndx_store_size(&self.pool.kept, min(self.pool.kept, nbytes))
            ndx_lock_release(&self.pool.lock)
        with nogil:
            if before == FOR_EVER or nbytes:
                released = pool_trim(self.pool, nbytes, before)
            else:
                released = pool_release_since(self.pool, before, 0)
        return released

    def _shrink(self, size_t nbytes, bint kept):
        """Give back up to `nbytes` of idle memory; return the bytes.

        Memory that `initial` or `reserve` set aside goes only if `kept` is true.
        """
        cdef size_t released
        with nogil:
            released = pool_shrink(self.pool, nbytes, kept)
        return released

    def _evict(self, size_t nbytes):
        """Let arrays of so many bytes leave, if they can; return the bytes."""
        return 0 if self.evictor is None else self.evictor.make_room(nbytes)

    def _evictable_nbytes(self):
        """Return the bytes of arrays that could leave now."""
        return 0 if self.evictor is None else self.evictor.bytes_that_may_leave()

    def _missing_nbytes(self, size_t nbytes):
        """Return how many bytes must go back before the limit allows so many more."""
        cdef size_t wanted = ndx_load_size(&self.pool.counters.reserved) + nbytes
        return wanted - min(wanted, self.pool.limit)

    def synchronize(self) -> None:
        """Wait until all streams have done the work that they were given."""
        with nogil:
            pool_synchronize(self.pool)

    def close_stream(self, size_t stream) -> None:
        """Wait for a stream, and let others have the memory that was its own."""
        with nogil:
            pool_close_stream(self.pool, stream)

    def stats(self) -> dict[str, int | None]:
        """Return what is allocated and reserved, as a dict of bytes and counts.

        Returns
        -------
        dict
            What every backend has (see `ndx.memory.stats`), and: ``rounded_bytes``
            (of live ranges, with what they have too much), ``cached_bytes`` (held
            in no array: free, or in the arenas of closed workspaces), of which
            ``idle_arena_bytes`` are those arenas; ``largest_free_bytes``, ``segments``;
            Arrays of at most 48 bytes in the host's memory lie in no segment, but in
            the array objects: ``small_count`` and ``small_bytes``
            of them, and ``small_reserved_bytes``, in whole pages, are counted above.
            With ``evict=``: ``away_bytes``, of arrays that left and are still there;
            ``evicted_count``, ``evicted_bytes``, ``returned_count``,
            ``returned_bytes``: since the start.
        """
        cdef dict found = {**Backend.stats(self), **pool_stats(self.pool)}
        arenas = sum([each.nbytes for each in _pressure.idle_arenas(self)])
        found["cached_bytes"] += arenas
        found["idle_arena_bytes"] = arenas
        if self.evictor is not None:
            found.update(self.evictor.stats())
        return found

    def events(self) -> dict[str, int]:
        """Return how often things happened, as a dict of counts.

        Returns
        -------
        dict
            ``hits`` and ``misses`` (requests served from what was held, and
            others), ``splits``, ``merges``, ``steals`` (of another stream's range),
            ``commits``, ``purges``, ``trims``, ``refusals``.
        """
        return pool_events(self.pool)

    def largest_live(self) -> list[tuple[int, int]]:
        """Return (bytes, number) of the live ranges that hold the most together."""
        return pool_largest_live(self.pool, 8)

    def memory_info(self) -> tuple[int | None, int | None]:
        """Return the free and all bytes of the source; None where not known."""
        cdef size_t idle = 0, total = 0
        if not self.pool.source.info(&idle, &total):
            return None, None
        return idle, total

    def snapshot(self) -> list[dict[str, Any]]:
        """Return all segments and their blocks, as `ndx.memory.snapshot` does."""
        return pool_snapshot(self.pool)

    def _replace_fallback(self, fallback):
        """Let another backend serve what this one can't, from now on."""
        self.fallback = fallback

    def add_hook(self, hook: Callable[[str, int, int], object]) -> None:
        """Call ``hook(action, nbytes, address)`` at each allocation and release.

        `action` is "allocate" or "free". An exception of the hook fails the
        allocation, and is reported where a release can't fail. A hook may not make
        arrays in this backend; NumPy's arrays are NumPy's own meanwhile.
        """
        if not callable(hook):
            raise TypeError(f"a hook is a function, not {type(hook).__name__}")
        self.hooks = (*self.hooks, hook)
        self.hooked = self.attended = True

    def remove_hook(self, hook: Callable[[str, int, int], object]) -> None:
        """Stop calling a hook that `add_hook` added."""
        if hook not in self.hooks:
            raise ValueError(f"{hook!r} is not a hook of {self!r}")
        kept = list(self.hooks)
        kept.remove(hook)
        self.hooks = tuple(kept)
        self.hooked = bool(kept)
        self.attended = self.hooked or self.guarded

    def __del__(self):
        # During a cyclic collection a hook may be half-cleared, and a function without
        # its defaults can't be called: hooks are not called any more. `hooks` itself
        # stays; it is NULL if a base class's constructor failed.
        self.hooked = False
        self.attended = self.guarded


_pressure.register_class("pool", PooledBackend)
set_release_of_arenas(_pressure.release_old_arenas)


cdef size_t limit_on(Source source, object value) except? 0:
    """Return the bytes of a limit on what a source gives."""
    cdef size_t total = 0
    if not isinstance(value, str) or "%" not in value:
        return parse_limit(value)
    known = source.info(NULL, &total)
    return parse_limit(value, total if known else None)


cdef int warn_of_limit(Source source, size_t nbytes) except -1:
    """Warn of a limit that is more than the machine has, and so forbids nothing."""
    if source.resource == "machine" and nbytes > LARGE:
        warn_beyond(nbytes, machine_memory(), "the process")
    return 0


cdef void tell_of_release(PooledBackend self, Memory *memory) noexcept:
    cdef PendingError pending
    # Arrays are also freed while an exception is pending, over which no Python may run.
    pending = set_error_aside()
    try:
        self.notify("free", memory.nbytes, memory.ptr)
    except BaseException as error:
        report_ignored(self, error)
    put_error_back(pending)
