"""What a program's arrays took, and why it got no more: ``python -m ndx run``."""

import atexit
import os
import sys
import time

from ndx._context.use import explain_refusal
from ndx._lib.sizes import format_size

__all__ = ["explain", "report_at_exit"]

_ADVICE = (
    "python -m ndx run: give more by --limit, or put what exceeds it into files by "
    "--fallback mmap, whose --directory is on a disk with room for it"
)


def explain(error):
    """Say why NumPy had no memory, if that is the error that ends the program."""
    if isinstance(error, MemoryError) and error.__cause__ is None:
        explain_refusal(error)
        if error.__cause__ is not None:
            error.add_note(_ADVICE)


def report_at_exit(backend):
    """Print the report when the program and its threads have ended."""
    atexit.register(_print, backend, time.perf_counter(), os.getpid())


def _print(backend, start, process):
    # A forked child prints nothing.
    if os.getpid() == process:
        print(_text(backend, time.perf_counter() - start), file=sys.stderr)


def _text(backend, seconds):
    """Return the report on a backend and its fallback; `seconds` is the time."""
    used = [each for each in (backend, backend.fallback) if each is not None]
    rows = [(each, each.stats()) for each in used]
    count = sum(stats["total_allocations"] for _, stats in rows)
    lines = [f"ndx run: {_counted(count)} in {seconds:.2f} s"]
    lines += [_line(each, stats, each is not backend) for each, stats in rows]
    return "\n".join(lines)


def _line(backend, stats, is_fallback):
    text = (
        f"  {backend.name}: peak {format_size(stats['peak_bytes'])}, "
        f"{_counted(stats['total_allocations'])}"
    )
    if is_fallback:
        text += " spilled"
        folder = getattr(backend, "directory", None)
        text += "" if folder is None else f" to files in {folder}"
    if backend.limit is not None:
        text += f", limit {format_size(backend.limit)}"
    return text


def _counted(count):
    return f"{count} allocation{'s' * (count != 1)}"
