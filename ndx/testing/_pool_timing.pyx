"""C loops around a pool and around ``malloc``, for benchmarks."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc

from ndx.backends.base cimport Backend, Memory

import time

cdef extern from *:
    """
    typedef volatile char volatile_char;
    """
    ctypedef char volatile_char

__all__ = ["time_malloc", "time_pool"]


def time_pool(Backend backend not None, size_t nbytes, size_t count) -> float:
    """Return the nanoseconds of one allocation and release, of `count` in a loop."""
    cdef Memory memory
    cdef size_t left = count
    cdef uint64_t start = time.perf_counter_ns()
    with nogil:
        while left:
            left -= 1
            backend.allocate(nbytes, False, &memory)
            (<volatile_char *>memory.ptr)[0] = 1
            backend.release(&memory)
    return (time.perf_counter_ns() - start) / count


def time_malloc(size_t nbytes, size_t count) -> float:
    """Return the nanoseconds of one ``malloc`` and ``free``, of many in a loop."""
    cdef char *ptr
    cdef size_t left = count
    cdef uint64_t start = time.perf_counter_ns()
    with nogil:
        while left:
            left -= 1
            ptr = <char *>malloc(nbytes)
            if ptr == NULL:
                break
            # A write, so that the compiler can't omit both calls.
            (<volatile_char *>ptr)[0] = 1
            free(ptr)
    return (time.perf_counter_ns() - start) / count
