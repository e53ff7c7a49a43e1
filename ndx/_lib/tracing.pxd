"""What `tracemalloc` is told of memory: each range, with the line that asked for it.

Both functions return at once while it is off. They need no GIL: `tracemalloc` takes it.
A range that it does not know, such as one from before its start, is forgotten silently.
"""

from libc.stdint cimport uintptr_t

cdef extern from "Python.h" nogil:
    int PyTraceMalloc_Track(unsigned int domain, uintptr_t ptr, size_t size)
    int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t ptr)

cdef enum:
    DOMAIN = 0x6E6478            # "ndx"; public as `ndx.memory.TRACEMALLOC_DOMAIN`
    NUMPY_DOMAIN = 389047        # `numpy.lib.tracemalloc_domain`


cdef inline void trace(const void *ptr, size_t nbytes) noexcept nogil:
    """Note a range; if it is noted already, its size and its line change."""
    PyTraceMalloc_Track(DOMAIN, <uintptr_t>ptr, nbytes)


cdef inline void untrace(const void *ptr) noexcept nogil:
    PyTraceMalloc_Untrack(DOMAIN, <uintptr_t>ptr)


cdef inline void untrace_numpy(const void *ptr) noexcept nogil:
    """Forget a range that NumPy has noted, and that is ours from now on."""
    PyTraceMalloc_Untrack(NUMPY_DOMAIN, <uintptr_t>ptr)
