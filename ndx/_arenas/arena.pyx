"""Arenas: the memory of a workspace (or of a slot of a ring), used in cycles.

A cycle runs from `begin` to `expire`. All of its blocks go stale then, also spilled
ones. Bytes that foreign code still reads stay, and later cycles allocate around them.
Derived classes place blocks in the chunk: the common one moves a cursor through its
free ranges, so that what is freed within a cycle is not used again before the next.

An arena whose size is still to be learned has size 0. Its own backend then serves all
requests, and none is too large.
"""

cimport cython
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from ndx._arenas.counts cimport (
    counts_begin, counts_finish, counts_made, counts_reset, counts_spilled,
)
from ndx._arenas.debug cimport Watcher, check_policies, is_damaged, set_guard
from ndx._blocks.block cimport (
    Block, BlockParent, Clock, Export, allocate_memory, block_admit, block_blank,
    block_decref, block_give_up, block_hide, block_is_used, block_lock, block_memory,
    block_pin, block_purge, block_serial, block_set_device, block_set_free,
    block_take_memory, block_unlock, block_unpin, link, mark_cycle, note_moved,
    observers, unlink,
)
from ndx._lib.free_threading cimport (
    NDX_STRIPES, ndx_down_int, ndx_get_count, ndx_get_int, ndx_set_byte, ndx_set_clock,
    ndx_set_time, ndx_stripe_lock, ndx_stripe_unlock, ndx_up_if_any, ndx_up_uint,
)
from ndx._lib.guards cimport DEAD_BYTE, GUARD, OFF, Damage, guards
from ndx._lib.sizing cimport LEARN_FIRST, LINE, Sizing, ndx_round_down, ndx_round_up
from ndx._lib.tracing cimport untrace
from ndx._lib.unraisable cimport graver, is_interruption, log_warning
from ndx.backends._pool.store cimport QUICK_SHARE, USUAL_TIME
from ndx.backends._pool.trim cimport watch_arenas
from ndx.backends.base cimport Backend, Memory
from ndx.backends.persistent_file cimport FileBackend
from ndx.backends.pooled cimport PooledBackend

from ndx import backends
from ndx._lib.errors import OutOfMemoryError, WorkspaceError
from ndx._lib.sizes import format_size
from ndx.backends._registry import variant_of


# ---- What does not fit an arena: the policy ``spill`` --------------------------------
# An arena whose size is still to be learned has size 0. Its own backend then serves all
# requests, and none is too large.

cdef class Spill:
    """Serves requests for which an arena has no room, or refuses them.

    Parameters
    ----------
    backend : Backend
        The arena's.
    policy : str
        The value of ``spill``.
    """

    def __cinit__(self, Backend backend not None, str policy not None):
        self.own = self.backend = backend
        self.fails = policy == "fail"
        if policy in ("host", "mmap"):
            if backend.device_number:
                self.beyond = backends.get(variant_of(backend.device, policy))
            else:
                self.backend = backends.get("mmap")

    cdef int check(self, Arena arena, size_t nbytes) except -1:
        """Raise if a request of `nbytes` may not spill from an arena."""
        cdef size_t taken, pinned
        if not self.fails or not arena.size:
            return 0
        taken = arena.counts.cycle_bytes
        pinned = pinned_bytes(arena)
        raise OutOfMemoryError(
            f"workspace {arena.clock.name!r} is full: {format_size(nbytes)} ({nbytes} "
            f"bytes) asked for, {format_size(taken)} of {format_size(arena.size)} "
            "taken in this cycle"
            + (f", {format_size(pinned)} pinned by arrays of past cycles that escaped, "
               "or that a NumPy view or a buffer still uses" if pinned else "")
            + ". To go on, make it larger (size=...), let it spill (spill='external'), "
            "or end the scope earlier"
            + (", or drop what uses the past cycles." if pinned else "."),
            nbytes, taken, arena.size, arena.size, self.own.name)

    cdef Backend serve(self, size_t nbytes, bint zero, size_t size, Memory *out):
        """Serve a request that does not fit the arena; return the backend that did."""
        return allocate_memory(
            self.backend if size else self.own, self.beyond, nbytes, zero, out)


# ---- a warning of arenas that are too small for each of their cycles -----------------

cdef enum:
    IN_A_ROW = 16                # cycles with spills, before the warning
    NAMES = 256                  # names of workspaces that are kept

