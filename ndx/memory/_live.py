"""What is alive now: each array with its memory, and what else a backend has lent."""

from __future__ import annotations

import bisect
import heapq
import math
import operator
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ndx._array.living import births, known_makers, living
from ndx._files.replace import written_whole
from ndx._lib.options import at_least
from ndx._lib.sizes import format_size
from ndx._lib.text import Text
from ndx._recording.recorder import recorded_makers
from ndx._recording.tracking import is_tracking, stack_of, track_stacks
from ndx.backends import _pressure, get
from ndx.memory._page import live_page

if TYPE_CHECKING:
    from typing import Any

    from ndx._typing import BackendLike, TextPath

__all__ = ["Live", "LiveMemory", "live", "track"]

# Lines of a table, unless more are asked for; and lines of makers in an error.
_SHOWN = 20
_MAKERS = 8
_COLUMNS = ("nbytes", "arrays", "shape", "dtype", "backend", "workspace", "place",
            "age", "line")  # fmt: skip


class LiveMemory(NamedTuple):
    """One piece of memory that is in use, and the arrays that share it.

    Attributes
    ----------
    nbytes : int
        Bytes that the backend counts for it; of an array in a workspace's arena or in
        memory of another library, bytes that it refers to.
    shape : tuple of int or None
        Of the largest array; None: there is no array.
    dtype : str or None
    arrays : int
        How many arrays share it.
    backend : str or None
        Name of the backend that counts it; None: no backend does.
    workspace : str or None
        Name of the workspace whose scope it was made in.
    place : str
        ``"backend"``: an array has it from the backend. ``"spilled"``: so has an array
        that found no room in its workspace. ``"arena"``: an array lies in the arena of
        its workspace, which is a row of its own, ``"workspace"``. ``"foreign"``:
        another library owns it. ``"stale"``: its scope has ended. ``"other"``: the
        backend has lent it, but to no array: to a buffer, to NumPy, or to an array
        that is gone, whose memory another library reads.
    age : float
        Seconds since the oldest of these arrays was made, or more: time is noted now
        and then, and by each call of `live`; with `track`, every millisecond.
    stack : tuple of str
        Lines that made the oldest array, innermost first, if they were tracked.
    exported : bool
        Whether another library may read it.
    address : int or None
        Of its first byte.
    birth : tuple of int or None
        Of the oldest array: the shard of its thread (0 with a GIL), and its number
        among the births there.
    """

    nbytes: int
    shape: tuple[int, ...] | None
    dtype: str | None
    arrays: int
    backend: str | None
    workspace: str | None
    place: str
    age: float
    stack: tuple[str, ...]
    exported: bool
    address: int | None
    birth: tuple[int, int] | None = None

    @property
    def line(self) -> str | None:
        """The line of the program that made the oldest array, if it was tracked."""
        return self.stack[0] if self.stack else None

    @property
    def counted(self) -> bool:
        """Whether a backend counts it: arrays in an arena, and others', it does not."""
        return self.place in ("backend", "spilled", "workspace", "other")


