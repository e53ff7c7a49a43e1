"""Memory in files: arrays that are larger than the machine's own."""

from os import PathLike

from ndx.backends.pooled import PooledBackend
from ndx.backends.source import Source

__all__ = ["FileSource", "MmapBackend"]

class FileSource(Source):
    directory: str
    def __init__(self, directory: str | PathLike[str]) -> None: ...

class MmapBackend(PooledBackend):
    def __init__(
        self,
        *,
        directory: str | PathLike[str] | None = None,
        limit: int | str | None = None,
        keep_idle: int | str = "256MiB",
        pool: str = "split",
        initial: int | str | None = None,
        idle_release: float | None = 30.0,
        reserve_fraction: float = 0.0,
        fallback: str | PooledBackend | None = None,
        cutoff: int | None = None,
    ) -> None: ...
    @property
    def directory(self) -> str: ...
