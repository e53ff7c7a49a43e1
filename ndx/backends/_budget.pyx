"""Limits on the memory of the whole process and of each GPU, and what is in use."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

import warnings

from ndx._lib.clock cimport ndx_milliseconds, wall_time
from ndx._lib.free_threading cimport (
    ndx_load_flag, ndx_load_time, ndx_store_flag, ndx_store_time,
)

from ndx._lib.sizes import format_size, parse_limit
from ndx._lib.system import machine_memory

__all__ = [
    "gpu_limits", "gpu_reserved", "missing_of_gpu", "missing_of_process",
    "process_limit", "process_peak", "process_reserved", "resident_bound",
    "resident_nbytes", "set_gpu_limit", "set_process_limit", "set_resident_limit",
    "warn_beyond",
]

cdef extern from "ndx/internal/resident.h" nogil:
    size_t ndx_resident()
    void ndx_make_resident(void *pages, size_t nbytes)

cdef extern from "ndx/lock.h" nogil:
    ctypedef int ndx_lock
    void ndx_lock_acquire(ndx_lock *lock)
    void ndx_lock_release(ndx_lock *lock)

cdef ndx_lock lock               # taken last; guards the following
cdef size_t held = 0
cdef size_t peak = 0
cdef uint64_t peak_set = 0        # milliseconds: when that was
cdef size_t limit = <size_t>-1   # the greatest: none
cdef size_t segments = 0         # of address space

# 256 segments may have 16 GiB each; then k of them have 4 TiB/k, in all 4 TiB * log(k).
cdef size_t SPACE = <size_t>1 << (42 if sizeof(size_t) == 8 else 28)

cdef enum:
    GPUS = 64
    LEAST_SPACE = 67108864       # 64 MiB
    KNOWN_FOR = 10               # milliseconds, then the system is asked again
    PAUSE = 2                    # milliseconds between requests that are not fast

# Limit on the resident memory of the process, other libraries' included. The system is
# asked without the lock, and the answer kept below. While there is such a limit, pages
# are made resident when they are taken. Bytes taken that were not yet resident when
# the system was asked are added to its answer.
cdef size_t resident_limit = <size_t>-1
cdef size_t resident = 0         # when the system was last asked,
cdef uint64_t looked = 0         # which was then; 0: never
cdef size_t taken = 0            # in all; the difference to `arrived` is on its way
cdef size_t arrived = 0
cdef size_t arrived_then = 0     # when the system was asked

# Indexed by GPU, from 1: the bytes that all backends hold of it, and their limit.
cdef size_t[GPUS + 1] of_gpu
cdef size_t[GPUS + 1] limit_of_gpu
memset(of_gpu, 0, sizeof(of_gpu))
memset(limit_of_gpu, 0xFF, sizeof(limit_of_gpu))


cdef bint watch_has_come() noexcept nogil:
    """Read the clock; return whether the pools are due for a look."""
    cdef uint64_t now = ndx_milliseconds()
    # Without a lock: at worst one request more or less reads the clock.
    ndx_store_flag(&watch.slow, now - ndx_load_time(&watch.last) >= (
        PAUSE if ndx_load_flag(&watch.slow) else <uint64_t>SOME * PAUSE))
    ndx_store_time(&watch.last, now)
    return ndx_load_flag(&watch.over) or now >= ndx_load_time(&watch.next)


cdef void watch_begin(uint64_t next_look) noexcept nogil:
    """Let requests read the clock; the pools are looked at by `next_look`."""
    ndx_lock_acquire(&lock)
    ndx_store_flag(&watch.on, True)
    ndx_store_flag(&watch.slow, True)
    ndx_store_time(&watch.next, min(watch.next, next_look))
    ndx_lock_release(&lock)


cdef bint watch_claim(uint64_t now) noexcept nogil:
    """Claim the look at the pools that is due; False if none is, or another has it."""
    cdef bint due
    ndx_lock_acquire(&lock)
    due = watch.on and now >= watch.next
    if due:
        ndx_store_time(&watch.next, now + KNOWN_FOR)
    ndx_lock_release(&lock)
    return due


cdef void watch_go_on(bint needed, uint64_t next_look) noexcept nogil:
    """Set the time of the next look at the pools, and whether any pool needs one."""
    ndx_lock_acquire(&lock)
    if resident_limit == <size_t>-1:
        ndx_store_flag(&watch.on, needed or watch.over)
        ndx_store_time(&watch.next, next_look)
    ndx_lock_release(&lock)


cdef void note_excess() noexcept nogil:
    """Note whether more is held than a limit allows; the caller has the lock."""
    ndx_store_flag(&watch.over, held > limit or (
        resident_limit != <size_t>-1 and known_present() > resident_limit))
    if watch.over or resident_limit != <size_t>-1:
        ndx_store_flag(&watch.on, True)


cdef bint budget_is_lazy() noexcept nogil:
    """Whether pages may be left to be made by the first write to them."""
    return resident_limit == <size_t>-1


cdef bint budget_take(size_t nbytes) noexcept nogil:
    """Count bytes before they are obtained; False if a limit forbids them.

    The answer relies on what is known of the process: `budget_look` may correct it.
    Each count ends with `budget_arrive` (the bytes are there, or were not obtained)
    and, when they are no longer held, with `budget_give`.
    """
    global held, peak, peak_set, taken
    cdef bint fits
    ndx_lock_acquire(&lock)
    fits = held <= limit and nbytes <= limit - held and (
        resident_limit == <size_t>-1 or resident_allows(nbytes))
    if fits:
        held += nbytes
        taken += nbytes
        if held > peak:
            peak = held
            peak_set = ndx_milliseconds()
    ndx_lock_release(&lock)
    return fits


cdef bint resident_allows(size_t nbytes) noexcept nogil:
    """Whether `nbytes` more fit under the limit on the process; with the lock."""
    cdef size_t present = known_present()
    return ndx_milliseconds() - looked < KNOWN_FOR and present <= resident_limit \
        and nbytes <= resident_limit - present


cdef size_t known_present() noexcept nogil:
    """Return the bytes that are, or will be at once, in memory; with the lock."""
    return max(resident + (taken - arrived_then), held)


cdef bint budget_look() noexcept nogil:
    """Ask the system for the process's memory; False if there is no limit on that.

    The call takes about a microsecond, and is made without a lock.
    """
    global resident, looked, arrived_then
    cdef size_t present, before
    ndx_lock_acquire(&lock)
    before = arrived
    present = resident_limit
    ndx_lock_release(&lock)
    if present == <size_t>-1:
        return False
    present = ndx_resident()
    ndx_lock_acquire(&lock)
    if present:
        resident = present
        arrived_then = before
    # Without an answer the last one stands: there may be no file descriptor left.
    looked = ndx_milliseconds()
    note_excess()
    ndx_lock_release(&lock)
    return True


cdef bint budget_obtain(size_t nbytes) noexcept nogil:
    """Count bytes as `budget_take` does; ask the system before a refusal."""
    return budget_take(nbytes) or (budget_look() and budget_take(nbytes))


cdef void budget_arrive(void *pages, size_t nbytes) noexcept nogil:
    """Count bytes of `budget_take` as obtained, or as given up; without a lock.

    `pages` is their address; NULL if no new pages were obtained. Under a limit on the
    process fresh pages are written to, so that the system counts them from now on.
    """
    global arrived
    cdef bint lazy
    ndx_lock_acquire(&lock)
    lazy = pages != NULL and resident_limit != <size_t>-1
    if not lazy:
        arrived += nbytes
    ndx_lock_release(&lock)
    if lazy:
        ndx_make_resident(pages, nbytes)
        budget_arrive(NULL, nbytes)


cdef void budget_give(size_t nbytes) noexcept nogil:
    """Count bytes as no longer held, after they were given back."""
    global held
    ndx_lock_acquire(&lock)
    held -= nbytes
    if watch.over:
        note_excess()
    ndx_lock_release(&lock)


cdef size_t budget_short(size_t nbytes) noexcept nogil:
    """Return how many bytes must go back before `nbytes` more can be held."""
    cdef size_t missing
    budget_look()
    ndx_lock_acquire(&lock)
    missing = beyond(limit, held, nbytes)
    if resident_limit != <size_t>-1:
        missing = max(missing, beyond(resident_limit, known_present(), nbytes))
    ndx_lock_release(&lock)
    return missing


cdef bint budget_is_process(size_t nbytes) noexcept nogil:
    """Whether the limit on the process, not that on ndx, forbids `nbytes` more."""
    cdef bint found
    ndx_lock_acquire(&lock)
    found = resident_limit != <size_t>-1 and (
        limit == <size_t>-1 or beyond(resident_limit, known_present(), nbytes) > 0)
    ndx_lock_release(&lock)
    return found


cdef size_t beyond(size_t most, size_t present, size_t more) noexcept nogil:
    cdef size_t wanted = present + min(more, <size_t>-1 - present)
    return wanted - min(wanted, most)


cdef bint gpu_take(int gpu, size_t nbytes) noexcept nogil:
    """Count bytes of a GPU before they are obtained; False if a limit forbids it."""
    cdef bint fits
    if gpu > GPUS:
        return True
    ndx_lock_acquire(&lock)
    fits = beyond(limit_of_gpu[gpu], of_gpu[gpu], nbytes) == 0
    if fits:
        of_gpu[gpu] += nbytes
    ndx_lock_release(&lock)
    return fits


cdef void gpu_give(int gpu, size_t nbytes) noexcept nogil:
    """Count bytes of a GPU as no longer held, after they were given back."""
    if gpu > GPUS:
        return
    ndx_lock_acquire(&lock)
    of_gpu[gpu] -= nbytes
    ndx_lock_release(&lock)


cdef size_t gpu_short(int gpu, size_t nbytes) noexcept nogil:
    """Return how many bytes of a GPU must go back before `nbytes` more can be held."""
    cdef size_t missing
    if gpu > GPUS:
        return 0
    ndx_lock_acquire(&lock)
    missing = beyond(limit_of_gpu[gpu], of_gpu[gpu], nbytes)
    ndx_lock_release(&lock)
    return missing


# Address space is reserved in advance, and is finite, too: the more segments there are,
# the less the next one gets.

cdef size_t space_share(size_t extent) noexcept nogil:
    """Return how much address space to reserve for a segment that asks for `extent`."""
    cdef size_t share
    ndx_lock_acquire(&lock)
    share = SPACE // (segments + 1)
    ndx_lock_release(&lock)
    return min(extent, max(share, min(extent, <size_t>LEAST_SPACE)))


cdef void space_take() noexcept nogil:
    """Count a segment of address space."""
    global segments
    ndx_lock_acquire(&lock)
    segments += 1
    ndx_lock_release(&lock)


cdef void space_give() noexcept nogil:
    """Count a segment of address space as given back."""
    global segments
    ndx_lock_acquire(&lock)
    segments -= 1
    ndx_lock_release(&lock)


cdef void budget_lock() noexcept nogil:
    ndx_lock_acquire(&lock)


cdef void budget_unlock(bint child) noexcept nogil:
    global looked, arrived
    if child:
        # A forked child has memory of its own, and no thread that waits for a count.
        looked = 0
        arrived = taken
    ndx_lock_release(&lock)


def warn_beyond(size_t nbytes, total, str whose):
    """Warn of a limit that is larger than `total`, and so forbids nothing."""
    if total is not None and nbytes > total:
        warnings.warn(
            f"the limit of {format_size(nbytes)} is more than {whose} can have, "
            f"{format_size(total)}: memory will run out before the limit is reached",
            RuntimeWarning, stacklevel=2)


def set_process_limit(value):
    """Set the limit on the memory that all backends of ndx hold together.

    A size, a part of what the process may have (the machine's memory, or less in a
    control group), or None for no limit. The caller gives back what is idle above it.
    """
    global limit
    cdef size_t nbytes = <size_t>-1
    if value is not None:
        nbytes = parse_limit(value)
        warn_beyond(nbytes, machine_memory(), "the process")
    ndx_lock_acquire(&lock)
    limit = nbytes
    note_excess()
    ndx_lock_release(&lock)


def set_resident_limit(value):
    """Set the limit on the resident memory of the process, of all libraries."""
    global resident_limit, looked
    cdef size_t nbytes = <size_t>-1
    if value is not None:
        nbytes = parse_limit(value, what="process")
        if ndx_resident() == 0:
            raise NotImplementedError(
                "this system does not say how much memory the process has, so that no "
                "limit for it can be kept; limit what ndx holds instead: "
                "ndx.memory.set_limit(...)")
        warn_beyond(nbytes, machine_memory(), "the process")
    ndx_lock_acquire(&lock)
    resident_limit = nbytes
    looked = 0
    note_excess()
    ndx_lock_release(&lock)
    # The system may have no answer later: this one is kept.
    budget_look()


def set_gpu_limit(int gpu, value, total):
    """Set the limit on what all backends hold of a GPU, counted from 1; None: none.

    A percentage is one of `total`.
    """
    cdef size_t nbytes = <size_t>-1
    if not 1 <= gpu <= GPUS:
        raise ValueError(f"limits are kept for the first {GPUS} GPUs only")
    if value is not None:
        nbytes = parse_limit(value, total)
        warn_beyond(nbytes, total, f"GPU {gpu - 1}")
    ndx_lock_acquire(&lock)
    limit_of_gpu[gpu] = nbytes
    ndx_lock_release(&lock)


def gpu_limits():
    """Return the limits of `set_gpu_limit` by the number of the GPU, from 1."""
    return {gpu: limit_of_gpu[gpu] for gpu in range(1, GPUS + 1)
            if limit_of_gpu[gpu] != <size_t>-1}


def gpu_reserved(int gpu):
    """Return the bytes that all backends hold of a GPU, counted from 1."""
    return of_gpu[gpu] if 1 <= gpu <= GPUS else 0


def missing_of_gpu(int gpu, size_t nbytes):
    """Return how many bytes of a GPU must go back before `nbytes` more can be held."""
    return gpu_short(gpu, nbytes)


def missing_of_process(size_t nbytes):
    """Return how many bytes must go back before ndx can hold `nbytes` more."""
    return budget_short(nbytes)


def resident_bound():
    """Return the limit of `set_resident_limit`; None for none."""
    return None if resident_limit == <size_t>-1 else resident_limit


def resident_nbytes():
    """Return the bytes of memory that the process has; 0 if the system can't say.

    Pages of files don't count: the system takes them back when it needs to.
    """
    return ndx_resident()


def process_limit():
    """Return the limit on what all backends of ndx hold together; None for none."""
    return None if limit == <size_t>-1 else limit


def process_reserved():
    """Return the bytes that all backends of ndx hold from the system."""
    return held


def process_peak():
    """Return the most bytes that all backends of ndx have held at once, and when."""
    return peak, wall_time(peak_set)
