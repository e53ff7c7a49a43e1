"""What memory ndx holds: counters of each backend.

Sizes are in bytes. Workspaces count with the backend that their arena is from;
``ndx.workspace(name).stats()`` says what is inside of one.
"""

from ndx._collector import gc_window, periodic_gc
from ndx._context import current_backend
from ndx._workspaces.manager import destroy_all, workspace_summary, workspaces
from ndx._workspaces.registry import debug_mode, default_workspace_config
from ndx.backends import get
from ndx.memory._log import Event
from ndx.memory._trace import Trace, record

__all__ = [
    "Event",
    "Trace",
    "allocated",
    "debug_mode",
    "default_workspace_config",
    "destroy_all",
    "gc_window",
    "periodic_gc",
    "record",
    "reserved",
    "reset_peak",
    "stats",
    "trim",
    "workspace_summary",
    "workspaces",
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
