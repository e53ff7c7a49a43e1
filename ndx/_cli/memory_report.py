"""The report of ``python -m ndx run``: peaks, spills, and why memory was refused."""

import atexit
import os
import sys
import time

import ndx
from ndx._lib.sizes import format_size

__all__ = ["explain", "report_at_exit"]

_ADVICE = (
    "python -m ndx run: give more by --limit, or put what exceeds it into files by "
    "--fallback mmap, whose --directory is on a disk with room for it"
)


def explain(error):
    """Say why NumPy had no memory, if that is the error that ends the program."""
    if isinstance(error, MemoryError) and error.__cause__ is None:
        ndx.memory.explain_error(error)
        if error.__cause__ is not None:
            error.add_note(_ADVICE)


def report_at_exit(placed):
    """Print the report when the program and its threads have ended.

    Parameters
    ----------
    placed : object
        What `Placement.begin` returns.
    """
    atexit.register(_print, placed, time.perf_counter(), os.getpid())


def _print(placed, start, process):
    # A forked child prints nothing.
    if os.getpid() == process:
        print(_text(placed, time.perf_counter() - start), file=sys.stderr)


def _text(placed, seconds):
    backend, fallback = placed.backend, placed.backend.fallback
    stats = backend.stats()
    count = stats["total_allocations"]
    lines = [_line(backend, stats["peak_bytes"], count)]
    if fallback is not None:
        peak, spilled = placed.spilled()
        folder = getattr(fallback, "directory", None)
        lines.append(_line(fallback, peak, spilled) + " spilled")
        lines[-1] += "" if folder is None else f" to files in {folder}"
        count += spilled
    return "\n".join([f"ndx run: {_counted(count)} in {seconds:.2f} s", *lines])


def _line(backend, peak, count):
    text = f"  {backend.name}: peak {format_size(peak)}"
    if backend.limit is not None:
        text += f" of {format_size(backend.limit)}"
    return f"{text}, {_counted(count)}"


def _counted(count):
    return f"{count} allocation{'s' * (count != 1)}"
