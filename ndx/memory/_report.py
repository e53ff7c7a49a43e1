"""One report of memory, for an error or a signal: what is alive, who made it."""

from __future__ import annotations

import os
import signal as signals
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ndx._lib.locks import module_lock
from ndx._lib.sizes import format_size
from ndx._lib.text import Text
from ndx.backends import _pressure
from ndx.memory._live import live
from ndx.memory._statistics import open_phases
from ndx.memory._summary import summary

if TYPE_CHECKING:
    from ndx._typing import TextPath

__all__ = ["report", "report_to"]

_ROWS = 30
# Seconds between two reports of errors: a program may catch many.
_APART = 1.0


def report() -> str:
    """Return a report of memory: totals, open phases, what is alive, who made it.

    Returns
    -------
    str
        `summary`; the phases of `profile` that are open, by thread; the largest bytes
        by the line that made them (after `track`), by workspace, and by shape; the
        largest pieces of `live`.

    Examples
    --------
    >>> import ndx
    >>> x = ndx.ones((321, 1000))
    >>> "(321, 1000)" in ndx.memory.report()
    True
    """
    found = live()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    lines = [f"memory of process {os.getpid()}, {now}", "", summary(), ""]
    lines += [f"phase {name!r} is open in {thread}" for thread, name in open_phases()]
    for field in ("line", "workspace", "shape"):
        lines += _groups(found, field)
    lines += ["the largest pieces:", found.table(_ROWS)]
    return Text("\n".join(lines) + "\n")


def _groups(found, field):
    groups = [
        (sum(each.nbytes for each in part), len(part), key)
        for key, part in found.by(field).items()
        if key is not None
    ]
    lines = [
        f"{format_size(nbytes):>11}  {count:6,}  {key}"
        for nbytes, count, key in groups[:_ROWS]
    ]
    if len(groups) > _ROWS:
        lines.append(f"and {len(groups) - _ROWS:,} more")
    return [f"by {field}:", *lines, ""] if groups else []


class _Target:
    """Where reports go, and when."""

    path = None
    signal = None
    before = None  # what handled the signal
    last = -_APART
    lock = module_lock()


def report_to(
    path: TextPath | None, *, oom: bool = True, signal: int | str | None = None
) -> None:
    """Write `report` to a file when memory can't be had, or when a signal comes.

    Parameters
    ----------
    path : str, os.PathLike or None
        The file, which each report replaces; ``{pid}`` in it stands for the number of
        the process. None: no more reports.
    oom : bool, default True
        Whether to write one before an `OutOfMemoryError` is raised, at most one each
        second. It begins with the error.
    signal : int or str, optional
        A signal such as ``"SIGUSR1"``, upon which to write one: Python's main thread
        does, as soon as it runs Python. Only the main thread can set this.

    Notes
    -----
    The environment variable ``NDX_OOM_REPORT`` is the path for errors, from the start.
    If the file can't be written, the `OutOfMemoryError` has a note that says why.

    Raises
    ------
    ValueError
        If `signal` is no signal, or can't be handled; if this is not the main thread.

    Examples
    --------
    >>> import ndx, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "memory-{pid}.txt")
    >>> ndx.memory.report_to(path)
    >>> with ndx.use(ndx.backends.HostBackend(limit=0)):
    ...     ndx.ones(1000)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ndx.OutOfMemoryError: ...
    >>> ndx.memory.report_to(None)
    >>> with open(path.format(pid=os.getpid())) as file:
    ...     "can't allocate" in file.readline()
    True
    >>> folder.cleanup()
    """
    number = None if path is None or signal is None else _number_of(signal)
    path = None if path is None else os.path.abspath(os.fspath(path))
    before = None
    if number is not None:
        try:
            before = signals.signal(number, _on_signal)
        except OSError:
            msg = f"signal={signal!r} can't be handled; 'SIGUSR1' can"
            raise ValueError(msg) from None
    if _Target.signal == number:
        before = _Target.before
    elif _Target.signal is not None:
        signals.signal(_Target.signal, _Target.before)
    _Target.signal, _Target.before = number, before
    _Target.path = path
    _pressure.set_oom_report(_on_error if path is not None and oom else None)


def _number_of(signal):
    try:
        if isinstance(signal, str):
            return signals.Signals[signal]
        # Else True would be a signal, too.
        return signals.Signals(None if isinstance(signal, bool) else signal)
    except (KeyError, ValueError):
        msg = f"signal={signal!r} is no signal; such as 'SIGUSR1' is"
        raise ValueError(msg) from None


def _write(head=""):
    text = head + report()
    with open(
        _Target.path.replace("{pid}", str(os.getpid())), "w", encoding="utf-8"
    ) as file:
        file.write(text)


def _on_signal(number, frame):
    _write()


def _on_error(error):
    if _pressure.is_trying():
        return
    with _Target.lock:
        if _Target.path is None or time.monotonic() - _Target.last < _APART:
            return
        _Target.last = time.monotonic()
    try:
        _write(f"{error}\n\n")
    except Exception as failure:
        error.add_note(f"the report could not be written: {failure!r}")


def _from_environment():
    if path := os.environ.get("NDX_OOM_REPORT"):
        report_to(path)


_from_environment()
