"""Memory of the host."""

from ndx.backends.base import Backend

__all__ = ["HostBackend"]

class HostBackend(Backend): ...
