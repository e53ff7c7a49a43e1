"""Memory in files that a GPU reads and writes by itself."""

from os import PathLike

from ndx.backends.cuda import CudaBackend, CudaSource
from ndx.backends.pooled import PooledBackend

__all__ = ["CudaFileSource", "CudaMmapBackend"]

class CudaFileSource(CudaSource):
    def __init__(
        self, *, device: int = 0, directory: str | PathLike[str] | None = None
    ) -> None: ...
    @property
    def directory(self) -> str: ...

class CudaMmapBackend(CudaBackend):
    def __init__(
        self,
        *,
        device: int = 0,
        directory: str | PathLike[str] | None = None,
        limit: int | str | None = None,
        pool: str = "split",
        initial: int | str | None = None,
        idle_release: float | None = 30.0,
        reserve_fraction: float = 0.0,
        fallback: str | PooledBackend | None = None,
        cutoff: int | None = None,
    ) -> None: ...
    @property
    def source(self) -> CudaFileSource: ...
    @property
    def directory(self) -> str: ...
