"""Native memory of the process.

Address space is reserved generously and takes no memory; pages take theirs when they
are first written. Large ranges use huge pages. Options say otherwise: of the pages'
size, that they are locked in memory, and of which NUMA nodes they are.
"""

cimport cython
from libc.errno cimport ENOMEM, ENOSYS
from libc.string cimport memset

from ndx._lib.unraisable cimport Refusals
from ndx.backends._budget cimport budget_is_lazy
from ndx.backends._pool.report cimport pool_ranges
from ndx.backends._pool.store cimport SPLIT
from ndx.backends.pooled cimport PooledBackend
from ndx.backends.source cimport NO_RANGE, RESERVED, Source

import operator
import os

from ndx._lib.system import (
    address_space_is_rationed, available_memory, huge_page_size, locked_ranges,
    machine_memory, memory_and_swap, why_not_locked,
)
from ndx.backends._pool.options import OptionsSignature, PoolOptions, options_class

__all__ = ["HostBackend", "HostSource"]

cdef extern from "ndx/internal/pages.h" nogil:
    size_t ndx_page_size()
    bint ndx_pages_are_lazy()
    bint ndx_reserves_unseen()
    bint ndx_show(void *ptr, size_t nbytes)
    void *ndx_reserve_at(size_t nbytes, bint whole, size_t step)
    void ndx_unreserve(void *ptr, size_t nbytes)
    void ndx_use_huge_pages(char *start, char *end)
    void ndx_use_small_pages(char *start, char *end)
    bint ndx_purge(char *start, char *end)
    void ndx_offer(char *start, size_t nbytes)
    void ndx_zero(char *start, size_t nbytes, bint give_back)

cdef extern from "ndx/internal/placement.h" nogil:
    enum:
        NDX_AS_THE_THREAD, NDX_BIND, NDX_INTERLEAVE, NDX_LOCAL, NDX_NODES
    void ndx_add_node(Policy *policy, int node)
    bint ndx_has_node(const Policy *policy, int node)
    int ndx_allowed_nodes(Policy *out)
    int ndx_set_policy(void *ptr, size_t nbytes, const Policy *policy)
    int ndx_lock_pages(void *ptr, size_t nbytes)
    int ndx_unlock_pages(void *ptr, size_t nbytes)
    int ndx_count_nodes(char *start, size_t nbytes, size_t *counts)
    int ndx_open_pagemap()
    void ndx_close_pagemap(int fd)
    int ndx_count_huge(int pagemap, char *start, size_t nbytes, size_t *count)

cdef enum:
    HUGE_FROM = 4194304          # bytes for which huge pages pay, as NumPy found
    # Recycled zeros: pages that are not resident stay so from 1 MiB on. From 256 MiB
    # on, those that are resident go back, too: then an array of which little is written
    # needs little. One that is written as a whole pays for fresh pages then, as all
    # large ones of the C library.
    LAZY_FROM = 1048576
    RETURN_FROM = 268435456


# Read once: backends are made often.
cdef size_t total_memory = memory_and_swap()