class Live(Sequence):
    """What is alive: pieces of memory, those with the most bytes first.

    ``print`` shows a table, notebooks too. ``after - before`` is what has come since.

    Parameters
    ----------
    memory : iterable of LiveMemory
        The pieces.
    missed : int
        Arrays for which there was no memory to note them, since the start: those that
        are alive are not among the pieces.
    births : tuple of int
        How many arrays each shard of threads had made until then.
    """

    def __init__(
        self, memory: Any, missed: int = 0, births: tuple[int, ...] = ()
    ) -> None:
        self._memory = sorted(memory, key=operator.attrgetter("nbytes"), reverse=True)
        self.missed = missed
        self._births = births

    def __len__(self):
        return len(self._memory)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._part(self._memory[index])
        return self._memory[index]

    @property
    def nbytes(self) -> int:
        """Bytes that backends count for it: the sum of their ``allocated_bytes``."""
        return sum(each.nbytes for each in self._memory if each.counted)

    def where(self, **fields: object) -> Live:
        """Return the pieces of which fields have these values.

        Parameters
        ----------
        **fields
            Names and values of attributes of `LiveMemory`, such as ``dtype="float64"``.

        Examples
        --------
        >>> import ndx
        >>> x = ndx.zeros((1000, 7), dtype="int8")
        >>> ndx.memory.live().where(shape=(1000, 7), dtype="int8").nbytes
        7000
        """
        return self._part(
            each
            for each in self._memory
            if all(getattr(each, name) == value for name, value in fields.items())
        )

    def by(self, field: str) -> dict[Any, Live]:
        """Group the pieces; the groups with the most bytes come first.

        Parameters
        ----------
        field : str
            An attribute of `LiveMemory`: ``"line"``, ``"workspace"``, ``"dtype"``, ...

        Returns
        -------
        dict
            For each value the `Live` of its pieces.

        Examples
        --------
        >>> import ndx
        >>> x = ndx.zeros(1_000_000)
        >>> list(ndx.memory.live("host").by("dtype"))[0]
        'float64'
        """
        groups = {}
        for each in self._memory:
            groups.setdefault(getattr(each, field), []).append(each)
        found = {key: self._part(memory) for key, memory in groups.items()}
        return dict(
            sorted(found.items(), key=lambda item: _all_bytes(item[1]), reverse=True)
        )

    def __sub__(self, before: Live) -> Live:
        """Return what has come since another look: memory of arrays made after it."""
        if not isinstance(before, Live):
            return NotImplemented
        old = {_range_of(each) for each in before if each.birth is None}
        return self._part(
            each
            for each in self
            if (
                _range_of(each) not in old
                if each.birth is None
                else each.birth[1] > before._births[each.birth[0]]
            )
        )

    def table(self, rows: int = _SHOWN) -> str:
        """Return a table of the largest pieces.

        Parameters
        ----------
        rows : int
            The most pieces to show.
        """
        shown = self._memory[:rows]
        cells = [_COLUMNS, *(_cells(each) for each in shown)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if column < 2 else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        rest = len(self) - len(shown)
        if rest:
            nbytes = format_size(sum(each.nbytes for each in self._memory[rows:]))
            lines.append(f"and {rest:,} more, of {nbytes}")
        lines.append(
            f"{len(self):,} pieces; backends count {format_size(self.nbytes)}"
            + (f"; {self.missed:,} arrays may be missing" if self.missed else "")
        )
        return Text("\n".join(lines))

    def __str__(self):
        return str(self.table())

    def __repr__(self):
        return f"<Live: {len(self):,} pieces, {format_size(self.nbytes)}>"

    def _repr_html_(self):
        return self.table()._repr_html_()

    def rows(self) -> list[dict[str, Any]]:
        """Return the pieces as dicts, which JSON can hold."""
        return [
            {**each._asdict(), "shape": _as_list(each.shape), "stack": list(each.stack)}
            for each in self._memory
        ]

    def save(self, path: TextPath) -> None:
        """Write a page for a browser.

        Parameters
        ----------
        path : str or os.PathLike
            A file; it is replaced.

        Examples
        --------
        >>> import ndx, os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ndx.memory.live().save(os.path.join(folder, "live.html"))
        """
        cells = [(each.nbytes, *_cells(each)[1:]) for each in self._memory]
        total = f"{len(self):,} pieces; backends count {format_size(self.nbytes)}"
        data = live_page(_COLUMNS, cells, total).encode()
        with written_whole(path, len(data), _pressure.release_on_disk) as file:
            file.write(data)

    def _part(self, memory):
        return Live(memory, self.missed, self._births)


def _range_of(each):
    return each.place, each.backend, each.address, each.nbytes


def _as_list(shape):
    return None if shape is None else list(shape)


def _all_bytes(part):
    return sum(each.nbytes for each in part)


def _cells(each):
    return (
        format_size(each.nbytes),
        str(each.arrays),
        "" if each.shape is None else str(each.shape),
        each.dtype or "",
        each.backend or "",
        each.workspace or "",
        each.place + (", exported" if each.exported else ""),
        f"{each.age:.3g} s" if each.arrays else "",
        each.line or "",
    )


def live(backend: BackendLike | None = None) -> Live:
    """Return what is alive now: arrays, workspaces, and what else backends have lent.

    Nothing has to be recorded before: each array enters a table when it is made.

    Parameters
    ----------
    backend : str or ndx.backends.Backend, optional
        Only what this backend counts, so that ``live(backend).nbytes`` is its
        ``stats()["allocated_bytes"]``. Default: everything.

    Returns
    -------
    Live
        A sequence of `LiveMemory`, with tables, groups, and differences.

    Notes
    -----
    Arrays in arenas and of other libraries are there, too; `LiveMemory.counted` tells
    them from what backends count. Numbers (elements, full reductions of ``ndx.numpy``)
    are not: they have no memory of a backend's. While other threads make and drop
    arrays the sum may differ from the counters. `track` adds the lines that made the
    arrays.

    Examples
    --------
    >>> import ndx
    >>> before = ndx.memory.live()
    >>> x = ndx.ones((1000, 3))
    >>> for each in ndx.memory.live() - before:
    ...     print(each.nbytes, each.shape, each.dtype, each.place)
    24000 (1000, 3) float64 backend
    """
    wanted = None if backend is None else _pressure.innermost(get(backend))
    before = births()
    arrays, missed = living()
    pieces = {}
    for row in arrays:
        pieces.setdefault(row[7], []).append(row)
    found = [*map(_piece, pieces.values()), *_arenas()]
    counted, rest = {}, []
    for owner, each in found:
        (rest if owner is None else counted.setdefault(owner, [])).append(each)
    backends = [wanted]
    if wanted is None:
        backends = _pressure.counting_backends()
    memory = []
    for each in backends:
        known = counted.get(each, [])
        others, rest = _told(_others(each, known), rest)
        memory += [*known, *others]
    return Live(memory if wanted else memory + rest, missed, before)


def _piece(rows):
    """Return arrays that share memory, and the backend that counts it, if one does."""
    oldest = min(rows, key=lambda row: row[2])
    largest = max(rows, key=lambda row: math.prod(row[5]))
    (_, shard, born, age, maker, _, _, _, address, nbytes, backend, workspace, owner,
     usable, exported) = oldest  # fmt: skip
    if backend is not None:
        backend = _pressure.innermost(backend)
        place = "backend" if workspace is None else "spilled"
    else:
        place = "foreign"
        if workspace is not None and owner is None:
            place = "arena" if usable else "stale"
    name = None if backend is None else str(backend.name)
    return backend, LiveMemory(
        nbytes, largest[5], largest[6], len(rows), name, workspace, place, age,
        stack_of(maker), exported, address or None, (shard, born),
    )  # fmt: skip


def _lent(backend, nbytes, workspace, place, address):
    """Return what a backend has lent to no array."""
    return LiveMemory(
        nbytes, None, None, 0, str(backend.name), workspace, place, 0.0, (), False,
        address,
    )  # fmt: skip


def _arenas():
    """Return the arenas of workspaces, and their backends."""
    return [
        (
            each.backend,
            _lent(each.backend, each.nbytes, each.workspace, "workspace", each.address),
        )
        for each in _pressure.held_arenas()
    ]


def _others(backend, known):
    """Return what a backend has lent besides what is known."""
    addresses = {each.address for each in known}
    guard = getattr(backend, "guard_nbytes", 0)
    found = [
        _lent(backend, block["requested_size"], None, "other", block["address"] + guard)
        for segment in (backend.snapshot() if hasattr(backend, "snapshot") else ())
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
        and block["address"] + guard not in addresses
    ]
    rest = backend.stats()["allocated_bytes"] - _all_bytes((*known, *found))
    if rest > 0:
        # Of small arrays that are gone, or of a backend that lists nothing.
        found.append(_lent(backend, rest, None, "other", None))
    return found


def _told(ranges, arrays):
    """Name the foreign array that lies in each range; return both, without those.

    NumPy has allocated such a range: for a result, which an array of ours keeps alive.
    """
    foreign = sorted(
        (each for each in arrays if each.place == "foreign" and each.address),
        key=operator.attrgetter("address"),
    )
    starts = [each.address for each in foreign]
    told, named = [], set()
    for each in ranges:
        if each.address is not None:
            place = bisect.bisect_left(starts, each.address)
            if place < len(starts) and starts[place] < each.address + each.nbytes:
                named.add(foreign[place])
                each = foreign[place]._replace(
                    nbytes=each.nbytes, backend=each.backend, place="backend",
                    address=each.address,
                )  # fmt: skip
        told.append(each)
    return told, [each for each in arrays if each not in named]


def _largest_makers(backend):
    """Return (line, bytes, number) of those that made most of a backend's memory.

    They are known while a recording runs, and while `track` is on. What is not known
    has no line: None, if there is such memory.
    """
    found = recorded_makers(backend)
    if not found and is_tracking():
        wanted = _pressure.innermost(backend)
        sums = {}
        makers = known_makers(lambda each: _pressure.innermost(each) is wanted)
        for maker, (nbytes, count) in makers.items():
            for line in stack_of(maker)[:1]:
                before = sums.get(line, (0, 0))
                sums[line] = before[0] + nbytes, before[1] + count
        found = [(line, *sums[line]) for line in sums]
    if not found:
        return []
    stats = backend.stats()
    rest = [
        stats[key] - sum(each[at] for each in found)
        for at, key in ((1, "allocated_bytes"), (2, "allocated_count"))
    ]
    found = heapq.nlargest(_MAKERS, found, key=operator.itemgetter(1))
    return [*found, (None, *rest)] if rest[0] > 0 else found


_pressure.set_largest_makers(_largest_makers)


def track(stacks: bool | int = True) -> None:
    """Note from now on which lines of the program make arrays, for `live`.

    Parameters
    ----------
    stacks : bool or int
        The number of lines of the call stack, outside of ndx; True: 1, False: none.

    Notes
    -----
    It costs less than a microsecond for each array. The lines are in the text of an
    `OutOfMemoryError`, too. The environment variable ``NDX_TRACK`` sets the number of
    lines from the start.

    Raises
    ------
    TypeError, ValueError
        If `stacks` is no number, or below 0.

    Examples
    --------
    >>> import ndx
    >>> ndx.memory.track()
    >>> x = ndx.ones((123, 4))
    >>> ndx.memory.live().where(shape=(123, 4))[0].line  # doctest: +ELLIPSIS
    '<doctest ...>:1 in <module>'
    >>> ndx.memory.track(False)
    """
    track_stacks(at_least(stacks, "stacks", 0))


def _from_environment():
    value = os.environ.get("NDX_TRACK")
    if value:
        try:
            track(int(value))
        except ValueError:
            msg = f"NDX_TRACK={value!r} is not valid; it is a number of lines"
            raise ValueError(msg) from None


_from_environment()
