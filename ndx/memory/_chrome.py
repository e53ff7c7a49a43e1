"""Traces in Chrome's trace event format, for Perfetto and other viewers.

References
----------
Trace Event Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

import json

from ndx._lib.sizes import format_size
from ndx.memory._events import list_events
from ndx.memory._timeline import curve_of

__all__ = ["chrome_json"]

_PROCESS = 1


def chrome_json(data):
    """Return a trace as text: counters, scopes on their threads, arrays as spans."""
    events = [_name("process_name", 0, "ndx memory")]
    events += [
        _name("thread_name", number + 1, name)
        for number, name in enumerate(data["threads"])
    ]
    events += _counters(data) + _scopes(data) + _arrays(data)
    return json.dumps(
        {
            "traceEvents": events,
            "displayTimeUnit": "ms",
            "otherData": {
                "started": data["started"],
                "dropped": data["dropped"],
                "missed": data["missed"],
            },
        }
    )


def _name(kind, thread, name):
    return {
        "ph": "M",
        "name": kind,
        "pid": _PROCESS,
        "tid": thread,
        "args": {"name": name},
    }


def _counter(name, time, values):
    return {
        "ph": "C",
        "name": name,
        "pid": _PROCESS,
        "tid": 0,
        "ts": time / 1000,
        "args": values,
    }


def _counters(data):
    times, sums = curve_of(data["arrays"])
    events = [
        _counter("live arrays", time, {"bytes": total})
        for time, total in zip(times, sums, strict=True)
    ]
    for time, backend, allocated, reserved in zip(
        *data["memory"].values(), strict=True
    ):
        # A track for each of two backends of one name.
        name = f"backend {data['backends'][backend]['name']} ({backend})"
        values = {"allocated": allocated, "reserved": reserved}
        events.append(_counter(name, time, values))
    return events


def _scopes(data):
    events = []
    for begin, end, workspace, generation, size, thread in zip(
        *data["scopes"].values(), strict=True
    ):
        events.append(
            {
                "ph": "X",
                "cat": "workspace",
                "name": data["workspaces"][workspace]["name"],
                "pid": _PROCESS,
                "tid": 0 if thread is None else thread + 1,
                "ts": begin / 1000,
                "dur": ((data["end"] if end is None else end) - begin) / 1000,
                "args": {"generation": generation, "arena bytes": size},
            }
        )
    for begin, end, name, thread in zip(*data["phases"].values(), strict=True):
        events.append(
            {
                "ph": "X",
                "cat": "phase",
                "name": data["phase_names"][name],
                "pid": _PROCESS,
                "tid": 0 if thread is None else thread + 1,
                "ts": begin / 1000,
                "dur": ((data["end"] if end is None else end) - begin) / 1000,
                "args": {},
            }
        )
    return events


def _arrays(data):
    """Return begins and ends of asynchronous spans; live arrays end with the trace."""
    events = []
    for event in list_events(data):
        if event.kind == "allocate":
            events.append(_span("b", event, event.time, _arguments(event)))
            if event.freed is None:
                events.append(_span("e", event, data["end"] / 1e9, {}))
        elif event.kind == "free":
            events.append(_span("e", event, event.time, {"freed": event.freed}))
    return events


def _span(phase, event, time, arguments):
    shape = "" if event.shape is None else f" {event.shape}"
    what = "NumPy's data" if event.dtype is None else f"{event.dtype}{shape}"
    return {
        "ph": phase,
        "cat": "array",
        "id": event.array,
        "name": f"{what}, {format_size(event.nbytes)}",
        "pid": _PROCESS,
        "tid": 0,
        "ts": time * 1e6,
        "args": arguments,
    }


def _arguments(event):
    found = event._asdict()
    for name in ("time", "kind", "array", "allocated", "reserved"):
        del found[name]
    found["address"] = hex(event.address)
    return {name: value for name, value in found.items() if value not in (None, ())}
