"""Who serves what is made here, on each device."""

from ndx.backends import Backend

__all__ = ["current_backend"]

def current_backend() -> Backend: ...
