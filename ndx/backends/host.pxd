from ndx.backends.base cimport Backend, Memory

cdef extern from "ndx/lock.h" nogil:
    ctypedef int ndx_lock
    void ndx_lock_acquire(ndx_lock *lock)
    void ndx_lock_release(ndx_lock *lock)
    int ndx_at_fork(void (*before)() noexcept nogil, void (*after)() noexcept nogil)

cdef enum:
    CLASSES = 65

# An idle range; it is kept in the range itself.
cdef struct Idle:
    Idle *next
    void *cookie

cdef class HostBackend(Backend):
    # Guarded, like the counters, by the module's lock.
    cdef Idle *idle[CLASSES]
    cdef size_t idle_bytes

    cdef void count(self, size_t nbytes) noexcept nogil
    cdef size_t flush(self) noexcept nogil
