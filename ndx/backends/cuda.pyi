"""The memory of a GPU."""

from typing import Any, Unpack

from ndx._typing import CudaKeywords
from ndx.backends.pooled import PooledBackend
from ndx.backends.source import Source

__all__ = [
    "CudaBackend",
    "CudaSource",
    "begin_capture",
    "end_capture",
    "replaying_stream",
]

def begin_capture(captured: int, stream: Any, name: str) -> None: ...
def end_capture(captured: int) -> None: ...
def replaying_stream(stream: Any) -> Any: ...

class CudaSource(Source):
    def __init__(self, *, device: int = 0) -> None: ...
    @property
    def index(self) -> int: ...

class CudaBackend(PooledBackend):
    def __init__(self, **options: Unpack[CudaKeywords]) -> None: ...
    @property
    def source(self) -> CudaSource: ...
