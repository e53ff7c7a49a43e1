"""Sources written in Python."""

from typing import Any

from ndx.backends.source import Source

__all__ = ["PythonSource"]

class PythonSource(Source):
    def acquire(self, nbytes: int) -> Any: ...
    def discard(self, buffer: Any) -> None: ...
