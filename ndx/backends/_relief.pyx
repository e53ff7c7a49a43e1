"""The steps taken when memory is short, each against the refusals that it can help.

A backend refuses a request for a reason (`Status`). The steps against that reason are
taken in this order, from the cheapest on, until the request is served:

====================  ====  ======  ======  ====  ========  ====  ==========  =========
reason                idle  arenas  others  cold  fallback  trim  collection  callbacks
====================  ====  ======  ======  ====  ========  ====  ==========  =========
the system, a device  x     x       x       x     x         x     x           x
or a disk is full
limit of ndx, or of   x     x       x       x     x         x     x           x
the process
limit of the device   x     x       x             x         x     x           x
limit of the backend  x     x               x     x         x     x           x
an arena is full      x     x               x     x         x     x           x
an adaptor                  x               x     x         x     x           x
larger than possible                              x                           x
====================  ====  ======  ======  ====  ========  ====  ==========  =========

*idle*: idle memory of the backend's own pool, if there is enough of it
(`retry_from_idle`, which pools call themselves, without the GIL). Where another thread
moves that memory just now (a first segment on its way, a trim), the request waits.
*arenas*: those of closed workspaces, which start again with none.
*others*: the idle memory of pools that compete for the same resource.
*cold*: arrays of backends with the option ``evict`` move elsewhere, those first that
were not used for longest.
*fallback*: the backend's own, then the one beyond it (of a workspace's spill policy).
It comes before the collection, which takes milliseconds: where a program works beyond
a limit, every array does.
*trim*: idle memory of a backend without a pool.

No step imports a module: files may be what is short.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from ndx._lib.clock cimport ndx_nanoseconds
from ndx._lib.collector cimport collect_for_memory
from ndx._lib.free_threading cimport ndx_raise_time
from ndx._lib.numpy_allocator cimport restore_numpy, suspend_handlers
from ndx._lib.unraisable cimport log_event
from ndx.backends._budget cimport budget_is_process
from ndx.backends._pool.index cimport PoolBlock
from ndx.backends._pool.pool cimport Pool
from ndx.backends._pool.store cimport ARENA
from ndx.backends._pool.trim cimport pool_settle, pool_shrink, pool_trim
from ndx.backends.base cimport (
    ALLOCATED, CALLBACK, COLLECTION, DEVICE_LIMIT, EVICTION, FALLBACK, IDLE, LOST,
    NO_MEMORY, OTHERS, OWN_LIMIT, PROCESS_LIMIT, TOO_LARGE, TRIM, TRY_AGAIN, Backend,
    Counters, Memory, ReliefCounters,
)

from time import sleep

from ndx.backends import _out_of_memory, _pressure

__all__ = ["warm_up"]

cdef extern from "ndx/internal/arithmetic.h" nogil:
    size_t ndx_round_up(size_t nbytes, size_t step)

cdef extern from *:
    """
    /* How many refused requests this thread is asking again, one within the other. */
    #if defined(_MSC_VER)
    static __declspec(thread) int ndx_asking_again = 0;
    #else
    static __thread int ndx_asking_again = 0;
    #endif
    #define NDX_ASKING_AGAIN (&ndx_asking_again)
    """
    int *asking_again "NDX_ASKING_AGAIN"

cdef uint64_t FOR_EVER = <uint64_t>-1

# Seconds between two questions to a pool in which other threads move memory: first, at
# most, and in all. A thread may be stopped in the middle, or wait for a slow disk.
cdef double FIRST_PAUSE = 1e-5
cdef double LONGEST_PAUSE = 1e-3
cdef double PATIENCE = 1.0

# What each Status is called in Python.
cdef tuple REASONS = (
    None, "system", "source", "limit", "process", "size", "arena", "adaptor",
    "device", None, "fork")


cdef str name_of(int reason, size_t nbytes):
    """Return the public name of the reason for a refusal."""
    if reason == PROCESS_LIMIT and not budget_is_process(nbytes):
        return "ndx"
    return REASONS[reason]

# ------------------------------------------------------- idle memory of the own pool


cdef int retry_from_idle(Pool pool, size_t nbytes, size_t stream, int reason,
                         PoolBlock **out, bint *clean,
                         ReliefCounters *counters) except -1 nogil:
    """Serve a request that a pool refused: give back some idle memory, then all.

    Returns ALLOCATED, or why the last attempt failed. A request that is asked again by
    `serve` is counted there.
    """
    cdef int64_t started
    if asking_again[0]:
        return give_back_idle(pool, nbytes, stream, reason, out, clean)
    started = ndx_nanoseconds()
    reason = give_back_idle(pool, nbytes, stream, reason, out, clean)
    ndx_raise_time(&counters.nanoseconds, ndx_nanoseconds() - started)
    if reason == ALLOCATED:
        ndx_raise_time(&counters.refused, 1)
        ndx_raise_time(&counters.helped[<int>IDLE], 1)
    return reason


cdef int give_back_idle(Pool pool, size_t nbytes, size_t stream, int reason,
                        PoolBlock **out, bint *clean) except -1 nogil:
    # Free blocks of streams that are done may be merged even if nothing goes back.
    cdef bint streams = pool.source.streams
    cdef size_t need = pool.round(nbytes)
    cdef size_t missing
    cdef bint limited = reason in (OWN_LIMIT, PROCESS_LIMIT, DEVICE_LIMIT)
    if not pool.idle_may_help(need, reason):
        return reason
    if streams:
        pool_settle(pool, False)
        reason = pool.allocate(nbytes, stream, out, clean)
    if reason == ALLOCATED or pool.kind == ARENA:
        return reason
    if limited:
        # More may be held than a lowered limit allows, whatever serves the request.
        missing = pool.missing(0, reason)
        if missing and pool_shrink(pool, missing, True):
            reason = pool.allocate(nbytes, stream, out, clean)
            if reason not in (OWN_LIMIT, PROCESS_LIMIT, DEVICE_LIMIT):
                return reason
        missing = pool.missing(ndx_round_up(need, pool.source.granularity), reason)
        if pool_shrink(pool, missing, True) == 0 and not streams:
            return reason
        reason = pool.allocate(nbytes, stream, out, clean)
        if reason in (ALLOCATED, TRY_AGAIN):
            return reason
    if pool_trim(pool, 0, FOR_EVER) == 0 and not streams:
        return reason
    return pool.allocate(nbytes, stream, out, clean)


# ------------------------------------------------------------- others, then fallbacks


@cython.final
cdef class Candidate:
    """A backend that may serve a request: the one asked, or a fallback."""

    cdef Backend backend         # the backend to ask
    cdef Backend short           # the one short of memory: this, or its fallback
    cdef int reason              # reason of its last refusal


cdef Candidate new_candidate(Backend backend, Backend short, int reason):
    cdef Candidate made = Candidate.__new__(Candidate)
    made.backend = backend
    made.short = short
    made.reason = reason
    return made


@cython.final
cdef class Request:
    """A refused request, and the backends that may still serve it."""

    cdef Backend backend         # the backend that refused it
    cdef list candidates         # that backend, its fallback, the one beyond
    cdef size_t nbytes
    cdef bint zero
    cdef const size_t *stream    # NULL: the backend's current one
    cdef Memory *out
    cdef Backend server          # the backend that has served it; None so far
    cdef int remedy              # the last step that was taken: of `Remedy`

    cdef int ask(self, Candidate each) except -1:
        self.ask_once(each)
        return self.await_moves(each)

    cdef int await_moves(self, Candidate each) except -1:
        """Ask a candidate again while other threads move what may serve the request."""
        cdef double pause = FIRST_PAUSE, waited = 0
        while each.reason == TRY_AGAIN and waited < PATIENCE:
            sleep(pause)
            waited += pause
            pause = min(2 * pause, LONGEST_PAUSE)
            self.ask_once(each)
        if each.reason == TRY_AGAIN:
            each.reason = find_reason(each.short, self.nbytes, NO_MEMORY)
        return 0

    cdef int ask_once(self, Candidate each) except -1:
        if not _pressure.turns_matter:
            return self.ask_again(each)
        before = _pressure.set_asked_again(True)
        try:
            return self.ask_again(each)
        finally:
            _pressure.set_asked_again(before)

    cdef int ask_again(self, Candidate each) except -1:
        cdef Backend backend = each.backend
        cdef PyObject *server = <PyObject *>backend
        asking_again[0] += 1
        try:
            if each.short is not backend:
                each.reason = backend.allocate_from_fallback(
                    self.nbytes, self.zero, self.out, &server)
            elif self.stream != NULL:
                each.reason = backend.allocate_on(
                    self.nbytes, self.zero, self.stream[0], self.out)
            else:
                each.reason = backend.allocate(self.nbytes, self.zero, self.out)
        finally:
            asking_again[0] -= 1
        if each.reason == ALLOCATED:
            self.server = <Backend>server
        else:
            each.reason = find_reason(each.short, self.nbytes, each.reason)
        return 0

    cdef bint ask_all(self) except -1:
        """Ask the candidates in turn; return whether one has served the request."""
        cdef Candidate each
        for each in self.candidates:
            self.ask(each)
            if self.press(each) or self.evict(each):
                return True
        return False

    cdef bint go_on(self) except -1:
        """Evict arrays, then ask the fallbacks; return whether one has served."""
        cdef Candidate each = self.candidates[0]
        each.reason = find_reason(each.short, self.nbytes, each.reason)
        self.await_moves(each)
        if each.reason == ALLOCATED:
            return True
        self.remedy = OTHERS
        if self.press(each):
            return True
        self.remedy = EVICTION
        if self.evict(each):
            return True
        self.remedy = FALLBACK
        for each in self.candidates[1:]:
            self.ask(each)
            if self.press(each) or self.evict(each):
                return True
        return False

    cdef bint evict(self, Candidate each) except -1:
        """Let arrays leave for a candidate that has refused; whether it has served."""
        while can_be_helped(each.reason) and _pressure.evict(
                each.short, self.nbytes, REASONS[each.reason]):
            self.ask(each)
        return each.reason == ALLOCATED

    cdef bint press(self, Candidate each) except -1:
        """Free what competes with a candidate that has refused, and ask it again.

        Closed arenas and other pools give memory back. Returns whether it has served.
        """
        if can_be_helped(each.reason) and _pressure.release_others(
                each.short, self.nbytes, REASONS[each.reason]):
            self.ask(each)
        return each.reason == ALLOCATED


cdef bint can_be_helped(int reason) noexcept:
    """Whether memory that others give up could lead to another answer."""
    return reason not in (ALLOCATED, TOO_LARGE, LOST)


cdef int find_reason(Backend backend, size_t nbytes, int reason) except -1:
    """Return the reason of a refusal, also of a backend that gives none.

    Such a backend returns NO_MEMORY only, but tells its limit and the bytes it holds.
    """
    limit = None if reason != NO_MEMORY else backend.limit
    if limit is None:
        return reason
    if nbytes > limit:
        return TOO_LARGE
    if backend.stats()["reserved_bytes"] + nbytes > limit:
        return OWN_LIMIT
    return NO_MEMORY


# --------------------------------- slow steps, and those that run users' code: STEPS


def trim(Request request not None):
    """Give back the idle memory of the backend, if that has no pool; a step."""
    if _pressure.release_own(request.backend):
        yield


def collect(Request request not None):
    """Run the cyclic collector; a step."""
    if collect_for_memory():
        _pressure.release_own(request.backend)
        yield


def call_callbacks(Request request not None):
    """Call the functions of `ndx.memory.on_oom`; a step."""
    for _ in _pressure.callbacks(request.nbytes):
        _pressure.release_own(request.backend)
        yield


# Each with its name, and whether it can help against TOO_LARGE; against all other
# reasons each can. A step yields when it is worth to ask all candidates again.
cdef tuple STEPS = ((trim, TRIM, False), (collect, COLLECTION, False),
                    (call_callbacks, CALLBACK, True))


cdef bint take_steps(Request request) except -1:
    cdef Candidate first = request.candidates[0]
    log_event("%r is short of memory (%s): %d bytes were asked for",
              (request.backend, name_of(first.reason, request.nbytes), request.nbytes))
    for step, request.remedy, helps_any in STEPS:
        if first.reason == TOO_LARGE and not helps_any:
            continue
        for _ in step(request):
            if request.ask_all():
                return True
    return False


cdef Backend serve(Request request):
    """Return the backend that has served a request, or raise OutOfMemoryError."""
    cdef ReliefCounters *counters = &request.backend.relief_counters
    cdef int64_t started = ndx_nanoseconds()
    ndx_raise_time(&counters.refused, 1)
    try:
        server = take_measures(request)
        ndx_raise_time(&counters.helped[request.remedy], 1)
    except BaseException:
        # Of a callback, too.
        ndx_raise_time(&counters.errors, 1)
        raise
    finally:
        ndx_raise_time(&counters.nanoseconds, ndx_nanoseconds() - started)
    return server


cdef Backend take_measures(Request request):
    cdef Candidate each = request.candidates[0]
    if each.reason == LOST:
        raise RuntimeError(
            "this process is a fork of one that used this memory, and can't use it: "
            "start it by 'spawn' or 'forkserver', or use the host's")
    if request.go_on():
        return request.server
    # Finalizers and callbacks run now, and may use NumPy.
    handler = suspend_handlers()
    try:
        if take_steps(request):
            return request.server
    finally:
        restore_numpy(handler)
    refusals = []
    for each in request.candidates:
        raised = each.short._take_refusal() if each.reason == NO_MEMORY else None
        reason = name_of(each.reason, request.nbytes)
        refusals.append((each.short, reason, raised))
    error = _out_of_memory.error(request.nbytes, refusals)
    report = _pressure.oom_report
    if report is not None:
        report(error)
    raise error


cdef Request new_request(Backend backend, size_t nbytes, Memory *out, int reason):
    cdef Request request = Request.__new__(Request)
    request.backend = backend
    request.candidates = [new_candidate(backend, backend, reason)]
    request.nbytes = nbytes
    request.out = out
    return request


cdef Backend relieve(Backend backend, Backend beyond, size_t nbytes, bint zero,
                     const size_t *stream, Memory *out, int reason):
    """Serve a request that a backend refused; return the backend that has served.

    That may be the backend, its fallback, or the one beyond it (None: there is none);
    the range is to be released to it. Raises OutOfMemoryError, with nothing changed, if
    no step helps.
    """
    cdef Request request = new_request(backend, nbytes, out, reason)
    cdef Backend fallback = _pressure.fallback_of(backend)
    request.zero = zero
    request.stream = stream
    if fallback is not None:
        request.candidates.append(new_candidate(backend, fallback, NO_MEMORY))
    if beyond is not None:
        request.candidates.append(new_candidate(beyond, beyond, NO_MEMORY))
    return serve(request)


cdef int insist(Backend backend, size_t nbytes, Memory *out, int reason) except -1:
    """Serve a refused request from the backend itself, without its fallback.

    Returns 0 with `out` filled, or raises OutOfMemoryError.
    """
    serve(new_request(backend, nbytes, out, reason))
    return 0


# ---- Memory that a backend is to have before it is asked for -------------------------

def warm_up(Backend backend not None, size_t nbytes, bint touch) -> int:
    """Let a backend serve one request, and take it back; return the bytes newly held.

    What the backend is to keep must be set before. Raises OutOfMemoryError, with
    nothing changed, if the backend can't serve; its fallback is not asked.
    """
    cdef Counters before, after
    cdef Memory memory
    cdef int reason
    if nbytes == 0:
        return 0
    backend.read_counters(&before)
    reason = backend.allocate(nbytes, False, &memory)
    if reason != ALLOCATED:
        insist(backend, nbytes, &memory, reason)
    if touch and backend.host_accessible:
        with nogil:
            memset(memory.ptr, 0, nbytes)
    backend.release(&memory)
    backend.read_counters(&after)
    # The request was no use of memory: it doesn't count as a peak.
    backend.rewind_peak()
    before.peak_reserved = after.peak_reserved
    before.peak_reserved_time = after.peak_reserved_time
    backend.lift_peak(&before)
    return after.reserved - min(before.reserved, after.reserved)
