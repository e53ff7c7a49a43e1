"""Which backend serves new arrays, for this thread or task, now."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ndx.backends import Backend

__all__ = ["no_workspace", "set_default", "use"]

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

def set_default(backend: str | Backend, /, **options: Any) -> Backend: ...
