"""Memory of the host."""

from typing import Unpack

from ndx._typing import PoolKeywords
from ndx.backends.pooled import PooledBackend
from ndx.backends.source import Source

__all__ = ["HostBackend", "HostSource"]

class HostSource(Source): ...

class HostBackend(PooledBackend):
    def __init__(self, **options: Unpack[PoolKeywords]) -> None: ...