# no_gc_clear: it gives memory back, and says why it has none, until the pool has ended.
@cython.no_gc_clear
@cython.binding(False)
cdef class HostSource(Source):
    """Private pages of the process.

    Parameters
    ----------
    hugepages, lock, numa : optional
        As for `ndx.backends.HostBackend`.
    """

    def __cinit__(self, *args, hugepages="auto", lock=False, numa=None, **options):
        self.granularity = ndx_page_size()
        self.paged = ndx_pages_are_lazy()
        self.zeroed = self.paged
        self.hidden = ndx_reserves_unseen()
        self.unattended = True
        rationed = sizeof(void *) < 8 or address_space_is_rationed()
        self.extent = (1 << 26) if rationed else (1 << 34)
        self.huge_from = HUGE_FROM
        self.most = total_memory
        self.refusals = Refusals()
        if hugepages == "always":
            # What is held is whole huge pages, so that limits and counts are exact.
            self.granularity = self.huge_from = require_huge_pages()
        elif hugepages == "never":
            self.small_pages = True
            self.huge_from = <size_t>-1
        self.locked = lock
        self.commit_from = 1 if lock else self.huge_from
        self.numa = numa
        if numa is not None:
            choose_nodes(&self.policy, numa)

    def _take_refusal(self):
        return self.refusals.take()

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        cdef int status = RESERVED
        ptr[0] = ndx_reserve_at(nbytes, whole, self.granularity)
        if ptr[0] == NULL:
            return refuse(self, 0, 0)
        if whole or not self.hidden:
            status = place(self, ptr[0], nbytes)
        if status == RESERVED and whole and nbytes >= self.commit_from:
            status = self.commit(ptr[0], nbytes)
        if status != RESERVED:
            ndx_unreserve(ptr[0], nbytes)
        return status

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        ndx_unreserve(ptr, nbytes)

    cdef int commit(self, void *ptr, size_t nbytes) noexcept nogil:
        cdef int error
        if nbytes >= self.huge_from:
            ndx_use_huge_pages(<char *>ptr, <char *>ptr + nbytes)
        if self.locked:
            error = ndx_lock_pages(ptr, nbytes)
            if error:
                # Some pages may be resident.
                ndx_purge(<char *>ptr, <char *>ptr + nbytes)
                return refuse(self, error, nbytes)
        return RESERVED

    cdef int show(self, void *ptr, size_t nbytes) noexcept nogil:
        if not ndx_show(ptr, nbytes):
            return refuse(self, 0, 0)
        # Mapped anew, the pages have lost what `place` said of them.
        return place(self, ptr, nbytes)

    cdef bint purge(self, void *ptr, size_t nbytes) noexcept nogil:
        # Locked pages can't be given back.
        if self.locked and ndx_unlock_pages(ptr, nbytes) != 0:
            return False
        return ndx_purge(<char *>ptr, <char *>ptr + nbytes)

    cdef void offer(self, void *ptr, size_t nbytes) noexcept nogil:
        ndx_offer(<char *>ptr, nbytes)

    cdef void clear(self, void *ptr, size_t nbytes, size_t stream) noexcept nogil:
        if nbytes < LAZY_FROM or not self.paged or self.locked \
                or not budget_is_lazy():
            memset(ptr, 0, nbytes)
        else:
            ndx_zero(<char *>ptr, nbytes, nbytes >= RETURN_FROM)

    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil:
        return host_memory(idle, total)


cdef bint host_memory(size_t *idle, size_t *total) noexcept nogil:
    """Implement `info` for sources of the machine's, or the control group's, memory."""
    with gil:
        try:
            total[0] = machine_memory()
            if idle != NULL:
                idle[0] = available_memory()
        except Exception:
            return False
    return True


cdef int place(HostSource self, void *ptr, size_t nbytes) noexcept nogil:
    """Set what holds for all pages of a range that was just mapped."""
    cdef int error = 0
    if self.small_pages:
        ndx_use_small_pages(<char *>ptr, <char *>ptr + nbytes)
    if self.policy.rule != NDX_AS_THE_THREAD:
        error = ndx_set_policy(ptr, nbytes, &self.policy)
    return refuse(self, error, 0) if error else RESERVED


cdef int refuse(HostSource self, int error, size_t to_lock) noexcept nogil:
    """Return NO_RANGE, and keep the reason for the message.

    The reason is an error of the system, which did not lock so many bytes or, if these
    are 0, did not take the policy. If it is 0, no option is the reason.
    """
    with gil:
        try:
            self.refusals.take()
            if error:
                self.refusals.keep(reason_for(self, error, to_lock))
        except MemoryError:
            # There is none to say so either.
            pass
    return NO_RANGE


cdef object reason_for(HostSource self, int error, size_t to_lock):
    if to_lock:
        return MemoryError(f"lock=True, and {why_not_locked(error, to_lock)}")
    return MemoryError(
        f"numa={self.numa!r}, and the system did not take that: {os.strerror(error)}")


