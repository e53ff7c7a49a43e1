"""Monotonic clocks, and what a time of theirs is for people."""

import time

# When the monotonic clock was at 0.
cdef double start = time.time() - ndx_milliseconds() * 1e-3


cdef object wall_time(uint64_t milliseconds):
    """Return a time of the clock as seconds since 1970; 0 is unknown: None."""
    return start + milliseconds * 1e-3 if milliseconds else None


cdef uint64_t clock_time(object seconds) except? 0:
    """Return the time of the clock that `wall_time` shows so."""
    return 0 if seconds is None else round((seconds - start) * 1e3)
