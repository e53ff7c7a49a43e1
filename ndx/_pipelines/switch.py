"""The process-wide switch of the tools that use workspaces by themselves."""

from types import TracebackType

__all__ = ["use_workspaces", "workspaces_used"]

_used = True


class _Switch:
    """What `use_workspaces` returns: the state, and the way back to the one before."""

    def __init__(self, used: bool, before: bool) -> None:
        self._used, self._before = used, before

    def __bool__(self) -> bool:
        return self._used

    def __repr__(self) -> str:
        return f"ndx.use_workspaces({self._used})"

    def __enter__(self) -> bool:
        return self._used

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global _used
        _used = self._before


def workspaces_used() -> bool:
    """Return whether the tools may use workspaces now."""
    return _used


def use_workspaces(enabled: bool | None = None, /) -> _Switch:
    """Set whether ndx's tools use workspaces by themselves; in the whole process.

    The tools are those that enter workspaces for their callers: `ndx.evaluate`,
    `ndx.WorkspacePlan` and the like. They do by default. Scopes that the program
    enters itself (``with ndx.workspace(...)``, `ndx.Roles` that it made) are as ever.

    Parameters
    ----------
    enabled : bool, optional
        The new state, for all threads: it takes effect at once, for the tools that
        start from now on. None: leave it as it is.

    Returns
    -------
    context manager
        True or false as the state. As a context manager it restores the state before
        the call when its scope ends.

    Raises
    ------
    TypeError
        If `enabled` is neither a bool nor None.

    Notes
    -----
    To find out whether workspaces are at fault for something:
    `ndx.memory.debug_mode` acts on all workspaces, the program's own included.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use_workspaces(False):
    ...     bool(ndx.use_workspaces()), ndx.WorkspacePlan().training()["activations"]
    (False, None)
    >>> bool(ndx.use_workspaces())
    True
    """
    global _used
    _check(enabled)
    before = _used
    if enabled is not None:
        _used = enabled
    return _Switch(_used, before)


def _check(enabled: object) -> None:
    if enabled is not None and not isinstance(enabled, bool):
        msg = (
            f"use_workspaces takes True, False or None, not {enabled!r} of type "
            f"{type(enabled).__name__}"
        )
        raise TypeError(msg)
