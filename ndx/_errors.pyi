"""The exceptions that ndx raises beyond Python's own."""

__all__ = ["OutOfMemoryError", "StaleArrayError", "WorkspaceError"]

class StaleArrayError(RuntimeError): ...
class WorkspaceError(RuntimeError): ...

class OutOfMemoryError(MemoryError):
    requested: int
    allocated: int
    reserved: int
    limit: int | None
    backend: str
    def __init__(
        self,
        message: str,
        requested: int = 0,
        allocated: int = 0,
        reserved: int = 0,
        limit: int | None = None,
        backend: str = "",
    ) -> None: ...
