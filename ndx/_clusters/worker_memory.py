"""A worker's own backend, with a limit, and what makes room below it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from distributed import Worker, WorkerPlugin
from tornado.ioloop import PeriodicCallback

import ndx
from ndx import backends
from ndx._lib.sizes import parse_limit
from ndx._lib.system import (
    bound_memory_for_pages,
    in_memory_file_system,
    machine_memory,
)
from ndx.memory import (
    FailureCallbackAdaptor,
    default_workspace_config,
    limits,
    process_info,
    set_limit,
)

if TYPE_CHECKING:
    from typing import Any

    from ndx._typing import BackendLike, Size

__all__ = ["WorkerMemory", "active"]

# The rest is for Python, for other libraries, and for data on its way.
_DEFAULT_LIMIT = "50%"

_OF_HOST = ("host", "pinned")

# distributed ends a process whose resident memory exceeds its limit, and pages of the
# fallback's files are resident while they are used: the part that passes leave there.
_PART_FOR_PAGES = 16

# Above this part of its memory, a worker's idle memory goes back: distributed writes
# results to disk, and begins no new tasks, by what the process has, and with no task no
# request comes that would release it.
_PART_FOR_IDLE = 0.6
_MILLISECONDS = 100

# Arrays take no more memory above this part of the worker's, whoever has taken it. What
# is left below distributed's pause (80 %) and end (95 %) is for what comes between two
# requests: the bytes of a result that is read from disk, temporaries of NumPy.
_PART_FOR_PROCESS = 0.7

# The part that arrays may have even if others have taken all of that. Small arrays are
# then still in memory, and not in files.
_PART_AT_LEAST = 16

# The plugin of this process's worker. The default backend is that of the process, so
# that there can be only one.
_active: WorkerMemory | None = None


def active() -> WorkerMemory | None:
    """Return the plugin that is set up in this process."""
    return _active


class WorkerMemory(WorkerPlugin):
    """Give each worker of distributed a backend of its own, with a limit.

    It is registered by ``client.register_plugin(WorkerMemory(...))``, or given to
    ``distributed.Worker`` as one of its ``plugins``. Workers that join or are restarted
    later get theirs, too.

    Parameters
    ----------
    backend : str, default "host"
        The kind of memory of the worker's arrays: the default backend of its process,
        and so of all of its threads.
    limit : int or str, optional
        The most memory of one worker for arrays. A percentage is a part of the worker's
        ``memory_limit``. Default: 50 % of that for ``"host"`` and ``"pinned"``; without
        a ``memory_limit``, and for GPUs, the default of the backend.
    fallback : str or None, default "mmap"
        The backend of what does not fit below the limit when all chunks that can be
        written to disk have been: the arrays that the running tasks use. For
        ``"mmap"`` they are in files in `directory`. None: these tasks fail with
        `ndx.OutOfMemoryError`. GPUs have none.
    directory : str, optional
        The folder for the fallback's files. Default: the worker's ``local_directory``,
        or if that is in memory (tmpfs), that of the backend.
    numpy : bool, optional
        Whether NumPy's arrays that tasks make are on the backend, too, as by
        `ndx.set_default`.
    workspaces : ndx.WorkspaceConfig, optional
        The policies of workspaces that tasks enter without policies of their own, as
        by `ndx.memory.default_workspace_config`.
    **options
        More options of the backend.

    Raises
    ------
    ValueError, TypeError
        If an option is not valid. What depends on the worker is checked when it is set
        up: ``register_plugin`` raises what the worker raised.
    RuntimeError
        When it is set up, if another worker of the same process has one:
        ``LocalCluster(processes=False)``.

    Notes
    -----
    When a new array would exceed the limit, the worker's oldest chunks are written to
    disk in the way of distributed (``worker.data.evict``), until there is room. They
    are read again when a task needs them. Without a ``memory_limit``, distributed
    writes no chunks to disk, and only the fallback serves beyond the limit.

    distributed looks at the resident memory of the process, pages of files included.
    Above 60 % of the ``memory_limit``, idle memory of the backend goes back to the
    system within a tenth of a second. Above 70 % arrays get no more memory, as if the
    limit were reached, by a limit as of ``ndx.memory.set_limit(process=...)`` (on Linux
    only); a lower one that is set there stays. However much others have, arrays may
    have a sixteenth of the ``memory_limit``.

    Each request of memory passes through Python, which costs about a microsecond. In
    tasks with many small arrays, a workspace saves that.

    Examples
    --------
    >>> import ndx
    >>> from distributed import Client
    >>> from ndx.distributed import WorkerMemory
    >>> with Client(
    ...     n_workers=1, processes=False, memory_limit="1GiB", dashboard_address=":0"
    ... ) as client:
    ...     _ = client.register_plugin(WorkerMemory(limit="25%"))
    ...     client.submit(lambda: ndx.current_backend().upstream.limit).result()
    268435456
    """

    name = "ndx"

    def __init__(
        self,
        backend: str = "host",
        *,
        limit: Size | None = None,
        fallback: str | None = "mmap",
        directory: str | os.PathLike[str] | None = None,
        numpy: bool | None = None,
        workspaces: ndx.WorkspaceConfig | None = None,
        **options: Any,
    ):
        self.backend = backend
        self.limit = limit
        self.fallback = fallback
        self.directory = None if directory is None else os.fspath(directory)
        self.numpy = numpy
        self.workspaces = workspaces
        self.options = options
        if limit is not None:
            parse_limit(limit)
        if workspaces is not None and not isinstance(workspaces, ndx.WorkspaceConfig):
            msg = (
                "workspaces must be an ndx.WorkspaceConfig, not "
                f"{type(workspaces).__name__}"
            )
            raise TypeError(msg)
        self.evicted_count = 0
        self.evicted_bytes = 0

    def setup(self, worker: Worker) -> None:
        """Make the backend the default of the worker's process."""
        global _active
        if _active is not None:
            msg = (
                f"this process already has a worker with a memory of its own, "
                f"{_active.worker.address}; the default backend is that of the process:"
                " start workers as processes (LocalCluster(processes=True))"
            )
            raise RuntimeError(msg)
        self.pool = self._make_pool(worker)
        self.worker = worker
        self._before = ndx.current_backend(), default_workspace_config()
        self._bound = None  # of the process, as set last; and what others have set
        self._bound_of_others = None
        _active = self
        try:
            self._change(worker)
        except BaseException:
            self.teardown(worker)
            raise

    def _change(self, worker):
        """Change the defaults of the process, and what distributed's limits ask for."""
        total = worker.memory_manager.memory_limit
        bound_memory_for_pages(total // _PART_FOR_PAGES if total else None)
        if total and self.backend in _OF_HOST:
            callback = PeriodicCallback(self._look, _MILLISECONDS)
            worker.periodic_callbacks[self.name] = callback
            callback.start()
            self._bound_process()
        adaptor = FailureCallbackAdaptor(self.pool, self._evict, times=2**31 - 1)
        ndx.set_default(adaptor, numpy=self.numpy)
        if self.workspaces is not None:
            default_workspace_config(self.workspaces)

    def teardown(self, worker: Worker) -> None:
        """Restore what was the default before."""
        global _active
        if _active is not self:
            return
        backend, config = self._before
        ndx.set_default(backend, numpy=None if self.numpy is None else False)
        default_workspace_config(config)
        bound_memory_for_pages(None)
        if self._bound is not None and limits().get("process") == self._bound:
            set_limit(process=self._bound_of_others)
        if self.name in worker.periodic_callbacks:
            worker.periodic_callbacks.pop(self.name).stop()
        _active = None

    def _make_pool(self, worker):
        """Return the backend for a worker."""
        options = dict(self.options)
        of_host = self.backend in _OF_HOST
        limit = self.limit
        total = worker.memory_manager.memory_limit
        if limit is None and of_host and total:
            limit = _DEFAULT_LIMIT
        if limit is not None:
            if of_host and total:
                limit = parse_limit(limit, total)
            options["limit"] = limit
        if self.fallback is not None and of_host:
            options["fallback"] = self._make_fallback(worker)
        return backends.get(self.backend, **options)

    def _make_fallback(self, worker) -> BackendLike:
        if self.fallback != "mmap":
            return self.fallback
        directory = self.directory or os.environ.get("NDX_MMAP_DIRECTORY")
        if directory is None and in_memory_file_system(worker.local_directory) is None:
            directory = worker.local_directory
        found = backends.get("mmap", directory=directory)
        kind = in_memory_file_system(found.directory)
        if kind is not None:
            msg = (
                f"{found.directory!r} is in memory itself ({kind}), and can't take "
                "what exceeds a limit on memory: give a folder on a disk by "
                "directory=, or let fallback be None"
            )
            raise ValueError(msg)
        return found

    def _look(self):
        """Compare the memory of the process with what distributed allows it."""
        self._release_idle()
        self._bound_process()

    def _bound_process(self):
        """Limit the memory of the process to what distributed's limit leaves now.

        distributed counts pages of files, which change, and ndx's limit on the process
        doesn't: the limit is what the process has now, and what is left.
        """
        info = process_info()
        if info.resident is None:  # the system does not tell
            return
        total = self.worker.memory_manager.memory_limit
        present = self.worker.monitor.get_process_memory()
        at_least = info.resident - info.reserved + total // _PART_AT_LEAST
        most = max(info.resident + int(_PART_FOR_PROCESS * total) - present, at_least)
        known = limits().get("process")
        if known != self._bound:
            self._bound_of_others = known
        if self._bound_of_others is not None:
            most = min(most, self._bound_of_others)
        self._bound = max(0, min(most, machine_memory()))
        set_limit(process=self._bound)

    def _release_idle(self):
        """Give idle memory back to the system, if the process has much of its own."""
        present = self.worker.monitor.get_process_memory()
        most = _PART_FOR_IDLE * self.worker.memory_manager.memory_limit
        if present > most:
            held = self.pool.stats()["reserved_bytes"]
            self.pool.trim(target=max(0, held - int(present - most)))

    def _evict(self, nbytes):
        """Write the worker's oldest chunks to disk; return whether any was written.

        The lock is that of ``worker.data``. Another one around it would be taken in the
        other order by the event loop, whose reading from disk makes arrays, too.
        """
        data = self.worker.data
        freed = 0
        while freed < nbytes and getattr(data, "fast", None):
            try:
                weight = data.evict()
            except KeyError:  # other threads have evicted the last one
                break
            if weight < 0:  # the disk is full, or it can't be pickled
                break
            freed += weight
            self.evicted_count += 1
            self.evicted_bytes += weight
        return freed > 0