cdef size_t require_huge_pages() except 0:
    """Return the bytes of a huge page, or raise if the system has none."""
    found = huge_page_size()
    if not found:
        raise OSError(
            ENOSYS, "hugepages='always', but this system has no transparent huge pages,"
            " or has switched them off (/sys/kernel/mm/transparent_hugepage/enabled); "
            "hugepages='auto' uses them where there are any")
    return found


cdef int choose_nodes(Policy *policy, object numa) except -1:
    """Set the policy that an option stands for, or raise if there can't be one."""
    cdef Policy allowed
    cdef void *page
    cdef int node, error
    memset(&allowed, 0, sizeof(allowed))
    error = ndx_allowed_nodes(&allowed)
    there = [node for node in range(NDX_NODES) if ndx_has_node(&allowed, node)]
    if numa == "local":
        policy.rule, chosen = NDX_LOCAL, ()
    elif numa == "interleave":
        policy.rule, chosen = NDX_INTERLEAVE, there
    else:
        policy.rule, chosen = NDX_BIND, (numa,) if isinstance(numa, int) else numa
    if not error and not set(chosen) <= set(there):
        raise ValueError(
            f"numa={numa!r} names a node that is not there, or not for this process; "
            f"its nodes are {', '.join(map(str, there))}")
    for node in chosen:
        ndx_add_node(policy, node)
    if not error:
        # One page tells whether the system takes the policy.
        page = ndx_reserve_at(ndx_page_size(), False, ndx_page_size())
        error = ENOMEM
        if page != NULL:
            error = ndx_set_policy(page, ndx_page_size(), policy)
            ndx_unreserve(page, ndx_page_size())
    if error:
        raise OSError(
            error, f"{os.strerror(error)}: the system takes no numa={numa!r}: it has "
            "no NUMA policies, or forbids them (a container may need CAP_SYS_NICE); "
            "numa=None leaves the nodes to the system")
    return 0


HUGE_PAGES = ("auto", "always", "never")


@options_class
class HostOptions(PoolOptions):
    """The options of a pool of the process's memory."""

    hugepages: str = "auto"
    lock: bool = False
    numa: int | str | tuple[int, ...] | None = None

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.hugepages, str) or self.hugepages not in HUGE_PAGES:
            raise ValueError(
                f"hugepages={self.hugepages!r} is not valid; valid are "
                f"{', '.join(HUGE_PAGES)}")
        if not isinstance(self.lock, bool):
            raise ValueError(f"lock={self.lock!r} is not valid; it is True or False")
        object.__setattr__(self, "numa", parse_nodes(self.numa))


def parse_nodes(numa):
    """Return the option `numa`, with several nodes as a sorted tuple."""
    if numa is None or isinstance(numa, str) and numa in ("interleave", "local"):
        return numa
    try:
        if isinstance(numa, str):
            found = {int(each) for each in numa.split(",")}
        elif isinstance(numa, bool):
            raise TypeError
        elif hasattr(numa, "__index__"):
            found = {operator.index(numa)}
        else:
            found = {operator.index(each) for each in numa}
    except (TypeError, ValueError):
        found = ()
    if not found or min(found) < 0:
        raise ValueError(
            f"numa={numa!r} is not valid: give the number of a node, several as [0, 1] "
            "or '0,1', 'interleave' for all, or 'local' for that of the CPU which "
            "writes first")
    return min(found) if len(found) == 1 else tuple(sorted(found))


