"""The exceptions that ndx raises beyond Python's own."""

__all__ = [
    "DeviceError",
    "MappedFileError",
    "OutOfMemoryError",
    "StaleArrayError",
    "WorkspaceError",
]

class DeviceError(ValueError): ...
class MappedFileError(OSError): ...
class WorkspaceError(RuntimeError): ...

class StaleArrayError(RuntimeError):
    shape: tuple[int, ...]
    dtype: str
    workspace: str | None
    generation: int | None
    current: int | None
    operation: str | None
    operand: str | None
    def __init__(
        self,
        message: str,
        *,
        shape: tuple[int, ...] = (),
        dtype: str = "",
        workspace: str | None = None,
        generation: int | None = None,
        current: int | None = None,
        operation: str | None = None,
        operand: str | None = None,
    ) -> None: ...

class OutOfMemoryError(MemoryError):
    requested: int
    allocated: int
    reserved: int
    limit: int | None
    backend: str
    cached: int
    largest_free: int
    device_free: int | None
    device_total: int | None
    reason: str | None
    @property
    def fragmentation(self) -> float: ...
    def __init__(
        self,
        message: str,
        requested: int = 0,
        allocated: int = 0,
        reserved: int = 0,
        limit: int | None = None,
        backend: str = "",
        *,
        cached: int = 0,
        largest_free: int = 0,
        device_free: int | None = None,
        device_total: int | None = None,
        reason: str | None = None,
    ) -> None: ...
