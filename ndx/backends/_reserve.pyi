"""Memory that a backend is to have before it is asked for."""

from ndx.backends.base import Backend

__all__ = ["warm_up"]

def warm_up(backend: Backend, nbytes: int, touch: bool) -> int: ...
