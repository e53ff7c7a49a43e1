"""Which backend serves new arrays, for this thread or task, now."""

from typing import Any

from ndx.backends import Backend

__all__ = ["set_default"]

def set_default(backend: str | Backend, /, **options: Any) -> Backend: ...
