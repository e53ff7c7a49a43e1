"""The history of allocations in PyTorch's schema, from a running recording.

References
----------
PyTorch's ``TraceEntry`` and ``Frame``:
https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
"""

import re
import time

from ndx._recording.recorder import recorders
from ndx.memory._events import BIRTH, DEATH

__all__ = ["history_of"]

_LINE = re.compile(r"(?s)(?P<filename>.*):(?P<line>\d+) in (?P<name>.*)")


def history_of(backends):
    """Return (a list of events for each backend, the frames of live blocks).

    The frames are a dict for each backend, by address. Without a recording all are
    empty; of several recordings the first one is used, which has the most events.
    """
    traces, alive = [[] for _ in backends], [{} for _ in backends]
    recorder = next(iter(recorders()), None)
    if recorder is None:
        return traces, alive
    # The log's clock is not the calendar's.
    epoch = time.time_ns() - recorder.log.now()
    rows = recorder.log.rows()
    frames = [_frame(line) for line in recorder.lines]
    stacks = [[frames[line] for line in stack] for stack in recorder.stacks]
    positions = [_position(backends, entry[0]()) for entry in recorder.backends]
    births = {}
    for row in rows:
        kind, moment, subject, _, nbytes, address, _, _, _, backend, _, stack, *_ = row
        at = (epoch + moment) // 1000
        if kind == BIRTH:
            position = positions[backend] if backend >= 0 else None
            # A block without bytes has no address.
            if position is not None and nbytes:
                made = stacks[stack] if stack >= 0 else []
                births[subject] = position, address, nbytes
                alive[position][address] = made
                event = _event("alloc", address, nbytes, at, made)
                traces[position].append(event)
        elif kind == DEATH and subject in births:
            position, address, nbytes = births.pop(subject)
            alive[position].pop(address, None)
            event = _event("free_completed", address, nbytes, at, [])
            traces[position].append(event)
    return traces, alive


def _event(action, address, nbytes, time_us, frames):
    return {
        "action": action,
        "addr": address,
        "size": nbytes,
        "stream": 0,
        "time_us": time_us,
        "frames": frames,
    }


def _position(backends, wanted):
    return next((i for i, each in enumerate(backends) if each is wanted), None)


def _frame(line):
    found = _LINE.fullmatch(line)
    return {**found.groupdict(), "line": int(found["line"])}
