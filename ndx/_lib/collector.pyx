"""When ndx starts Python's cyclic collector: never on a hot path.

Arrays are freed by reference counting. A collection frees only arrays that reference
cycles of other objects keep alive, and its time is proportional to the number of live
objects. So it is the last resort of a failing allocation. Programs can opt in to
collections at the ends of scopes, as in ND4J.
"""

cimport cython

import gc
import math
import time

from ndx._lib.free_threading cimport ndx_load_flag, ndx_store_flag

__all__ = ["gc_window", "periodic_gc"]

cdef double window = 0.0
cdef bint periodic = False
cdef double last_time = -math.inf
cdef object guard = object()     # of `window` and `last_time`


cdef int collect_for_memory() except -1:
    """Collect, if `gc_window` has passed since the last time; return whether it had."""
    global last_time
    cdef double now = time.monotonic()
    with cython.critical_section(guard):
        if now - last_time < window:
            return False
        last_time = now
    gc.collect()
    return True


cdef int scope_ended() except -1:
    """Collect, if `periodic_gc` is on and the window has passed."""
    if ndx_load_flag(&periodic):
        collect_for_memory()
    return 0


def gc_window(seconds: float | None = None) -> float:
    """Set the minimum time between two collections that ndx starts; return it.

    Parameters
    ----------
    seconds : float, optional
        Seconds, from 0 (the initial value) to infinity (never). None: no change.

    Returns
    -------
    float
        The current value, in seconds.

    Raises
    ------
    ValueError
        If the number is negative or NaN.

    Notes
    -----
    ndx collects only where an allocation fails, before it raises `OutOfMemoryError`,
    and, if `periodic_gc` is on, at the ends of scopes. ND4J's ``setAutoGcWindow``.

    Examples
    --------
    >>> import ndx
    >>> ndx.memory.gc_window(5.0)
    5.0
    >>> ndx.memory.gc_window(0)
    0.0
    """
    global window
    if seconds is not None:
        wanted = float(seconds)
        if not wanted >= 0:
            raise ValueError(
                f"gc_window={seconds!r} is not valid; it is a number of seconds from 0 "
                "on (math.inf: never)")
        with cython.critical_section(guard):
            window = wanted
        return wanted
    return window


def periodic_gc(on: bool | None = None) -> bool:
    """Let the ends of scopes run the cyclic collector; return whether they do.

    Parameters
    ----------
    on : bool, optional
        Whether the end of the outermost scope of a workspace runs the collector, if
        `gc_window` has passed since the last collection. Initially off. None: no
        change.

    Returns
    -------
    bool
        The current setting.

    Raises
    ------
    TypeError
        If `on` is not a bool.

    Notes
    -----
    ND4J's ``togglePeriodicGc``. Python's own collector is not affected.

    Examples
    --------
    >>> import ndx
    >>> ndx.memory.periodic_gc()
    False
    """
    if on is not None:
        if not isinstance(on, bool):
            raise TypeError(f"periodic_gc takes a bool, not {type(on).__name__}")
        ndx_store_flag(&periodic, on)
    return ndx_load_flag(&periodic)
