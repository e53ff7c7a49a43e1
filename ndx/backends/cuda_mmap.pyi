"""Memory in files that a GPU reads and writes by itself."""

from os import PathLike
from typing import Unpack

from ndx._typing import CudaMmapKeywords
from ndx.backends.cuda import CudaBackend, CudaSource

__all__ = ["CudaFileSource", "CudaMmapBackend"]

class CudaFileSource(CudaSource):
    def __init__(
        self, *, device: int = 0, directory: str | PathLike[str] | None = None
    ) -> None: ...
    @property
    def directory(self) -> str: ...

class CudaMmapBackend(CudaBackend):
    def __init__(self, **options: Unpack[CudaMmapKeywords]) -> None: ...
    @property
    def source(self) -> CudaFileSource: ...
    @property
    def directory(self) -> str: ...
