"""What memory ndx holds: counters of each backend.

Sizes are in bytes. Workspaces count with the backend that their arena is from;
``ndx.workspace(name).stats()`` says what is inside of one.
"""

from ndx._budget import process_limit as limit
from ndx._budget import set_process_limit as set_limit
from ndx._context import current_backend
from ndx.backends import get

__all__ = [
    "allocated",
    "limit",
    "reserved",
    "reset_peak",
    "set_limit",
    "stats",
    "trim",
]


def _backend(backend):
    return current_backend() if backend is None else get(backend)


def stats(backend=None):
    """Return the counters of a backend.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: the current one.

    Returns
    -------
    dict
        ``allocated_bytes`` and ``allocated_count`` (live ranges), ``peak_bytes``,
        ``total_allocations``; ``reserved_bytes`` (held from the system, idle ones
        included), ``peak_reserved_bytes``, ``system_allocations``,
        ``system_frees``; ``limit`` (None: none).

    Examples
    --------
    >>> import ndx
    >>> before = ndx.memory.stats()["allocated_bytes"]
    >>> x = ndx.zeros(1000)
    >>> ndx.memory.stats()["allocated_bytes"] - before
    8000
    """
    return _backend(backend).stats()


def allocated(backend=None):
    """Return the bytes of live arrays and arenas of a backend."""
    return stats(backend)["allocated_bytes"]


def reserved(backend=None):
    """Return the bytes that a backend holds from the system."""
    return stats(backend)["reserved_bytes"]


def reset_peak(backend=None):
    """Let the peaks of a backend start again from what is held now."""
    _backend(backend).reset_peak()


def trim(backend=None):
    """Give a backend's idle memory back to the system; return the bytes."""
    return _backend(backend).trim()
