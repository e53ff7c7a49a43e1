"""The exceptions that ndx raises beyond Python's own.

Each also derives from the built-in class that a caller would expect, has its details
as attributes, and can be pickled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ndx._lib.damage import Damage

__all__ = [
    "DeviceError",
    "MappedFileError",
    "MemoryDamageError",
    "OutOfMemoryError",
    "ReadOnlyError",
    "StaleArrayError",
    "WorkspaceError",
]


def _use(operation, operand):
    """Return a sentence on the array's use; an empty string if that is not known."""
    if operation is None:
        return ""
    role = "" if operand in (None, operation) else f", as `{operand}`"
    return f" It was used in `{operation}`{role}."


def closed_array_text(what, operation, operand):
    """Return the message of `StaleArrayError` for an array that was closed."""
    return (
        f"the {what} was closed, and its memory given back.{_use(operation, operand)} "
        "To use it again, make it anew, or close it later."
    )


def stale_array_text(
    what, operation, operand, workspace, generation, current, is_open, origin
):
    """Return the message of `StaleArrayError` for an array whose cycle has ended.

    Parameters
    ----------
    what : str
        The array, in words.
    operation, operand : str or None
        The expression that used the array, and the array's name in it.
    workspace : str
    generation, current : int
        Of the array, and of the workspace now.
    is_open : bool
        Whether a scope of the workspace is open.
    origin : str or None
        The line that made the array; known with ``debug=True``.
    """
    made, advice = f" at {origin}", ""
    if origin is None:
        made, advice = "", " With debug=True the workspace says where it was made."
    return (
        f"the {what} is stale: it was made{made} in generation {generation} of "
        f"workspace {workspace!r}, which is now in generation {current} and "
        f"{'open' if is_open else 'closed'}; its memory is reused."
        f"{_use(operation, operand)} To keep a result: (1) x.detach() inside the scope "
        "gives an independent copy; (2) make the array before the scope is entered and "
        "write into it (x[...] = y, x += y); (3) use it before the scope ends; (4) or "
        "let what is still referenced leave, by escape='detach' of the workspace."
        f"{advice}"
    )


class StaleArrayError(RuntimeError):
    """An array was used after the memory under it was given back.

    Raised when the workspace scope that an array was made in has ended, or when
    the array was closed. The array keeps its shape, its dtype and a ``repr``.

    Parameters
    ----------
    message : str
        The array, its origin, its use, and the remedies.
    shape : tuple of int
        Of the array.
    dtype : str
        Of the array.
    workspace : str or None
        Name of the workspace that it was made in; None: the array was closed.
    generation, current : int or None
        The workspace's generation when it was made, and the current one.
    operation : str or None
        The expression that used it, as in the source; None if that is not known.
    operand : str or None
        The array's name in that expression; None if it has none.

    See Also
    --------
    ndx.workspace : scopes, and the ways to keep a result.
    """

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
    ) -> None:
        super().__init__(message)
        self.shape = shape
        self.dtype = dtype
        self.workspace = workspace
        self.generation = generation
        self.current = current
        self.operation = operation
        self.operand = operand

    def __reduce__(self):
        # The keyword arguments are in the instance's dict.
        return type(self), self.args, vars(self).copy()


class DeviceError(ValueError):
    """A device can't be used: it does not exist, or its software is not installed."""


class ReadOnlyError(ValueError):
    """An array was to be written that is read-only: ``x.flags.writeable`` is False."""


class MappedFileError(OSError):
    """The file under an array can't be read any more; `filename` names it.

    Another process cut it short, or the disk failed. Operations on the array raise
    this, instead of the signal SIGBUS that would end the process.
    """


class WorkspaceError(RuntimeError):
    """A workspace was configured, entered or left in a way that it forbids."""


class MemoryDamageError(RuntimeError):
    """Something wrote to memory of ndx that was not its own: see `ndx.memory.check`.

    Parameters
    ----------
    message : str
        Where it wrote, and what.
    damages : iterable of ndx.memory.Damage
        The same, as values.
    """

    def __init__(self, message: str, damages: Iterable[Damage] = ()) -> None:
        super().__init__(message, tuple(damages))

    @property
    def damages(self) -> tuple[Damage, ...]:
        """Where it wrote, and what."""
        return self.args[1]

    def __str__(self):
        return self.args[0]


class OutOfMemoryError(MemoryError):
    """A backend or a workspace could not serve a request; nothing was changed.

    Parameters
    ----------
    message : str
        The request, the memory that is in use, and the remedies.
    requested : int
        Bytes that were requested.
    allocated : int
        Bytes held by live arrays of the backend at that moment.
    reserved : int
        Bytes that the backend held from the system at that moment.
    limit : int or None
        The backend's limit on reserved bytes; None if it has none.
    backend : str
        Name of the backend.
    cached : int
        Bytes that the backend held, but no array used.
    largest_free : int
        Bytes of the largest contiguous piece of the cached ones.
    device_free, device_total : int or None
        Bytes of the device's memory; None if that is not known.
    reason : str or None
        Why the request was refused: "limit" (the backend's own), "ndx" (the limit of
        all backends), "process" (that of the process), "device" (that of a GPU), "size"
        (alone more than its limit or its device), "source" (the device or the disk
        is full), "system", "arena" (of ``pool="arena"``) or "adaptor"; None if a
        workspace is full.
    """

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
    ) -> None:
        super().__init__(message)
        self.cached = cached
        self.largest_free = largest_free
        self.device_free = device_free
        self.device_total = device_total
        self.reason = reason
        self.requested = requested
        self.allocated = allocated
        self.reserved = reserved
        self.limit = limit
        self.backend = backend

    @property
    def fragmentation(self) -> float:
        """The share of the cached bytes that are not in the largest free piece."""
        return 1 - self.largest_free / self.cached if self.cached else 0.0

    def __reduce__(self):
        # The keyword arguments are in the instance's dict.
        return type(self), self.args, vars(self).copy()


# Tracebacks and pickles name the public module.
for _error in (
    DeviceError,
    MappedFileError,
    MemoryDamageError,
    StaleArrayError,
    WorkspaceError,
    OutOfMemoryError,
    ReadOnlyError,
):
    _error.__module__ = "ndx"