@cython.binding(False)
@cython.embedsignature(True)
cdef class HostBackend(PooledBackend):
    """Native memory of the process, aligned to 64 bytes.

    Arrays of at most 48 bytes may lie in their objects, until they are shared.

    Parameters
    ----------
    limit : int or str, optional
        Upper bound on the bytes held from the system, idle ones included, such as
        ``"2GiB"`` or ``"60%"``; ``None`` for no bound. It is never exceeded, not by
        a byte. Memory comes in pages: a limit below one page admits nothing.
    hugepages : {'auto', 'always', 'never'}, default 'auto'
        Which memory may be in (transparent) huge pages. ``auto``: ranges of 4 MiB and
        more. ``always``: all of it, and it is held in whole huge pages, so that the
        first array takes at least one (2 MiB on most machines). ``never``: none.
    lock : bool, default False
        Whether pages are made and locked in the machine's memory when the pool takes
        them: no access to an array waits for a page then. They are unlocked when they
        go back to the system. Requests beyond the process's limit (``ulimit -l``) are
        refused. A forked child has none of its parent's locks.
    numa : int, list of int, 'interleave' or 'local', optional
        The NUMA nodes whose memory the pool has: one, several (``interleave``: all,
        page by page in turn), or that of the CPU which first writes to a page
        (``local``). None: as the system, or ``numactl``, says. Named nodes are strict:
        where they are full, the system gives no memory of others, and may end the
        process; set a limit.
    pool, initial, idle_release, reserve_fraction, fallback, cutoff : optional
        As for `ndx.backends.PooledBackend`.

    Raises
    ------
    ValueError
        If `numa` names a node that is not there; the message lists those that are.
    OSError
        If the system has no huge pages (``hugepages="always"``), or no NUMA policies.

    Notes
    -----
    With ``hugepages="always"``, `lock` or `numa`, no array lies in its object. The
    options are done by `madvise`, `mlock` and `mbind` of Linux (see their manual
    pages); other systems can lock only. `placement` tells what came of them.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use("host", limit="1MiB"):
    ...     x = ndx.zeros(100)
    >>> x.backend.name
    'host'
    """

    _options = HostOptions
    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[HostKeywords]) -> None:
        options = self.take_options(given)
        self.name = "host"
        self.setup(HostSource(**options.own), options)
        # Small arrays that lie in their objects are where Python's memory is.
        self.has_cells = self.pool.kind == SPLIT and options.numa is None \
            and not options.lock and options.hugepages != "always"

    def placement(self) -> dict[str, Any]:
        """Return where the memory that the pool holds is, as the system says now.

        The system looks at each page, which takes up to 0.2 seconds for each GiB.

        Returns
        -------
        dict
            ``huge_bytes`` (in huge pages), ``locked_bytes``, and ``node_bytes``, a dict
            with the bytes on each NUMA node. Pages that were never written are on none.
            A value is None where the system can't tell: huge pages need Linux 6.7.

        Examples
        --------
        >>> import ndx
        >>> with ndx.use("host", hugepages="never") as backend:
        ...     x = ndx.ones(1_000_000)
        >>> backend.placement()["huge_bytes"] in (0, None)
        True
        """
        cdef size_t[NDX_NODES] counts
        cdef size_t huge = 0, start, nbytes
        cdef int no_huge = 0, no_nodes = 0
        cdef int pagemap = ndx_open_pagemap()
        ranges = pool_ranges(self.pool)
        memset(counts, 0, sizeof(counts))
        for start, nbytes in ranges:
            with nogil:
                if not no_huge:
                    no_huge = ndx_count_huge(pagemap, <char *>start, nbytes, &huge)
                if not no_nodes:
                    no_nodes = ndx_count_nodes(<char *>start, nbytes, counts)
        ndx_close_pagemap(pagemap)
        locked = locked_ranges()
        return {
            "huge_bytes": None if no_huge else huge,
            "locked_bytes": None if locked is None else common_nbytes(ranges, locked),
            "node_bytes": None if no_nodes else {
                node: counts[node] for node in range(NDX_NODES) if counts[node]},
        }


def common_nbytes(ranges, others):
    """Return the bytes that two lists of ranges (start, bytes) have in common."""
    ends = [(start, start + nbytes) for start, nbytes in sorted(ranges)]
    others = [(start, start + nbytes) for start, nbytes in sorted(others)]
    total = i = j = 0
    while i < len(ends) and j < len(others):
        low, high = max(ends[i][0], others[j][0]), min(ends[i][1], others[j][1])
        total += max(0, high - low)
        if ends[i][1] == high:
            i += 1
        else:
            j += 1
    return total
