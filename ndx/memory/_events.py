"""The content of a recording, as columns and as events."""

from bisect import bisect_right
from typing import NamedTuple

__all__ = [
    "BIRTH",
    "DEATH",
    "Event",
    "births_on",
    "list_events",
    "number_on",
    "read_log",
]

# As in _recording/recorder.pxd and _blocks/block.pxd.
(
    BIRTH, DEATH, _ENTER, _LEAVE, _STALE, _SAMPLE, _BEGIN_PHASE, _END_PHASE,
) = range(8)  # fmt: skip
_PLACES = ("backend", "arena", "spilled", "numpy", "left behind")
_ENDINGS = ("dropped", "scope end", "closed", "escaped", "moved")

_ARRAYS = (
    "born", "died", "stale", "nbytes", "address", "backend", "workspace",
    "generation", "place", "shape", "dtype", "stack", "thread", "freed", "before",
)  # fmt: skip


class Event(NamedTuple):
    """An event of a recording; fields that do not apply are None.

    Attributes
    ----------
    time : float
        Seconds since the recording's start.
    kind : str
        ``"allocate"`` or ``"free"`` of an array's memory; ``"enter"`` or ``"end"`` of
        a workspace's scope.
    array : int
        Number of the memory in this trace, the same for its two events.
    nbytes : int
        Bytes of the memory or, for a scope, of its arena.
    address : int
        Address of the first byte.
    backend : str
        Name of the backend.
    workspace : str
        Name of the workspace.
    generation : int
        Generation of the workspace.
    slot : int
        Slot of a ring.
    segment : int
        Address of its segment in the backend's pool, if the pool still has that segment
        when the recording is read.
    place : str
        ``"backend"`` (individually owned), ``"arena"``, ``"spilled"`` (of a workspace,
        but outside of its arena), ``"numpy"`` (data of a NumPy array), or ``"left
        behind"`` (it left its workspace, but stayed in place).
    shape : tuple of int
        Shape of the first array over it.
    dtype : str
        Dtype of the first array over it.
    maker : str
        ``"file:line in function"``: the line of user code that made it.
    stack : tuple of str
        The lines of the call stack, `maker` first.
    thread : str
        Name of the thread that made it.
    freed : str
        Why it was freed: ``"dropped"`` (the last reference went), ``"scope end"``,
        ``"closed"``, ``"escaped"`` (it left its workspace) or ``"moved"`` (to another
        backend, by its `evict`, or back); the ``"allocate"`` of its new memory follows.
        An ``"allocate"`` has the value of its ``"free"``; None: it is still alive.
    allocated : int
        Bytes that the backend has handed out, after the event.
    reserved : int
        Bytes that the backend holds from the system, after the event.
    """

    time: float
    kind: str
    array: int | None = None
    nbytes: int | None = None
    address: int | None = None
    backend: str | None = None
    workspace: str | None = None
    generation: int | None = None
    slot: int | None = None
    segment: int | None = None
    place: str | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    maker: str | None = None
    stack: tuple[str, ...] = ()
    thread: str | None = None
    freed: str | None = None
    allocated: int | None = None
    reserved: int | None = None


def read_log(recorder):
    """Return the columns of `Trace.to_dict`, except the date."""
    log = recorder.log
    start, rows = log.begin, log.rows()
    arrays = {name: [] for name in _ARRAYS}
    scopes = {
        name: []
        for name in ("begin", "end", "workspace", "generation", "size", "thread")
    }
    phases = {name: [] for name in ("begin", "end", "name", "thread")}
    open_phases = {}
    memory = {"time": [], "backend": [], "allocated": [], "reserved": []}
    positions, open_scopes, last = {}, {}, {}

    for row in rows:
        (
            kind, time, subject, before, nbytes, address, allocated, reserved,
            generation, backend, workspace, stack, shape, thread, dtype, place, ending,
        ) = row  # fmt: skip
        time -= start
        if backend >= 0 and last.get(backend) != (allocated, reserved):
            last[backend] = (allocated, reserved)
            values = (time, backend, allocated, reserved)
            for column, value in zip(memory.values(), values, strict=True):
                column.append(value)
        if kind == BIRTH:
            positions[subject] = len(arrays["born"])
            values = (
                time, None, None, nbytes, address, _or_none(backend),
                _or_none(workspace), generation if workspace >= 0 else None,
                _PLACES[place], _or_none(shape), _or_none(dtype), _or_none(stack),
                _or_none(thread), None, positions.get(before),
            )  # fmt: skip
            for column, value in zip(arrays.values(), values, strict=True):
                column.append(value)
        elif kind == DEATH and subject in positions:
            arrays["died"][positions[subject]] = time
            arrays["freed"][positions[subject]] = _ENDINGS[ending]
        elif kind == _STALE and subject in positions:
            arrays["stale"][positions[subject]] = time
        elif kind == _ENTER:
            open_scopes[workspace] = len(scopes["begin"])
            values = (time, None, workspace, generation, nbytes, _or_none(thread))
            for column, value in zip(scopes.values(), values, strict=True):
                column.append(value)
        elif kind == _LEAVE and workspace in open_scopes:
            scopes["end"][open_scopes.pop(workspace)] = time
        elif kind == _BEGIN_PHASE:
            # A phase of a recursive function is open several times.
            opened = open_phases.setdefault((workspace, thread), [])
            opened.append(len(phases["begin"]))
            values = (time, None, workspace, _or_none(thread))
            for column, value in zip(phases.values(), values, strict=True):
                column.append(value)
        elif kind == _END_PHASE and open_phases.get((workspace, thread)):
            phases["end"][open_phases[workspace, thread].pop()] = time

    segments = _segments(recorder.backends)
    arrays["segment"] = _places_in(segments, arrays)
    return {
        "format": "ndx-trace",
        "version": 1,
        "end": (log.end or log.now()) - start,
        "complete_from": log.complete_from - start,
        "dropped": log.dropped,
        "missed": log.missed,
        "backends": [
            {"name": name, "limit": limit} for _, name, limit in recorder.backends
        ],
        "workspaces": [
            {"name": clock.name, "slot": slot} for clock, slot in recorder.workspaces
        ],
        "segments": segments,
        "threads": list(recorder.threads),
        "lines": list(recorder.lines),
        "stacks": [list(stack) for stack in recorder.stacks],
        "shapes": [list(shape) for shape in recorder.shapes],
        "dtypes": list(recorder.dtypes),
        "arrays": arrays,
        "scopes": scopes,
        "phase_names": list(recorder.phases),
        "phases": phases,
        "memory": memory,
    }


