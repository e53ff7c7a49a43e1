"""Native memory of the process.

Address space is reserved generously and takes no memory; pages take theirs when they
are first written. Large ranges use huge pages.
"""

from libc.string cimport memset

from ndx.backends._budget cimport budget_is_lazy
from ndx.backends._pool.store cimport SPLIT
from ndx.backends.pooled cimport PooledBackend
from ndx.backends.source cimport NO_RANGE, RESERVED, Source

from ndx._lib.system import (
    address_space_is_rationed, available_memory, machine_memory, memory_and_swap,
)
from ndx.backends._pool.options import OptionsSignature

__all__ = ["HostBackend", "HostSource"]

cdef extern from "ndx/internal/pages.h" nogil:
    size_t ndx_page_size()
    bint ndx_pages_are_lazy()
    bint ndx_reserves_unseen()
    bint ndx_show(void *ptr, size_t nbytes)
    void *ndx_reserve(size_t nbytes, bint whole)
    void ndx_unreserve(void *ptr, size_t nbytes)
    void ndx_use_huge_pages(char *start, char *end)
    bint ndx_purge(char *start, char *end)
    void ndx_offer(char *start, size_t nbytes)
    void ndx_zero(char *start, size_t nbytes, bint give_back)

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


cdef class HostSource(Source):
    """Private pages of the process."""

    def __cinit__(self, *args, **options):
        self.granularity = ndx_page_size()
        self.paged = ndx_pages_are_lazy()
        self.zeroed = self.paged
        self.hidden = ndx_reserves_unseen()
        rationed = sizeof(void *) < 8 or address_space_is_rationed()
        self.extent = (1 << 26) if rationed else (1 << 34)
        self.commit_from = HUGE_FROM
        self.most = total_memory

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        ptr[0] = ndx_reserve(nbytes, whole)
        return NO_RANGE if ptr[0] == NULL else RESERVED

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        ndx_unreserve(ptr, nbytes)

    cdef int commit(self, void *ptr, size_t nbytes) noexcept nogil:
        ndx_use_huge_pages(<char *>ptr, <char *>ptr + nbytes)
        return RESERVED

    cdef int show(self, void *ptr, size_t nbytes) noexcept nogil:
        return RESERVED if ndx_show(ptr, nbytes) else NO_RANGE

    cdef bint purge(self, void *ptr, size_t nbytes) noexcept nogil:
        return ndx_purge(<char *>ptr, <char *>ptr + nbytes)

    cdef void offer(self, void *ptr, size_t nbytes) noexcept nogil:
        ndx_offer(<char *>ptr, nbytes)

    cdef void clear(self, void *ptr, size_t nbytes, size_t stream) noexcept nogil:
        if nbytes < LAZY_FROM or not self.paged or not budget_is_lazy():
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


cdef class HostBackend(PooledBackend):
    """Native memory of the process, aligned to 64 bytes.

    Arrays of at most 48 bytes may lie in their objects, until they are shared.

    Parameters
    ----------
    limit : int or str, optional
        Upper bound on the bytes held from the system, idle ones included, such as
        ``"2GiB"`` or ``"60%"``; ``None`` for no bound. It is never exceeded, not by
        a byte. Memory comes in pages: a limit below one page admits nothing.
    pool, initial, idle_release, reserve_fraction, fallback, cutoff : optional
        As for `ndx.backends.PooledBackend`.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use("host", limit="1MiB"):
    ...     x = ndx.zeros(100)
    >>> x.backend.name
    'host'
    """

    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[PoolKeywords]) -> None:
        self.name = "host"
        self.setup(HostSource.__new__(HostSource), self.take_options(given))
        self.has_cells = self.pool.kind == SPLIT
