from libc.stdint cimport int64_t, uint64_t

cdef extern from "ndx/internal/clock.h" nogil:
    uint64_t ndx_milliseconds()
    int64_t ndx_nanoseconds()

cdef object wall_time(uint64_t milliseconds)
cdef uint64_t clock_time(object seconds) except? 0
