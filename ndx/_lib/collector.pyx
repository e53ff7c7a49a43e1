"""When ndx starts Python's cyclic collector: never on a hot path.

Arrays are freed by reference counting. A collection frees only what hangs on cycles of
other objects, and costs time in proportion to all objects that live, so it is the last
resort of a failing allocation. Programs that want it at the ends of scopes, as ND4J's
periodic collections, ask for it.
"""

import gc
import math
import time

__all__ = ["gc_window", "periodic_gc"]

cdef double window = 0.0
cdef bint periodic = False
cdef double last_time = -math.inf


cdef int collect(double now) except -1:
    global last_time
    gc.collect()
    last_time = now
    return 0


cdef int collect_for_memory() except -1:
    """Collect, because memory is short; unless the last time was just before.

    Returns whether it did.
    """
    cdef double now = time.monotonic()
    if now - last_time < window:
        return False
    collect(now)
    return True


cdef int scope_ended() except -1:
    """Collect, if the program asked for it and the window has passed."""
    cdef double now
    if not periodic:
        return 0
    now = time.monotonic()
    if now - last_time >= window:
        collect(now)
    return 0


def gc_window(seconds: float | None = None) -> float:
    """Set the least time between two collections that ndx starts; return it.

    Parameters
    ----------
    seconds : float, optional
        Seconds, from 0 (at first) to infinity (never). None: leave it as it is.

    Returns
    -------
    float
        The seconds that hold now.

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
        window = wanted
    return window


def periodic_gc(on: bool | None = None) -> bool:
    """Let scopes that end run the cyclic collector; return whether they do.

    Parameters
    ----------
    on : bool, optional
        Whether the end of the outermost scope of a workspace runs the collector, if
        `gc_window` has passed since the last time. At first it does not. None: leave
        it as it is.

    Returns
    -------
    bool
        What holds now.

    Raises
    ------
    TypeError
        If it is no bool.

    Notes
    -----
    ND4J's ``togglePeriodicGc``. Python's own collector is not affected.

    Examples
    --------
    >>> import ndx
    >>> ndx.memory.periodic_gc()
    False
    """
    global periodic
    if on is not None:
        if not isinstance(on, bool):
            raise TypeError(f"periodic_gc takes a bool, not {type(on).__name__}")
        periodic = on
    return periodic
