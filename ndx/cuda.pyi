from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar, overload

__all__ = ["graph"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

class _Graph(Generic[_P, _R]):
    __wrapped__: Callable[_P, _R]
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def stats(self) -> dict[str, int]: ...
    def reset(self) -> None: ...

@overload
def graph(function: Callable[_P, _R], /, *, max_graphs: int = ...) -> _Graph[_P, _R]: ...
@overload
def graph(
    function: None = ..., /, *, max_graphs: int = ...
) -> Callable[[Callable[_P, _R]], _Graph[_P, _R]]: ...
