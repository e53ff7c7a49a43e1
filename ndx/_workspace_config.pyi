"""The policies of a workspace."""

from typing import Literal

__all__ = ["WorkspaceConfig"]

class WorkspaceConfig:
    def __init__(
        self,
        *,
        size: int | str = 0,
        learn: Literal["first", "none"] = "first",
        overallocation: float = 0.3,
        spill: Literal["external", "fail"] = "external",
    ) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def learn(self) -> Literal["first", "none"]: ...
    @property
    def overallocation(self) -> float: ...
    @property
    def spill(self) -> Literal["external", "fail"]: ...
