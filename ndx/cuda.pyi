from collections.abc import Callable
from typing import ParamSpec, TypeVar, overload

from ndx._typing import Graph

__all__ = ["graph"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

@overload
def graph(function: Callable[_P, _R], /, *, max_graphs: int = ...) -> Graph[_P, _R]: ...
@overload
def graph(
    function: None = ..., /, *, max_graphs: int = ...
) -> Callable[[Callable[_P, _R]], Graph[_P, _R]]: ...
