"""CUDA's own pool of a GPU's memory."""

from ndx.backends.cuda import CudaSource

__all__ = ["CudaAsyncSource"]

class CudaAsyncSource(CudaSource):
    @property
    def reserved(self) -> int: ...
