"""The counters of a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ndx._context.context import current_backend
from ndx._lib import caches as _caches
from ndx._lib.sizes import parse_size
from ndx.backends import PooledBackend, _budget, _pressure, get

if TYPE_CHECKING:
    from ndx._typing import BackendLike, Size

__all__ = [
    "MemoryInfo",
    "ProcessInfo",
    "allocated",
    "backend_of",
    "caches",
    "empty_cache",
    "info",
    "max_allocated",
    "max_reserved",
    "process_info",
    "reserved",
    "reset_peak",
    "stats",
    "trim",
]


class MemoryInfo(NamedTuple):
    """Bytes of a device, and of a backend on it."""

    free: int | None
    total: int | None
    reserved: int
    allocated: int
    limit: int | None


class ProcessInfo(NamedTuple):
    """Bytes of this process: in memory, and held by all backends of ndx together."""

    resident: int | None
    reserved: int
    peak_reserved: int
    peak_reserved_time: float | None


def process_info() -> ProcessInfo:
    """Return what this process has in memory, and what all backends hold of that.

    Returns
    -------
    ProcessInfo
        ``resident``: all that counts for ``ndx.memory.set_limit(process=...)``, as the
        system says now (None: it does not tell); ``reserved``: what counts for the
        limit of ndx, without files; ``peak_reserved``: the most that this has been;
        ``peak_reserved_time``: when, in seconds since 1970 (None: never).

    Examples
    --------
    >>> import ndx
    >>> info = ndx.memory.process_info()
    >>> info.peak_reserved >= info.reserved
    True
    """
    return ProcessInfo(
        _budget.resident_nbytes() or None,
        _budget.process_reserved(),
        *_budget.process_peak(),
    )


def backend_of(backend):
    """Return a backend by its name; the current one for None."""
    return current_backend() if backend is None else get(backend)


def stats(backend: BackendLike | None = None) -> dict[str, int | float | None]:
    """Return the counters of a backend.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: the current one.

    Returns
    -------
    dict
        ``allocated_bytes`` and ``allocated_count`` (live ranges), ``peak_bytes`` and
        ``peak_count`` (the most of each, with several threads at most these),
        ``total_allocations`` and ``total_bytes`` (of all requests since the start);
        ``reserved_bytes`` (held from the system, idle ones included),
        ``peak_reserved_bytes``, ``system_allocations``, ``system_frees``; ``limit``
        (None: none); ``peak_time`` and ``peak_reserved_time`` (when the peaks of bytes
        were set, in seconds since 1970; None: not known). For a backend with a pool,
        also the items of `ndx.backends.PooledBackend.stats` and ``events``, explained
        there. How often memory was short, and what helped:
        `ndx.backends.Backend.relief`.

    Examples
    --------
    >>> import ndx
    >>> before = ndx.memory.stats()["allocated_bytes"]
    >>> x = ndx.zeros(1000)
    >>> ndx.memory.stats()["allocated_bytes"] - before
    8000
    """
    found = backend_of(backend)
    counters = found.stats() | found.relief()
    return counters | found.events() if isinstance(found, PooledBackend) else counters


def allocated(backend: BackendLike | None = None) -> int:
    """Return the bytes of live arrays, and of workspaces' arenas, of a backend.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: the current one.
    """
    return backend_of(backend).stats()["allocated_bytes"]


def reserved(backend: BackendLike | None = None) -> int:
    """Return the bytes that a backend holds from the system, idle ones included.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: the current one.
    """
    return backend_of(backend).stats()["reserved_bytes"]


def max_allocated(backend: BackendLike | None = None) -> int:
    """Return the peak of allocated bytes since `reset_peak`.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: the current one.
    """
    return backend_of(backend).stats()["peak_bytes"]


def max_reserved(backend: BackendLike | None = None) -> int:
    """Return the peak of bytes held from the system since `reset_peak`.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: the current one.
    """
    return backend_of(backend).stats()["peak_reserved_bytes"]


def reset_peak(backend: BackendLike | None = None) -> None:
    """Reset the peaks of a backend to the present bytes.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: the current one.
    """
    backend_of(backend).reset_peak()


def trim(backend: BackendLike | None = None, *, target: Size = 0) -> int:
    """Give a backend's idle memory back to the system; return the bytes.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: the current one.
    target : int or str, default 0
        Bytes at which to stop, for a backend with a pool: no more than that is held
        then, if so much is idle.

    Notes
    -----
    The arenas of closed workspaces are idle memory, and go last; their next cycles take
    them again. `initial` and `reserve` set no memory aside beyond `target` any more.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use(ndx.backends.HostBackend()) as backend:
    ...     x = ndx.ones(1_000_000)
    ...     del x
    ...     released = ndx.memory.trim(target="1MiB")
    >>> ndx.memory.reserved(backend) <= 2**20
    True
    """
    found = backend_of(backend)
    pool = _pressure.innermost(found)
    nbytes = parse_size(target, "target")
    if not _pressure.is_pool(pool):
        if nbytes:
            msg = f"{found!r} has no pool, so that it can't be trimmed to a target"
            raise TypeError(msg)
        _pressure.release_idle_arenas(pool)
        return found.trim()
    if nbytes:
        released = pool.trim(nbytes)
        arenas = _pressure.idle_arenas(pool)
        while arenas and pool.stats()["reserved_bytes"] > nbytes:
            arenas.pop().release()
            released += pool.trim(nbytes)
        return released
    _pressure.release_idle_arenas(pool)
    return pool.trim()


def empty_cache(backend: BackendLike | None = None) -> int:
    """Give idle memory back: of one backend or, for None, of all backends.

    The arenas of closed workspaces are idle memory, too. For None, the caches that
    `caches` lists are emptied as well.

    Returns
    -------
    int
        Bytes given back, those of `caches` not counted.
    """
    if backend is not None:
        return trim(backend)
    _caches.empty_all()
    _pressure.release_idle_arenas()
    return sum(each.trim() for each in _pressure.live_pools())


def caches() -> dict[str, dict[str, int | None]]:
    """Return what the package itself keeps for reuse, apart from the memory of pools.

    Returns
    -------
    dict
        For each free list and cache: ``entries``; ``nbytes`` that they take (0: they
        are objects of Python, such as signatures of functions); ``most``, the bound on
        the entries (None: a few for each pool).

    Notes
    -----
    `empty_cache` empties them all. Without the GIL the lists of array objects and of
    blocks stay empty: the allocators beneath them have a part for each thread.

    Examples
    --------
    >>> import ndx
    >>> kept = ndx.memory.caches()["array objects"]
    >>> kept["entries"] <= kept["most"]
    True
    """
    found = {}
    for name, each in sorted(_caches.known.items()):
        entries, nbytes = each.read()
        found[name] = {"entries": entries, "nbytes": nbytes, "most": each.most}
    return found


def info(backend: BackendLike | None = None) -> MemoryInfo:
    """Return the memory of a backend's device, and the backend's part of it.

    Returns
    -------
    MemoryInfo
        ``free`` and ``total`` of the device (None if unknown; for the machine's
        memory, the part that the process's control groups allow), ``reserved`` and
        ``allocated`` by the backend, its ``limit``.

    Examples
    --------
    >>> import ndx
    >>> memory = ndx.memory.info("host")
    >>> memory.reserved >= memory.allocated
    True
    """
    found = backend_of(backend)
    counters = found.stats()
    return MemoryInfo(
        *found.memory_info(),
        counters["reserved_bytes"],
        counters["allocated_bytes"],
        found.limit,
    )
