"""What each worker of a cluster has used, counted by ndx and by the system."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from distributed import Client

import ndx
from ndx._clusters.worker_memory import active
from ndx._lib.sizes import format_size
from ndx._lib.system import peak_resident_memory
from ndx._lib.tables import Table

if TYPE_CHECKING:
    from distributed import Worker

__all__ = ["MemoryReport", "WorkerReport", "memory_report"]


class WorkerReport(NamedTuple):
    """The memory of one worker, in bytes.

    Attributes
    ----------
    name : str
        The worker's name in the cluster.
    address : str
    pid : int
    limit : int or None
        Of the worker's arrays; None without one.
    allocated_bytes, peak_bytes : int
        Held for arrays below the limit now, and at most so far: what counts towards it.
    evicted_count, evicted_bytes : int
        Results that were written to disk so far, to make room for arrays.
    spilled_bytes : int
        Results that are on disk now, for this reason or by distributed's own decision.
    fallback_peak_bytes : int
        In files of the fallback, at most so far.
    memory_limit : int or None
        What distributed allows the process.
    peak_resident_bytes : int
        The most memory that the process has had, as the system says. Python, all
        libraries and the resident pages of mapped files count.
    """

    name: str
    address: str
    pid: int
    limit: int | None
    allocated_bytes: int
    peak_bytes: int
    evicted_count: int
    evicted_bytes: int
    spilled_bytes: int
    fallback_peak_bytes: int
    memory_limit: int | None
    peak_resident_bytes: int


class MemoryReport(tuple[WorkerReport, ...]):
    """A `WorkerReport` for each worker; printed as a table, in a notebook as HTML."""

    def table(self) -> Table:
        """Return the report as a table."""
        return Table("Memory of the workers", _HEADER, [_row(each) for each in self])

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


_HEADER = (
    "worker",
    "limit",
    "peak",
    "evicted",
    "on disk",
    "in files",
    "process limit",
    "process peak",
)


def _row(worker: WorkerReport) -> list[str]:
    sizes = (
        worker.limit,
        worker.peak_bytes,
        worker.evicted_bytes,
        worker.spilled_bytes,
        worker.fallback_peak_bytes,
        worker.memory_limit,
        worker.peak_resident_bytes,
    )
    return [worker.name, *("-" if n is None else format_size(n) for n in sizes)]


def memory_report(
    client: Client, workers: Iterable[str] | None = None
) -> MemoryReport | Awaitable[MemoryReport]:
    """Return what each worker has used.

    Parameters
    ----------
    client : distributed.Client
        With an asynchronous one, the report is to be awaited.
    workers : iterable of str, optional
        Addresses. Default: all workers.

    Returns
    -------
    MemoryReport
        By the names of the workers. A worker that was restarted is a new one: what the
        old one used is lost.

    Raises
    ------
    TypeError
        If `client` is no client.

    Examples
    --------
    >>> from distributed import Client
    >>> from ndx.distributed import memory_report
    >>> with Client(
    ...     n_workers=1, processes=False, memory_limit="1GiB", dashboard_address=":0"
    ... ) as client:
    ...     report = memory_report(client)
    >>> report[0].memory_limit, report[0].evicted_bytes
    (1073741824, 0)
    """
    if not isinstance(client, Client):
        msg = f"client must be a distributed.Client, not {type(client).__name__}"
        raise TypeError(msg)
    asked = None if workers is None else list(workers)
    found = client.run(report_of, workers=asked)
    return _when_here(found) if client.asynchronous else _report(found)


async def _when_here(found: Awaitable[dict[str, WorkerReport]]) -> MemoryReport:
    return _report(await found)


def _report(found: dict[str, WorkerReport]) -> MemoryReport:
    rows = sorted(found.values(), key=lambda each: (len(each.name), each.name))
    return MemoryReport(rows)


def report_of(dask_worker: Worker) -> WorkerReport:
    """Return the report of the worker in this process.

    distributed gives the worker to a parameter of this name.
    """
    plugin = active()
    pool = ndx.current_backend() if plugin is None else plugin.pool
    stats = pool.stats()
    fallback = getattr(pool, "fallback", None)
    spilled = getattr(dask_worker.data, "spilled_total", None)
    return WorkerReport(
        name=str(dask_worker.name),
        address=dask_worker.address,
        pid=os.getpid(),
        limit=pool.limit,
        allocated_bytes=stats["reserved_bytes"],
        peak_bytes=stats["peak_reserved_bytes"],
        evicted_count=0 if plugin is None else plugin.evicted_count,
        evicted_bytes=0 if plugin is None else plugin.evicted_bytes,
        spilled_bytes=0 if spilled is None else spilled.disk,
        fallback_peak_bytes=0 if fallback is None else fallback.stats()["peak_bytes"],
        memory_limit=dask_worker.memory_manager.memory_limit,
        peak_resident_bytes=peak_resident_memory(),
    )