def number_on(recorder, backend):
    """Return the number of a backend in a recording; None: it is in no event."""
    for number, (reference, _, _) in enumerate(recorder.backends):
        if reference() is backend:
            return number
    return None


def births_on(recorder, backend):
    """Return, for each birth on a backend, what that has lent then, and the maker."""
    wanted = number_on(recorder, backend)
    makers = [recorder.lines[stack[0]] if stack else None for stack in recorder.stacks]
    found = []
    for row in recorder.log.rows():
        kind, _, _, _, _, _, allocated, _, _, number, _, stack, *_ = row
        if kind == BIRTH and number == wanted:
            found.append((allocated, None if stack < 0 else makers[stack]))
    return found


def _segments(backends):
    """Return the segments of the pools of existing backends, by address."""
    found = []
    for number, (reference, _, _) in enumerate(backends):
        backend = reference()
        for segment in backend.snapshot() if hasattr(backend, "snapshot") else ():
            found.append(
                {
                    "backend": number,
                    "address": segment["address"],
                    "size": segment["total_size"],
                    "type": segment["segment_type"],
                }
            )
    return sorted(found, key=lambda segment: segment["address"])


def _places_in(segments, arrays):
    """Return the number of the segment of each array; None: it is in none."""
    starts = [segment["address"] for segment in segments]
    numbers = []
    for address, backend in zip(arrays["address"], arrays["backend"], strict=True):
        number = bisect_right(starts, address) - 1
        inside = (
            number >= 0
            and address < starts[number] + segments[number]["size"]
            and segments[number]["backend"] == backend
        )
        numbers.append(number if inside else None)
    return numbers


def _or_none(number):
    return None if number < 0 else number


def list_events(data):
    """Return the events of a trace, from its columns, ordered by time."""
    events = []
    samples = _Samples(data["memory"])
    columns = data["arrays"]
    for array in range(len(columns["born"])):
        row = {name: column[array] for name, column in columns.items()}
        known = _describe(data, row) | {"array": array, "nbytes": row["nbytes"]}
        for kind, time in (("allocate", row["born"]), ("free", row["died"])):
            if time is not None:
                counters = samples.at(row["backend"], time)
                events.append(Event(time / 1e9, kind, **known, **counters))
    columns = data["scopes"]
    for scope in range(len(columns["begin"])):
        row = {name: column[scope] for name, column in columns.items()}
        known = _describe(data, row) | {"nbytes": row["size"]}
        for kind, time in (("enter", row["begin"]), ("end", row["end"])):
            if time is not None:
                events.append(Event(time / 1e9, kind, **known))
    # Stable: at equal times, births come first.
    return sorted(events, key=lambda event: event.time)


def _describe(data, row):
    """Return the fields of an event that come from tables."""
    workspace = row["workspace"]
    found = {
        "workspace": None
        if workspace is None
        else data["workspaces"][workspace]["name"],
        "slot": None if workspace is None else data["workspaces"][workspace]["slot"],
        "generation": row["generation"],
        "thread": None if row["thread"] is None else data["threads"][row["thread"]],
    }
    if "born" not in row:
        return found
    stack = () if row["stack"] is None else data["stacks"][row["stack"]]
    stack = tuple(data["lines"][line] for line in stack)
    return found | {
        "address": row["address"],
        "segment": None
        if row["segment"] is None
        else data["segments"][row["segment"]]["address"],
        "backend": None
        if row["backend"] is None
        else data["backends"][row["backend"]]["name"],
        "place": row["place"],
        "shape": None if row["shape"] is None else tuple(data["shapes"][row["shape"]]),
        "dtype": None if row["dtype"] is None else data["dtypes"][row["dtype"]],
        "maker": stack[0] if stack else None,
        "stack": stack,
        "freed": row["freed"],
    }


class _Samples:
    """The counters of backends at any time."""

    def __init__(self, memory):
        self.columns = {}
        for time, backend, allocated, reserved in zip(*memory.values(), strict=True):
            times, values = self.columns.setdefault(backend, ([], []))
            times.append(time)
            values.append({"allocated": allocated, "reserved": reserved})

    def at(self, backend, time):
        """Return the counters of a backend at a time, as fields of an event."""
        if backend not in self.columns:
            return {}
        times, values = self.columns[backend]
        position = bisect_right(times, time) - 1
        return values[position] if position >= 0 else {}
