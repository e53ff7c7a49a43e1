"""A device that is not there."""

from typing import Unpack

from ndx._typing import SimulatedKeywords
from ndx.backends.pooled import PooledBackend
from ndx.backends.source import Source

__all__ = ["SimulatedBackend", "SimulatedSource"]

class SimulatedSource(Source):
    fail_at: set[int]
    broken: bool
    latency: float
    waits: list[tuple[int, int, int]]
    @property
    def capacity(self) -> int: ...
    @property
    def held(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def synchronizations(self) -> int: ...
    @property
    def live_events(self) -> int: ...
    def submit(self, stream: int, units: int = 1) -> None: ...
    def finish(self, stream: int) -> None: ...

class SimulatedBackend(PooledBackend):
    def __init__(self, **options: Unpack[SimulatedKeywords]) -> None: ...
    @property
    def source(self) -> SimulatedSource: ...
