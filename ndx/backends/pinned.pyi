"""Page-locked memory of the host."""

from ndx.backends.cuda import CudaBackend, CudaSource
from ndx.backends.pooled import PooledBackend

__all__ = ["CudaHostBackend", "HostAllocSource", "PinnedBackend", "PinnedSource"]

class HostAllocSource(CudaSource): ...
class PinnedSource(HostAllocSource): ...

class PinnedBackend(PooledBackend):
    def __init__(
        self,
        *,
        limit: int | str | None = None,
        pool: str = "split",
        initial: int | str | None = None,
        idle_release: float | None = 30.0,
        reserve_fraction: float = 0.0,
        fallback: str | PooledBackend | None = None,
        cutoff: int | None = None,
    ) -> None: ...
    @property
    def source(self) -> PinnedSource: ...

class CudaHostBackend(CudaBackend):
    def __init__(
        self,
        *,
        device: int = 0,
        limit: int | str | None = None,
        pool: str = "split",
        initial: int | str | None = None,
        idle_release: float | None = 30.0,
        reserve_fraction: float = 0.0,
        fallback: str | PooledBackend | None = None,
        cutoff: int | None = None,
    ) -> None: ...
