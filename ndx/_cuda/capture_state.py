"""Whether this thread captures a graph, or runs a function that it is about to."""

import threading

from ndx.backends._capture_lock import refuse_here

__all__ = ["current", "here", "is_capturing", "refuse"]


class _Here(threading.local):
    notes = None
    capturing = False


here = _Here()


def current():
    """Return the `capture.Notes` of this thread's arrays, or None."""
    return here.notes


def is_capturing():
    """Whether this thread captures a graph."""
    return here.capturing


def refuse(what):
    """Raise DeviceError if this thread is capturing, which can't contain `what`."""
    if here.capturing:
        refuse_here(what)
