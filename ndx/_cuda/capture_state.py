"""Whether this thread captures a graph, or runs the warm-up call before it."""

import threading

from ndx.backends._capture_lock import refuse_here

__all__ = ["current", "here", "is_capturing", "refuse"]


class _Here(threading.local):
    notes = None
    capturing = False


here = _Here()


def current():
    """Return this thread's `capture.Notes`, or None."""
    return here.notes


def is_capturing():
    """Whether this thread captures a graph."""
    return here.capturing


def refuse(what):
    """Raise DeviceError if this thread is capturing, which can't contain `what`."""
    if here.capturing:
        refuse_here(what)