cdef dict runs = {}              # by name: (last cycle that spilled, how many in a row)


cdef void note_first_spill(str name, uint64_t cycle, Sizing sizing, size_t size,
                           size_t most) noexcept:
    """Take note of a cycle that spills, if the first one has set the size for good.

    `most` is the largest need of a cycle so far.
    """
    if size == 0 or sizing.initial or sizing.grows or sizing.learn != LEARN_FIRST:
        return
    found = runs.get(name)
    if found is None:
        if len(runs) == NAMES:
            del runs[next(iter(runs))]           # the oldest
        runs[name] = (cycle, 1)
        return
    last, count = found
    # Warned already; or it is large enough, but exports and other threads still hold
    # ranges of it.
    if count == IN_A_ROW or most <= size:
        return
    count = count + 1 if cycle == last + 1 else 1
    runs[name] = (cycle, count)
    if count == IN_A_ROW:
        log_warning(
            "workspace %r has spilled in %d cycles in a row: its arena has the size of "
            "its first cycle, %d bytes, and a cycle needs up to %d. Give it a size=, "
            "or let it grow: spill='grow'", (name, count, size, most))


# ---- Arenas --------------------------------------------------------------------------

cdef void watch(Backend server, size_t nbytes) noexcept:
    """Have arenas looked at once a large one that a backend serves may be idle."""
    if nbytes <= QUICK_SHARE:
        return
    if not isinstance(server, PooledBackend):
        watch_arenas(USUAL_TIME)               # a pool may be under it
    elif (<PooledBackend>server).pool.idle_after:
        watch_arenas((<PooledBackend>server).pool.idle_after)


cdef extern from "ndx/internal/poison.h":
    const bint NDX_POISONS
    void ndx_poison(void *ptr, size_t nbytes)
    void ndx_unpoison(void *ptr, size_t nbytes)

# A block that is copied out of an arena, and its new memory.
cdef struct Move:
    Block *block
    PyObject *backend            # of the memory; borrowed
    Memory memory

cdef bint spill_everything = False

cdef unsigned int arenas_made = 0    # which share the stripes' locks in turn


cdef void set_spill_everything(bint on) noexcept:
    """Make all arenas spill, and learn nothing, from the next cycle (debug mode)."""
    global spill_everything
    spill_everything = on


cdef inline bint is_movable(Arena arena, Block *block) noexcept:
    """Whether only arrays use a block of the chunk; its mover has a reference, too."""
    return block.parent == <PyObject *>arena and arena.holds(block) \
        and ndx_get_count(&block.refs) > 1 and not block_is_used(block)


cdef inline void unpoison(Backend backend, char *ptr, size_t nbytes) noexcept:
    if not backend.device_number:
        ndx_unpoison(ptr, nbytes)


cdef inline void stamp(Block *block, Clock clock, int device) noexcept:
    """Stamp a block with the clock's current generation."""
    block.now = &clock.now
    block.generation = clock.now
    Py_INCREF(clock)
    block.clock = <PyObject *>clock
    if device:
        block_set_device(block, device)


cdef inline void enlist(Arena arena, Block *block, size_t needed) noexcept:
    """Make a block one of this cycle, and count its bytes."""
    Py_INCREF(arena)
    block.parent = <PyObject *>arena
    link(&arena.live, block)
    counts_made(&arena.counts, needed)


