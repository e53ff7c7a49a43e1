"""Which tests a sanitizer's build leaves out, and why; and forks there."""

import os
import threading
import time
from pathlib import Path

import pytest

PRELOADED = os.environ.get("LD_PRELOAD", "")
SANITIZED = "asan" in PRELOADED or "tsan" in PRELOADED

# They keep pages and address space of their own, and mark what is reserved in a shadow.
counts_pages = pytest.mark.skipif(SANITIZED, reason="counts what sanitizers add")
handles_signals = pytest.mark.skipif(
    SANITIZED, reason="sanitizers handle these signals themselves"
)
writes_out_of_bounds = pytest.mark.skipif(
    SANITIZED, reason="sanitizers find these writes first"
)
locks_pages = pytest.mark.skipif(SANITIZED, reason="sanitizers ignore mlock")


def sleeping(task):
    """Return whether a thread of this process sleeps or has ended."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] not in "RD"
    except (FileNotFoundError, ProcessLookupError):
        return True


def await_other_threads(seconds=2.0):
    """Wait until the other threads of the process sleep.

    AddressSanitizer of GCC 12 forks without the locks of its allocator: a child waits
    for ever for one that another thread had. A thread that has ended for Python may
    still free its memory.
    """
    me = str(threading.get_native_id())
    others = [task for task in Path("/proc/self/task").iterdir() if task.name != me]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not all(map(sleeping, others)):
        # Not `time.sleep`, which gives up the GIL, so that others run.
        pass
