"""The memory of a GPU."""

from ndx._source import Source
from ndx.backends.pooled import PooledBackend

__all__ = ["CudaBackend", "CudaSource", "allow_allocation"]

def allow_allocation(allowed: bool) -> None: ...

class CudaSource(Source):
    def __init__(self, *, device: int = 0) -> None: ...
    @property
    def index(self) -> int: ...

class CudaBackend(PooledBackend):
    def __init__(
        self,
        *,
        device: int = 0,
        limit: int | str | None = None,
        source: str = "pool",
        pool: str = "split",
        initial: int | str | None = None,
        idle_release: float | None = 30.0,
        reserve_fraction: float = 0.0,
        fallback: str | PooledBackend | None = None,
    ) -> None: ...
    @property
    def source(self) -> CudaSource: ...
