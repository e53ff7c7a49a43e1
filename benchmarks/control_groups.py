"""Control groups of Linux (cgroups) that bound the memory of benchmarks' processes."""

import contextlib
import os
from pathlib import Path


class Unable(Exception):
    """The machine does not allow the measurement; says why."""


@contextlib.contextmanager
def control_group(nbytes, swap=False):
    """Make a control group with a limit on memory; yield its folder."""
    root = Path("/sys/fs/cgroup")
    if (root / "memory").is_dir():
        path, limit = root / "memory", "memory.limit_in_bytes"
    elif "memory" in read(root / "cgroup.controllers").split():
        path, limit = root, "memory.max"
    else:
        raise Unable(f"{root} has no controller of memory")
    path = path / f"ndx-benchmark-{os.getpid()}"
    try:
        if limit == "memory.max":
            (root / "cgroup.subtree_control").write_text("+memory")
        path.mkdir()
    except OSError as error:
        raise Unable(f"no control group can be made: {error}") from None
    try:
        try:
            (path / limit).write_text(str(nbytes))
        except OSError as error:
            raise Unable(f"{path / limit} can't be set: {error}") from None
        bounds = {"memory.memsw.limit_in_bytes": nbytes, "memory.swap.max": 0}
        for name, most in () if swap else bounds.items():
            # Without swap, where the system counts it: memory is what is measured.
            with contextlib.suppress(OSError):
                (path / name).write_text(str(most))
        yield path
    finally:
        with contextlib.suppress(OSError):
            path.rmdir()


def read(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def join(group):
    """Put this process into a group."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def counters(group):
    """Return the peak of a group's memory, and how many of its processes were killed.

    Returns
    -------
    tuple of (int or None, int)
        Bytes (None: this kernel does not tell), and processes killed for want of
        memory.
    """
    peak = read(group / "memory.max_usage_in_bytes") or read(group / "memory.peak")
    events = read(group / "memory.oom_control") or read(group / "memory.events")
    counts = dict(line.split() for line in events.splitlines())
    return int(peak) if peak else None, int(counts.get("oom_kill", 0))
