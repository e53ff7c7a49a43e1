"""Memory of the host."""

from ndx.backends.pooled import PooledBackend
from ndx.backends.source import Source

__all__ = ["HostBackend", "HostSource"]

class HostSource(Source): ...

class HostBackend(PooledBackend):
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