# no_gc_clear: an arena needs its backend to give its memory back.
@cython.no_gc_clear
cdef class Arena(Watcher):
    """The memory of one workspace; it knows nothing of contexts or arrays.

    Parameters
    ----------
    name : str
        The workspace's name, for messages.
    backend : Backend
        Where the arena, and what does not fit it, come from.
    sizing : Sizing
        How large it should be; shared by the slots of a ring.
    config : WorkspaceConfig
        The policies ``spill``, ``escape`` and ``debug``.
    home : Backend, optional
        Where the arena comes from, if not from `backend`.
    """

    def __cinit__(self, str name, Backend backend not None, Sizing sizing not None,
                  config, Backend home=None):
        self.live.prev = self.live.next = &self.live
        self.pinned.prev = self.pinned.next = &self.pinned
        self.clock = Clock.__new__(Clock)
        self.clock.name = name
        check_policies(name, backend, config, home)
        self.clock.now = 1
        self.backend = backend
        self.line = DEVICE_LINE if backend.device_number else LINE
        self.home = backend if home is None else home
        self.sizing = sizing
        self.spilling = Spill(backend, config.spill)
        self.escapes = config.escape == "detach"
        self.debug = config.debug
        self.guarded = config.debug or guards.mode != OFF and not backend.device_number
        self.patience = 1
        self.stripe = <unsigned char>(ndx_up_uint(&arenas_made) % NDX_STRIPES)

    def __dealloc__(self):
        # Every live or pinned block holds a reference to its arena: there are none
        # left.
        if self.size:
            unpoison(self.home, self.chunk.ptr, self.size)
            untrace(self.chunk.ptr)
            self.chunk_backend.release(&self.chunk)

    cdef Backend owning_backend(self):
        cdef Backend found
        if not self.size:
            return self.home
        with cython.critical_section(self):
            found = self.chunk_backend
        return found

    cdef char *place(self, Block *block, size_t needed) noexcept:
        """Return where in the chunk a block of `needed` bytes goes; NULL: nowhere."""
        return NULL

    cdef void vacate(self, Block *block) noexcept:
        """Take note of a block that leaves the chunk before the cycle's end."""

    cdef int find_free(self) except -1:
        """Find the free ranges of the chunk, for a new cycle."""

    cdef void observe(self) noexcept:
        """Tell the sizing what the cycle needed, at its end."""
        self.sizing.observe(self.counts.cycle_bytes)

    cdef int prepare(self) except -1:
        """Get the chunk that a new cycle needs; the cycle before has expired."""
        self.spills_all = spill_everything
        self.fit()
        ndx_stripe_lock(self.stripe)
        try:
            self.find_free()
        finally:
            ndx_stripe_unlock(self.stripe)
        return 0

    cdef void begin(self) noexcept:
        """Start the cycle for which `prepare` was called."""
        self.offset = 0
        counts_begin(&self.counts)
        self.used = True
        self.clock.open = True
        mark_cycle(self, True)
        if self.mirror is not None:
            self.mirror.begin()

    cdef int finish(self) except -1:
        """End the scope of the cycle: count and learn. Its arrays may live on."""
        self.clock.open = False
        mark_cycle(self, False)
        if self.mirror is not None:
            self.mirror.finish()
        counts_finish(&self.counts)
        if not self.spills_all:
            ndx_stripe_lock(self.stripe)
            self.observe()
            ndx_stripe_unlock(self.stripe)
        return 0

    cdef bint has_no_pinned(self) noexcept:
        """Whether no retired block is still used."""
        cdef bint found
        ndx_stripe_lock(self.stripe)
        found = self.pinned_count == 0
        ndx_stripe_unlock(self.stripe)
        return found

    cdef int expire(self, Backend outside) except -1:
        """Let all blocks of the cycle go stale, and take their memory back.

        Escaping arrays move to `outside`. The cycle ends completely before an error is
        raised.
        """
        cdef Block *block
        cdef uint64_t serial
        raised = None
        if self.mirror is not None:
            try:
                self.mirror.expire(outside)
            except BaseException as error:
                raised = error
        if self.escapes and self.live.next != &self.live:
            try:
                self.escape(outside)
            except BaseException as error:
                # An interruption, such as Ctrl-C, comes after all blocks have left.
                raised = graver(raised, error)
        ndx_stripe_lock(self.stripe)
        ndx_set_time(&self.clock.now, self.clock.now + 1)
        self.offset = 0
        while self.live.next != &self.live:
            block = self.live.next
            unlink(block)
            if ndx_get_count(&block.refs) == 0:
                # Another thread waits for the lock in order to free it.
                self.let_go(block)
                continue
            # Retired first: what begins now sees that the block is stale, and what
            # ends now, that the block is retired.
            ndx_set_byte(&block.retired, True)
            if block_is_used(block):
                link(&self.pinned, block)
                self.pinned_count += 1
                if self.guarded:
                    self.inspect(block)
                block_purge(block)
                serial = block_serial(block)
                if serial:
                    ndx_stripe_unlock(self.stripe)
                    observers.retired(serial)
                    ndx_stripe_lock(self.stripe)
            else:
                ndx_set_byte(&block.retired, False)
                self.let_go(block)
                block_give_up(block)
                ndx_stripe_lock(self.stripe)
        ndx_stripe_unlock(self.stripe)
        self.used = False
        self.counts.live_bytes = 0
        if raised is not None:
            raise raised
        if self.damaged:
            self.raise_damage()
        return 0

    cdef int find_damage(self, Damage *out, int room) noexcept:
        """Describe writes behind the blocks of this cycle; return how many.

        The caller owns their origins. Where that is `room`, there may be more.
        """
        cdef Block *block
        cdef int count = 0
        ndx_stripe_lock(self.stripe)
        block = self.live.next
        while self.guarded and block != &self.live and count < room:
            count += is_damaged(block, out + count)
            block = block.next
        ndx_stripe_unlock(self.stripe)
        return count

    cdef void let_go(self, Block *block) noexcept:
        """Poison an unlinked block of this cycle, which then has no arena."""
        self.clear(block)
        block.parent = NULL
        # Never the last reference to the arena: the caller holds one.
        Py_DECREF(self)

    cdef void clear(self, Block *block) noexcept:
        """Poison a block that nothing may read any more: sanitizers find readers."""
        if self.guarded:
            self.inspect(block)
            if block.nbytes and block.memory_owner == NULL:
                memset(block.ptr, DEAD_BYTE, block.nbytes)
        if self.holds(block) and not block.device:
            ndx_poison(block.ptr, ndx_round_up(block.nbytes, LINE))

    cdef bint holds(self, Block *block) noexcept:
        """Whether a block lies in the chunk; not if it was spilled or adopted."""
        return block.backend == NULL and block.memory_owner == NULL

    cdef Block *allocate(self, size_t nbytes, bint zero) except NULL:
        """Return a block of this cycle; a stale one if the cycle ends meanwhile."""
        cdef Block *block = block_blank()
        cdef size_t needed = lines(self, nbytes)
        cdef bint ended = False, clears = False
        block.nbytes = nbytes
        block.stripe = self.stripe
        stamp(block, self.clock, self.backend.device_number)
        if self.debug or block.device:
            try:
                if self.debug:
                    self.record_line(block)
                if block.device:
                    self.backend.check_arena(self.clock.name)
                    self.use_on(self.backend.current_stream())
            except BaseException:
                block_decref(block)
                raise
            ended = block.generation != self.clock.now
        if nbytes == 0:
            Py_INCREF(self.backend)
            block.backend = <PyObject *>self.backend
        else:
            if self.guarded:
                needed += GUARD
            block.ptr = NULL
            if not self.spills_all and not ended:
                ndx_stripe_lock(self.stripe)
                block.ptr = self.place(block, needed)
                ndx_stripe_unlock(self.stripe)
            if block.ptr != NULL:
                unpoison(self.backend, block.ptr, needed)
                clears = zero
            else:
                self.spill(block, zero)
                ended = block.generation != self.clock.now
            if self.guarded:
                set_guard(block.ptr + nbytes)
        if not ended:
            ndx_stripe_lock(self.stripe)
            enlist(self, block, needed)
            ndx_stripe_unlock(self.stripe)
        if clears:
            # A device's backend runs Python, which may end the cycle.
            block_pin(block)
            self.backend.clear(block.ptr, nbytes)
            block_unpin(block)
        return block

    cdef int spill(self, Block *block, bint zero) except -1:
        """Serve a request that does not fit from a backend; or raise."""
        cdef Backend backend
        cdef Memory memory
        try:
            if block.generation == self.clock.now:
                self.spilling.check(self, block.nbytes)
            backend = self.spilling.serve(
                block.nbytes + GUARD * self.guarded, zero, self.size, &memory)
        except BaseException:
            block_decref(block)
            raise
        Py_INCREF(backend)
        block.backend = <PyObject *>backend
        block_take_memory(block, &memory)
        if block.generation == self.clock.now:
            counts_spilled(&self.counts, lines(self, block.nbytes))
            if self.counts.spilled_count == 1 and not self.spills_all:
                note_first_spill(self.clock.name, self.clock.now, self.sizing,
                                 self.size, self.counts.max_cycle_bytes)
        return 0

    cdef int adopt(self, Block *block) except -1:
        """Make a block over memory of another owner a block of this cycle.

        Its data moves to where new blocks are: into the chunk, if that has room, or to
        the backend of the spill policy. If that backend is the arena's own, the present
        owner keeps the memory. A block outside of the chunk counts as spilled.
        """
        cdef size_t needed = lines(self, block.nbytes)
        cdef size_t extra = GUARD if self.guarded and block.nbytes else 0
        cdef PyObject *memory_owner = block.memory_owner
        cdef Backend backend
        cdef Memory memory
        cdef char *source = block.ptr
        cdef char *ptr = NULL
        cdef bint spilled = False
        block.stripe = self.stripe
        stamp(block, self.clock, self.backend.device_number)
        if self.debug:
            self.record_line(block)
        if block.nbytes and block.generation == self.clock.now:
            if not self.spills_all:
                ndx_stripe_lock(self.stripe)
                ptr = self.place(block, needed + extra)
                ndx_stripe_unlock(self.stripe)
            if ptr != NULL:
                unpoison(self.backend, ptr, needed + extra)
            else:
                spilled = True
                self.spilling.check(self, block.nbytes)
                if self.size and self.spilling.backend is not self.backend:
                    backend = self.spilling.serve(
                        block.nbytes + extra, False, self.size, &memory)
                    Py_INCREF(backend)
                    block.backend = <PyObject *>backend
                    block_take_memory(block, &memory)
                    ptr = memory.ptr
        if ptr != NULL:
            memcpy(ptr, source, block.nbytes)
            block.ptr = ptr
            block.memory_owner = NULL
            if self.guarded:
                set_guard(ptr + block.nbytes)
        if block.generation == self.clock.now:
            ndx_stripe_lock(self.stripe)
            enlist(self, block, self.extent(block))
            ndx_stripe_unlock(self.stripe)
            # The block counts with the bytes that it will take in the chunk once there
            # is room.
            self.counts.cycle_bytes += needed + extra - self.extent(block)
            if spilled:
                counts_spilled(&self.counts, lines(self, block.nbytes))
        if ptr != NULL:
            Py_DECREF(<object>memory_owner)
        return 0

    cdef void block_freed(self, Block *block) noexcept:
        unlink(block)
        if block.retired or block.kept:
            # The next cycle finds the block's range free.
            self.pinned_count -= 1
            return
        if self.guarded:
            self.counts.live_bytes -= self.extent(block)
        else:
            self.counts.live_bytes -= lines(self, block.nbytes)
        if self.guarded or NDX_POISONS:
            self.clear(block)
        if self.reuses:
            self.vacate(block)

    cdef void block_idle(self, Block *block) noexcept:
        self.pinned_count -= 1
        unlink(block)

    cdef size_t extent(self, Block *block) noexcept:
        """Return the bytes that a block counts for in this cycle."""
        if self.guarded and block.nbytes and block.memory_owner == NULL:
            return lines(self, block.nbytes) + GUARD
        return lines(self, block.nbytes)

    cdef int escape(self, Backend outside) except -1:
        """Move all blocks that are still referenced out of the arena."""
        cdef Py_ssize_t count = 0
        cdef Block **blocks
        cdef Block *block
        cdef bint referenced
        ndx_stripe_lock(self.stripe)
        block = self.live.next
        while block != &self.live:
            count += 1
            block = block.next
        blocks = <Block **>PyMem_RawMalloc(count * sizeof(Block *))
        if blocks == NULL:
            # There is no memory for the list of blocks: they all stay where they are.
            while self.live.next != &self.live:
                block = self.live.next
                referenced = ndx_up_if_any(&block.refs)
                self.keep(block)
                if referenced:
                    ndx_stripe_unlock(self.stripe)
                    note_moved(block)
                    block_decref(block)
                    ndx_stripe_lock(self.stripe)
            ndx_stripe_unlock(self.stripe)
            return 0
        count = 0
        block = self.live.next
        while block != &self.live:
            if ndx_up_if_any(&block.refs):
                blocks[count] = block
                count += 1
            block = block.next
        ndx_stripe_unlock(self.stripe)
        try:
            self.move_out(blocks, count, outside)
        finally:
            PyMem_RawFree(blocks)
        return 0

    cdef int move_out(self, Block **blocks, Py_ssize_t count,
                      Backend outside) except -1:
        """Let blocks of this cycle leave: copy those in the chunk to a backend.

        It takes over a reference to each block of the caller's: to obtain memory may
        run Python, which may drop arrays. Exported blocks stay where they are and keep
        their ranges; so do all blocks if there is no memory for all copies.
        """
        cdef Move *moves = <Move *>PyMem_RawMalloc(max(1, count) * sizeof(Move))
        cdef Py_ssize_t i, made = 0
        cdef const uint64_t *now
        cdef Block *block
        cdef Backend server
        cdef bint failed = moves == NULL, movable, kept
        interruption = None
        if outside.device_number != self.backend.device_number:
            outside = self.backend
        try:
            if self.backend.device_number:
                self.use_on(self.backend.current_stream())
            for i in range(count):
                block = blocks[i]
                if failed or not is_movable(self, block):
                    continue
                server = allocate_memory(
                    outside, None, block.nbytes, False, &moves[made].memory)
                moves[made].block = block
                moves[made].backend = <PyObject *>server
                made += 1
        except BaseException as error:
            failed = True
            interruption = error if is_interruption(error) else None
        for i in range(made):
            block = moves[i].block
            block_lock(block)
            now = block_hide(block)
            movable = not failed and is_movable(self, block)
            if movable and not block.device:
                memcpy(moves[i].memory.ptr, block.ptr, block.nbytes)
            else:
                ndx_set_clock(&block.now, now)
            if movable and block.device:
                # A device's backend runs Python, which may close or export the array.
                block_pin(block)
                block_unlock(block)
                self.backend.copy(moves[i].memory.ptr, block.ptr, block.nbytes)
                block_lock(block)
                ndx_down_int(&block.pins)
                movable = is_movable(self, block)
            if not movable:
                block_unlock(block)
                continue
            unlink(block)
            self.counts.live_bytes -= self.extent(block)
            if self.reuses:
                self.vacate(block)
            self.let_go(block)
            block_take_memory(block, &moves[i].memory)
            Py_INCREF(<object>moves[i].backend)
            block.backend = moves[i].backend
            block_set_free(block)
            block_admit(block, <Backend>block.backend)
            self.counts.escaped_count += 1
            self.counts.escaped_bytes += block.nbytes
            block_unlock(block)
            note_moved(block)
            moves[i].memory.ptr = NULL
        for i in range(count):
            block_lock(blocks[i])
            kept = blocks[i].parent == <PyObject *>self \
                and ndx_get_count(&blocks[i].refs) > 1
            if kept:
                self.keep(blocks[i])
            block_unlock(blocks[i])
            if kept:
                note_moved(blocks[i])
        for i in range(made):
            if moves[i].memory.ptr != NULL:
                untrace(moves[i].memory.ptr)
                (<Backend>moves[i].backend).release(&moves[i].memory)
        PyMem_RawFree(moves)
        for i in range(count):
            block_decref(blocks[i])
        if interruption is not None:
            raise interruption
        return 0

    cdef void keep(self, Block *block) noexcept:
        """Release a block with its memory, be that its own or a range of the chunk."""
        unlink(block)
        self.counts.live_bytes -= self.extent(block)
        if self.holds(block):
            block.kept = True
            link(&self.pinned, block)
            self.pinned_count += 1
            block_set_free(block)
        else:
            block.parent = NULL
            block_set_free(block)
            Py_DECREF(self)
        self.counts.escaped_count += 1

    # ---------------------------------------------------------------- the chunk

    cdef int fit(self) except -1:
        """Give the chunk the size that the policies ask for; between cycles.

        If there is no memory for that, the chunk keeps its size until a later try.
        """
        if self.size == self.sizing.wanted or self.counts.cycles < self.ask_again:
            return 0
        try:
            self.resize(self.sizing.wanted)
            self.patience = 1
        except MemoryError:
            # A failure is slow, since all steps of relief are tried: wait longer before
            # the next.
            self.ask_again = self.counts.cycles + self.patience
            self.patience = min(2 * self.patience, <size_t>1024)
        return 0

    cdef int resize(self, size_t size) except -1:
        """Get a chunk of another size; or get one of the old size again, and raise."""
        cdef size_t before = self.size
        # The old chunk goes first, so that both need not fit into the limit. Only
        # exported ranges still live in it.
        self.drop_chunk()
        try:
            if size:
                self.get_chunk(size)
        except MemoryError:
            if before:
                try:
                    self.get_chunk(before)
                except MemoryError:
                    pass
            raise
        return 0

    cdef int get_chunk(self, size_t size) except -1:
        cdef Backend server
        size = lines(self, size)
        server = allocate_memory(self.home, None, size, False, &self.chunk)
        with cython.critical_section(self):
            self.chunk_backend, server = server, self.chunk_backend
        self.size = size
        watch(self.chunk_backend, size)
        if self.mirror is not None:
            try:
                self.mirror.get_chunk(size)
            except BaseException:
                self.drop_chunk()
                raise
        return 0

    cdef int drop_chunk(self) except -1:
        """Give the chunk back: now, or when the last use of its ranges ends."""
        cdef RetiredChunk retired = None
        cdef Block *block
        cdef Block *after
        cdef size_t low = self.size, high = 0
        if self.mirror is not None:
            self.mirror.drop_chunk()
        if self.size == 0:
            return 0
        if self.pinned_count:  # the collector may run here, and shorten the list
            retired = RetiredChunk.__new__(RetiredChunk)
        ndx_stripe_lock(self.stripe)
        block = self.pinned.next
        while block != &self.pinned:
            after = block.next
            if self.holds(block):
                low = min(low, <size_t>(block.ptr - self.chunk.ptr))
                high = max(high, <size_t>(block.ptr - self.chunk.ptr)
                           + lines(self, block.nbytes))
                unlink(block)
                self.pinned_count -= 1
                block.kept = False
                Py_INCREF(retired)
                block.parent = <PyObject *>retired
                Py_DECREF(self)
            block = after
        ndx_stripe_unlock(self.stripe)
        unpoison(self.backend, self.chunk.ptr, self.size)
        self.size = 0
        if low > high:  # no block is in the chunk
            untrace(self.chunk.ptr)
            self.chunk_backend.release(&self.chunk)
        else:
            self.chunk_backend.purge(&self.chunk, low, high)
            retired.memory = self.chunk
            retired.backend = self.chunk_backend
            retired.arena = self
            self.counts.retired_bytes += self.chunk.nbytes - self.chunk.purged
        return 0

    cdef int destroy(self) except -1:
        """Give all memory back, and be as a new arena; between cycles."""
        self.drop_chunk()
        counts_reset(&self.counts)
        self.ask_again = 0
        self.patience = 1
        return 0

    cdef int use_on(self, size_t stream) except -1:
        """Prepare for work of a device's stream on the arena's memory.

        One stream at a time uses an arena: another waits, on the device, for all work
        of the one before. So no range is reused too early, and the CPU never waits.
        """
        if stream != self.stream:
            if self.size:
                self.chunk_backend.use_on(&self.chunk, stream)
            self.backend.hand_over(stream, self.stream)
            self.stream = stream
        return 0


