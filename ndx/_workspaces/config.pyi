"""The policies of a workspace."""

from os import PathLike
from typing import Literal

__all__ = ["WorkspaceConfig"]

class WorkspaceConfig:
    def __init__(
        self,
        *,
        size: int | str = 0,
        min_size: int | str = 0,
        max_size: int | str | None = None,
        overallocation: float | None = None,
        learn: Literal["first", "over-time", "none", "liveness"] = "first",
        cycles: int = 0,
        spill: Literal["external", "grow", "fail", "mmap", "host"] = "external",
        reset: Literal["scope", "ring"] = "scope",
        slots: int | None = None,
        path: str | bytes | PathLike[str] | PathLike[bytes] | None = None,
        escape: Literal["raise", "detach"] = "raise",
        mirror: Literal["none", "host"] = "none",
        debug: bool = False,
    ) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def min_size(self) -> int: ...
    @property
    def max_size(self) -> int | None: ...
    @property
    def overallocation(self) -> float | None: ...
    @property
    def learn(self) -> Literal["first", "over-time", "none", "liveness"]: ...
    @property
    def cycles(self) -> int: ...
    @property
    def spill(self) -> Literal["external", "grow", "fail", "mmap", "host"]: ...
    @property
    def reset(self) -> Literal["scope", "ring"]: ...
    @property
    def slots(self) -> int | None: ...
    @property
    def path(self) -> str | None: ...
    @property
    def escape(self) -> Literal["raise", "detach"]: ...
    @property
    def mirror(self) -> Literal["none", "host"]: ...
    @property
    def debug(self) -> bool: ...
    @property
    def margin(self) -> float: ...
