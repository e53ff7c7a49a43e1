"""Page-locked memory of the host."""

from typing import Unpack

from ndx._typing import GpuKeywords, PoolKeywords
from ndx.backends.cuda import CudaBackend, CudaSource
from ndx.backends.pooled import PooledBackend

__all__ = ["CudaHostBackend", "HostAllocSource", "PinnedBackend", "PinnedSource"]

class HostAllocSource(CudaSource): ...
class PinnedSource(HostAllocSource): ...

class PinnedBackend(PooledBackend):
    def __init__(self, **options: Unpack[PoolKeywords]) -> None: ...
    @property
    def source(self) -> PinnedSource: ...

class CudaHostBackend(CudaBackend):
    def __init__(self, **options: Unpack[GpuKeywords]) -> None: ...
