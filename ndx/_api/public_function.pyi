"""What a function of the namespace is: a call, a public name, and a telling error."""

from collections.abc import Callable
from typing import Any, final

__all__ = ["Function"]

@final
class Function:
    def __init__(
        self, function: Callable[..., Any], name: str, module: str
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type) -> Any: ...
