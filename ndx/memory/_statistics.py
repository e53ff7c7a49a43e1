"""Statistics of the allocations of a part of a program."""

from __future__ import annotations

import operator
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ndx._lib.functions import decorated
from ndx._lib.locks import module_lock
from ndx._lib.sizes import format_size
from ndx._lib.text import Text
from ndx._recording.recorder import recorders
from ndx.memory._counters import backend_of

if TYPE_CHECKING:
    from typing import Any, ClassVar

    from ndx._typing import AnyFunction, BackendLike
    from ndx.backends import Backend

__all__ = ["Statistics", "open_phases", "profile", "profile_report", "statistics"]

_lock = module_lock()
_records = {}
# The peaks of a backend's `stats`, and where their times are.
_PEAKS = {
    "peak_bytes": "peak_time",
    "peak_count": "peak_count",
    "peak_reserved_bytes": "peak_reserved_time",
}


@dataclass
class Statistics:
    """Counts of a scope; complete when the scope has ended.

    Attributes
    ----------
    current_bytes, current_count : int
        Increase of live memory since the start; negative if more was freed.
    peak_bytes : int
        Peak increase of live bytes since the start.
    total_count, total_bytes : int
        Allocations, and their bytes.
    """

    current_bytes: int = 0
    current_count: int = 0
    peak_bytes: int = 0
    total_count: int = 0
    total_bytes: int = 0


class statistics:
    """Count the allocations of a backend within a scope; scopes nest.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Default: the current one.

    Yields
    ------
    Statistics
        The counts of this scope, including inner scopes.

    Notes
    -----
    The counters are those of the backend, which include other threads. Afterwards the
    backend's own peak has its old value, or a higher one.

    Examples
    --------
    >>> import ndx
    >>> with ndx.memory.statistics() as outer:
    ...     x = ndx.zeros(1000)
    ...     with ndx.memory.statistics() as inner:
    ...         y = ndx.zeros(10)
    >>> outer.current_bytes, inner.current_bytes
    (8080, 80)
    """

    def __init__(self, backend: BackendLike | None = None) -> None:
        self.backend = backend
        self.stack = []

    def __enter__(self) -> Statistics:
        entry = _Entry(backend_of(self.backend))
        self.stack.append(entry)
        return entry.found

    def __exit__(self, *exception: object) -> None:
        if not self.stack:
            msg = "ndx.memory.statistics was left, but is not entered"
            raise RuntimeError(msg)
        self.stack.pop().end()


class _Entry:
    """An entry into a scope, which resets the peak of a backend.

    Entries of several threads overlap without nesting. So the peak is noted for all
    that are open each time before it is reset.
    """

    # Open entries, in the order of their beginnings.
    opened: ClassVar[list[_Entry]] = []
    lock = module_lock()

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.found = Statistics()
        self.peak = 0
        with self.lock:
            self.before = self._look()
            # The peaks to restore: those since the entry before this one.
            self.peaks = self.before
            backend.reset_peak()
            self.opened.append(self)

    def end(self) -> None:
        """Complete the counts, and restore the backend's peaks."""
        before, found = self.before, self.found
        with self.lock:
            after = self._look()
            place = self.opened.index(self)
            del self.opened[place]
            for later in self.opened[place:]:
                if later.backend is self.backend:
                    later.peaks = _higher(later.peaks, self.peaks)
                    break
            else:
                self.backend.raise_peak(self.peaks)
        found.current_bytes = after["allocated_bytes"] - before["allocated_bytes"]
        found.current_count = after["allocated_count"] - before["allocated_count"]
        found.peak_bytes = self.peak - before["allocated_bytes"]
        found.total_count = after["total_allocations"] - before["total_allocations"]
        found.total_bytes = after["total_bytes"] - before["total_bytes"]

    def _look(self) -> dict[str, Any]:
        """Return the backend's counters, and note its peak in all open entries."""
        stats = self.backend.stats()
        for each in self.opened:
            if each.backend is self.backend:
                each.peak = max(each.peak, stats["peak_bytes"])
        return stats


def _higher(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the higher peaks of two `stats`, with their times."""
    found = {}
    for key, when in _PEAKS.items():
        more = max(one, other, key=operator.itemgetter(key))
        found |= {name: more[name] for name in (key, when)}
    return found


@dataclass
class _Record:
    calls: int = 0
    total_count: int = 0
    peak_bytes: int = 0
    kept_bytes: int = 0


class profile:
    """Add up the allocations of all runs of a part of a program, under a name.

    Parameters
    ----------
    name : str
        The line of the report.
    backend : str or ndx.backends.Backend, optional
        Default: the current one.

    Notes
    -----
    A context manager and a decorator; it counts like `statistics`. Where runs of one
    name nest in a thread, as in a recursion, the outermost one has the allocations.
    Recordings (`ndx.memory.record`) show all runs and peaks, beside the scopes of
    workspaces.

    Raises
    ------
    TypeError
        If `name` is no str; if it decorates something else than a function, or a
        generator function.

    Examples
    --------
    >>> import ndx
    >>> @ndx.memory.profile("forward")
    ... def forward(x):
    ...     return x * 2 + 1
    >>> y = forward(ndx.ones(1000))
    >>> "forward" in ndx.memory.profile_report(clear=True)
    True
    """

    def __init__(self, name: str, backend: BackendLike | None = None) -> None:
        if not isinstance(name, str):
            msg = f"a phase is named by a str, not {type(name).__name__}"
            raise TypeError(msg)
        self.name = name
        self.scope = statistics(backend)
        self.found = []

    def __enter__(self) -> Statistics:
        found = self.scope.__enter__()
        self.found.append(found)
        _note_phase(self.name, True)
        return found

    def __exit__(self, *exception: object) -> None:
        nested = _note_phase(self.name, False)
        self.scope.__exit__(*exception)
        found = self.found.pop()
        with _lock:
            record = _records.setdefault(self.name, _Record())
            record.calls += 1
            record.peak_bytes = max(record.peak_bytes, found.peak_bytes)
            if not nested:
                record.total_count += found.total_count
                record.kept_bytes += found.current_bytes

    def __call__(self, function: AnyFunction) -> AnyFunction:
        name, backend = self.name, self.scope.backend
        return decorated(function, lambda: profile(name, backend), "ndx.memory.profile")


# The phases that are open: the name of its thread, its own, the thread's number.
_open = []


def open_phases():
    """Return the name of its thread, and its own, of each phase that is open."""
    return [each[:2] for each in _open]


def _note_phase(name, begins):
    """Note a begin or an end; return, after an end, whether the name is still open."""
    entry = threading.current_thread().name, name, threading.get_ident()
    with _lock:
        if begins:
            _open.append(entry)
        elif entry in _open:
            _open.remove(entry)
        nested = entry in _open
    for recorder in recorders():
        recorder.note_phase(name, begins)
    return nested


def profile_report(clear: bool = False) -> str:
    """Return a table of the sums of `profile`.

    Parameters
    ----------
    clear : bool, default False
        Whether to reset the sums to zero.
    """
    with _lock:
        records = dict(_records)
        if clear:
            _records.clear()
    if not records:
        return Text("nothing was profiled: use ndx.memory.profile(name)")
    lines = [f"{'name':<24}{'calls':>8}{'allocations':>13}{'peak':>12}{'kept':>12}"]
    lines += [
        f"{name:<24}{record.calls:>8}{record.total_count:>13}"
        f"{format_size(record.peak_bytes):>12}{format_size(record.kept_bytes):>12}"
        for name, record in sorted(
            records.items(), key=lambda item: -item[1].peak_bytes
        )
    ]
    return Text("\n".join(lines))
