"""Memory in files: arrays that are larger than the machine's own."""

from os import PathLike
from typing import Unpack

from ndx._typing import MmapKeywords
from ndx.backends.pooled import PooledBackend
from ndx.backends.source import Source

__all__ = ["FileSource", "MmapBackend"]

class FileSource(Source):
    directory: str
    def __init__(self, directory: str | PathLike[str]) -> None: ...

class MmapBackend(PooledBackend):
    def __init__(self, **options: Unpack[MmapKeywords]) -> None: ...
    @property
    def directory(self) -> str: ...
