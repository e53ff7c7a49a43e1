"""The kinds of memory that arrays can live in, by name."""

from collections.abc import Callable
from typing import Any

from ndx.backends.base import Backend as Backend
from ndx.backends.python import PythonBackend as PythonBackend

__all__ = ["Backend", "PythonBackend", "available", "get", "register", "unregister"]

def available() -> list[str]: ...
def register(name: str, factory: Callable[..., Backend]) -> None: ...
def unregister(name: str) -> None: ...
def get(backend: str | Backend, **options: Any) -> Backend: ...
