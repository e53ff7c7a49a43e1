"""How passes over arrays in files are made, for this thread or task, now."""

from collections.abc import Callable
from types import TracebackType
from typing import Any

__all__ = ["passes"]

class passes:
    def __init__(
        self,
        *,
        progress: Callable[[int, int, str], Any] | None = None,
        block: int | str | None = None,
        threads: int | None = None,
        threshold: int | str | None = None,
        memory: int | str | None = None,
    ) -> None: ...
    def __enter__(self) -> passes: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