# no_gc_clear: the last block that lies in the chunk gives it back through this object.
@cython.no_gc_clear
cdef class RetiredChunk(BlockParent):
    """A chunk that its arena has outgrown, while any of its ranges is in use."""

    cdef Backend owning_backend(self):
        return self.backend

    def __dealloc__(self):
        if self.memory.ptr != NULL:
            self.arena.counts.retired_bytes -= self.memory.nbytes - self.memory.purged
            untrace(self.memory.ptr)
            self.backend.release(&self.memory)


# ---- The ranges of a chunk that past cycles still use --------------------------------

cdef Py_ssize_t count_pinned(Arena arena) noexcept:
    """Return how many ranges `find_pinned` finds at most."""
    cdef Py_ssize_t count = 0
    cdef Block *block = arena.pinned.next
    cdef Export *export
    while block != &arena.pinned:
        count += 1
        export = block.exports
        while export != NULL:
            count += 1
            export = export.next
        block = block.next
    return count


cdef Py_ssize_t find_pinned(Arena arena, Range *out) noexcept:
    """List the ranges of the chunk that blocks of past cycles need, as offsets."""
    cdef Py_ssize_t count = 0
    cdef Block *block = arena.pinned.next
    cdef Export *export
    cdef size_t base
    while block != &arena.pinned:
        # Spilled blocks have memory of their own.
        if arena.holds(block):
            base = block.ptr - arena.chunk.ptr
            if ndx_get_int(&block.pins) > 0 or block.kept:
                out[count].low = base
                out[count].high = base + lines(arena, block.nbytes)
                count += 1
            else:
                export = block.exports
                while export != NULL:
                    if export.high > export.low:
                        out[count].low = base + ndx_round_down(export.low, arena.line)
                        out[count].high = base + lines(arena, export.high)
                        count += 1
                    export = export.next
        block = block.next
    return count


