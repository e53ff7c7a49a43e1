from libc.stdint cimport uint64_t

from ndx._lib.free_threading cimport ndx_load_flag

cdef enum:
    SOME = 16                    # requests, of which one reads the clock in fast loops

# The state that each request reads, without a lock, to learn whether something depends
# on the time: idle memory, which goes back, or a limit on the process, whose memory
# others fill.
cdef struct Watch:
    bint on                      # if not, no request reads the clock
    bint over                    # ndx or the process has more than its limit allows
    bint slow                    # the next request reads the clock
    uint64_t last                # when one did, in milliseconds
    uint64_t next                # when the pools are due for a look

cdef Watch watch

cdef inline bint watch_is_due(uint64_t count) noexcept nogil:
    """Whether pools must be looked at before a request, the `count`-th of its pool.

    Reading the clock takes as long as half of a small request. So requests that follow
    each other fast read it only now and then.
    """
    return ndx_load_flag(&watch.on) and (
        ndx_load_flag(&watch.over) or ndx_load_flag(&watch.slow)
        or count % SOME == 0) and watch_has_come()

cdef bint watch_has_come() noexcept nogil
cdef void watch_begin(uint64_t next_look) noexcept nogil
cdef bint watch_claim(uint64_t now) noexcept nogil
cdef void watch_go_on(bint needed, uint64_t next_look) noexcept nogil
cdef bint budget_is_lazy() noexcept nogil
cdef bint budget_take(size_t nbytes) noexcept nogil
cdef bint budget_look() noexcept nogil
cdef bint budget_obtain(size_t nbytes) noexcept nogil
cdef void budget_arrive(void *pages, size_t nbytes) noexcept nogil
cdef void budget_give(size_t nbytes) noexcept nogil
cdef bint budget_is_process(size_t nbytes) noexcept nogil
cdef size_t budget_short(size_t nbytes) noexcept nogil
cdef bint gpu_take(int gpu, size_t nbytes) noexcept nogil
cdef void gpu_give(int gpu, size_t nbytes) noexcept nogil
cdef size_t gpu_short(int gpu, size_t nbytes) noexcept nogil
cdef size_t space_share(size_t extent) noexcept nogil
cdef void space_take() noexcept nogil
cdef void space_give() noexcept nogil
cdef void budget_lock() noexcept nogil
cdef void budget_unlock(bint child) noexcept nogil
