"""The history of allocations in PyTorch's schema, from a recording that goes on.

References
----------
PyTorch's ``TraceEntry`` and ``Frame``:
https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
"""

import re
import time

from ndx._recording import recorders
from ndx.memory._log import read_log

__all__ = ["history_of"]

_LINE = re.compile(r"(?s)(?P<filename>.*):(?P<line>\d+) in (?P<name>.*)")
_FREED, _BORN, _FREED_AT_ONCE = range(3)


def history_of(backends):
    """Return (a list of events for each backend, the frames of what is alive).

    The frames are a dict for each backend, by address. All are empty while nothing is
    recorded; of several recordings the first one counts, which knows the most.
    """
    traces, alive = [[] for _ in backends], [{} for _ in backends]
    recorder = next(iter(recorders()), None)
    if recorder is None:
        return traces, alive
    data = read_log(recorder)
    # Its clock is not the calendar's.
    start = time.time_ns() - (recorder.log.now() - recorder.log.begin)
    frames = [_frame(line) for line in data["lines"]]
    stacks = [[frames[line] for line in stack] for stack in data["stacks"]]
    positions = [_position(backends, entry[0]()) for entry in recorder.backends]
    events = []
    arrays = data["arrays"]
    for i, backend in enumerate(arrays["backend"]):
        position = None if backend is None else positions[backend]
        # What has no bytes has no address.
        if position is None or not arrays["nbytes"][i]:
            continue
        born, died = arrays["born"][i], arrays["died"][i]
        stack = arrays["stack"][i]
        made = [] if stack is None else stacks[stack]
        entry = {
            "addr": arrays["address"][i],
            "size": arrays["nbytes"][i],
            "stream": 0,
            "time_us": (start + born) // 1000,
        }
        allocated = {"action": "alloc", **entry, "frames": made}
        events.append((born, _BORN, position, allocated))
        if died is None:
            alive[position][entry["addr"]] = made
            continue
        entry["time_us"] = (start + died) // 1000
        freed = {"action": "free_completed", **entry, "frames": []}
        order = _FREED if died > born else _FREED_AT_ONCE
        events.append((died, order, position, freed))
    # Of equal times: an address is freed before it is had again.
    for _, _, position, event in sorted(events, key=lambda found: found[:2]):
        traces[position].append(event)
    return traces, alive


def _position(backends, wanted):
    return next((i for i, each in enumerate(backends) if each is wanted), None)


def _frame(line):
    found = _LINE.fullmatch(line)
    return {**found.groupdict(), "line": int(found["line"])}