cdef size_t pinned_bytes(Arena arena) noexcept:
    """Return the bytes of past cycles that foreign code or escaped arrays use."""
    cdef size_t total = 0
    cdef Block *block
    cdef Export *export
    ndx_stripe_lock(arena.stripe)
    block = arena.pinned.next
    while block != &arena.pinned:
        if ndx_get_int(&block.pins) > 0 or block.kept or not arena.holds(block):
            total += lines(arena, block.nbytes) - block_memory(block).purged
        else:
            export = block.exports
            while export != NULL:
                total += lines(arena, export.high) - ndx_round_down(
                    export.low, arena.line)
                export = export.next
        block = block.next
    ndx_stripe_unlock(arena.stripe)
    return total


# ---- The common arena ----------------------------------------------------------------
# What is freed within a cycle is not used again before the next one.

cdef int compare(const void *a, const void *b) noexcept nogil:
    cdef size_t x = (<const Range *>a).low
    cdef size_t y = (<const Range *>b).low
    return (x > y) - (x < y)


cdef class BumpArena(Arena):
    """An arena of which a cycle needs the sum of the bytes that it allocates."""

    def __dealloc__(self):
        PyMem_RawFree(self.gaps)

    cdef int find_free(self) except -1:
        """List the free ranges between the pinned ones, lowest first."""
        cdef Py_ssize_t count = 0, i
        cdef size_t start = 0, next_start
        cdef Range *gaps = self.gaps
        self.ngaps = 0
        self.first_gap = 0
        if self.size == 0:
            return 0
        count = 1 + count_pinned(self) if self.pinned_count else 1
        if count > self.capacity:
            gaps = <Range *>PyMem_RawRealloc(gaps, 2 * count * sizeof(Range))
            if gaps == NULL:
                raise MemoryError("no memory for the list of free ranges")
            self.gaps = gaps
            self.capacity = 2 * count
        count = find_pinned(self, gaps) if self.pinned_count else 0
        if count > 1:
            qsort(gaps, count, sizeof(Range), compare)
        # Turn the ranges in use into the gaps before them, in place.
        for i in range(count):
            next_start = gaps[i].high
            if gaps[i].low > start:
                gaps[self.ngaps].high = gaps[i].low
                gaps[self.ngaps].low = start
                self.ngaps += 1
            if next_start > start:
                start = next_start
        if self.size > start:
            gaps[self.ngaps].low = start
            gaps[self.ngaps].high = self.size
            self.ngaps += 1
        return 0

    cdef char *place(self, Block *block, size_t needed) noexcept:
        """Take a block from the first free range that has room, at its cursor."""
        cdef Py_ssize_t i
        cdef Range *gap
        cdef char *ptr
        for i in range(self.first_gap, self.ngaps):
            gap = &self.gaps[i]
            if gap.high - gap.low >= needed:
                ptr = self.chunk.ptr + gap.low
                gap.low += needed
                if gap.low > self.offset:
                    self.offset = gap.low
                if gap.low == gap.high and i == self.first_gap:
                    self.first_gap += 1
                return ptr
        return NULL


