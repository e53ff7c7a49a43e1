"""Recording what happens to the arrays of a program, until its process ends."""

import atexit
import os
import sys

import ndx

__all__ = ["new_trace", "save_at_exit"]


def new_trace(output, max_events=1_000_000, stacks=4):
    """Return a trace; raise ValueError if it can't be saved as `output`."""
    trace = ndx.memory.record(max_events=max_events, stacks=stacks)
    trace.check_path(output)
    return trace


def save_at_exit(trace, output, if_empty=""):
    """Start a trace, and save it when the program and its threads have ended.

    Parameters
    ----------
    trace : ndx.memory.Trace
    output : str
        The file.
    if_empty : str
        What to say if no array was made.
    """
    trace.__enter__()
    # The program may change the working directory.
    path = os.path.abspath(output)
    atexit.register(_save, trace, output, path, os.getpid(), if_empty)


def _save(trace, output, path, process, if_empty):
    # A forked child saves nothing.
    if os.getpid() != process:
        return
    trace.__exit__(None, None, None)
    text = trace.summary()
    if if_empty and not trace.dropped and not trace.to_dict()["arrays"]["born"]:
        text = f"{text}\n\n{if_empty}"
    try:
        trace.save(path)
    except OSError as error:
        print(f"{text}\n\ncan't be saved: {error}", file=sys.stderr)
    else:
        print(f"{text}\n\nsaved as {output}", file=sys.stderr)
