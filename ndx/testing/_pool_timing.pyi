"""C loops around a pool and around ``malloc``, for benchmarks."""

from ndx.backends.base import Backend

__all__ = ["time_malloc", "time_pool"]

def time_pool(backend: Backend, nbytes: int, count: int) -> float: ...
def time_malloc(nbytes: int, count: int) -> float: ...