# ---- An arena in a file --------------------------------------------------------------

cdef class FileArena(BumpArena):
    """An arena whose memory is a file; what has no room in it spills to a backend.

    The same requests in the same order get the same places, in each cycle and each
    process. So nothing but arrays may take a place, and nothing but arrays is written.
    """

    def __cinit__(self, *args):
        self.guarded = False

    cdef int prepare(self) except -1:
        (<FileBackend>self.home).check_process()
        if self.is_read():
            raise WorkspaceError(
                f"workspace {self.clock.name!r} can't be entered: a NumPy view, a "
                "buffer or a DLPack tensor of an array of a past cycle is alive, "
                "around which new arrays would not find what is theirs in "
                f"{(<FileBackend>self.home).path!r}. Drop it, or take a copy of it")
        return BumpArena.prepare(self)

    cdef int fit(self) except -1:
        # The file can't be mapped a second time, at a larger size, while it is read.
        return 0 if self.is_read() else BumpArena.fit(self)

    cdef int resize(self, size_t size) except -1:
        if self.is_read():
            raise WorkspaceError(
                f"workspace {self.clock.name!r} can't be enlarged: a NumPy view, a "
                "buffer or a DLPack tensor of an array of a past cycle is alive. Drop "
                "it, or take a copy of it")
        return BumpArena.resize(self, size)

    cdef bint is_read(self) noexcept:
        """Whether any block of a past cycle still has a place in the file."""
        cdef bint found = False
        cdef Block *block
        ndx_stripe_lock(self.stripe)
        block = self.pinned.next
        while block != &self.pinned and not found:
            found = self.holds(block)
            block = block.next
        ndx_stripe_unlock(self.stripe)
        return found
