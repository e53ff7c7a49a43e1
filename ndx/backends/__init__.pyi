"""The kinds of memory that arrays can live in, by name."""

from collections.abc import Callable
from typing import Any

from ndx.backends.base import Backend as Backend
from ndx.backends.buffer import Buffer as Buffer
from ndx.backends.cuda import CudaBackend as CudaBackend
from ndx.backends.cuda_async import CudaAsyncSource as CudaAsyncSource
from ndx.backends.cuda_mmap import CudaMmapBackend as CudaMmapBackend
from ndx.backends.host import HostBackend as HostBackend
from ndx.backends.mmap import MmapBackend as MmapBackend
from ndx.backends.pinned import CudaHostBackend as CudaHostBackend
from ndx.backends.pinned import PinnedBackend as PinnedBackend
from ndx.backends.pooled import PooledBackend as PooledBackend
from ndx.backends.python import PythonBackend as PythonBackend
from ndx.backends.python_source import PythonSource as PythonSource
from ndx.backends.simulated import SimulatedBackend as SimulatedBackend
from ndx.backends.source import Source as Source

__all__ = [
    "Backend",
    "Buffer",
    "CudaAsyncSource",
    "CudaBackend",
    "CudaHostBackend",
    "CudaMmapBackend",
    "HostBackend",
    "MmapBackend",
    "PinnedBackend",
    "PooledBackend",
    "PythonBackend",
    "PythonSource",
    "SimulatedBackend",
    "Source",
    "available",
    "get",
    "register",
    "unregister",
]

def available() -> list[str]: ...
def register(name: str, factory: Callable[..., Backend]) -> None: ...
def unregister(name: str) -> None: ...
def get(backend: str | Backend, **options: Any) -> Backend: ...
