"""The memory of distributed's workers, when their chunks are NDArrays.

WorkerMemory     a plugin: a backend with a limit, and workspaces, for each worker
memory_report    what each worker has used, counted by ndx and by the system

NDArrays are registered with distributed without this module, when it is imported.

Examples
--------
>>> from distributed import Client, LocalCluster
>>> from ndx.distributed import WorkerMemory, memory_report
>>> with LocalCluster(n_workers=2, memory_limit="1GiB") as cluster:  # doctest: +SKIP
...     with Client(cluster) as client:
...         client.register_plugin(WorkerMemory())
...         ...
...         print(memory_report(client))
"""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "ndx.distributed needs distributed, which is not installed: pip install "
        "'ndxarray[distributed]'",
        name="distributed",
    ) from _error

from ndx._clusters.reports import MemoryReport, WorkerReport, memory_report
from ndx._clusters.worker_memory import WorkerMemory

__all__ = ["MemoryReport", "WorkerMemory", "WorkerReport", "memory_report"]

# Users see, and pickles name, the public address.
for _name in __all__:
    globals()[_name].__module__ = __name__


def __dir__() -> list[str]:
    return __all__
