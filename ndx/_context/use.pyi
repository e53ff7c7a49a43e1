"""What users enter that is no workspace: `ndx.use` and `ndx.no_workspace`."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ndx.backends import Backend

__all__ = ["no_workspace", "use"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

class use:
    backend: Backend
    numpy: bool | None
    def __init__(
        self, backend: str | Backend, /, *, numpy: bool | None = None, **options: Any
    ) -> None: ...
    def __enter__(self) -> Backend: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def __call__(self, function: _Function) -> _Function: ...

class no_workspace:
    def __enter__(self) -> None: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def __call__(self, function: _Function) -> _Function: ...
