"""The control groups (cgroups) that bound this process's memory and cores, on Linux.

A container, a systemd unit or a Slurm job is such a group, of version 1 or 2. The
limits of all parent groups count, too. If a container sees only a part of the tree,
``/proc/self/mountinfo`` says which part.
"""

import os
import posixpath
import re
from typing import NamedTuple

__all__ = ["Group", "cpu_quota", "memory_group", "memory_groups"]

# Larger limits mean "no limit": version 1 reports the largest number of pages.
_UNLIMITED = 2**62

_OCTAL = r"\\([0-7]{3})"


class Group(NamedTuple):
    """A limit on memory and its use, in bytes."""

    limit: int
    used: int


def memory_group(root="/"):
    """Return the smallest limit on the process's memory, and the bytes that are left.

    Parameters
    ----------
    root : str
        The folder that has ``proc`` and ``sys``.

    Returns
    -------
    tuple of (int or None, int or None)
        The limit, and the bytes that can be allocated without exceeding any limit; None
        if there is no limit.
    """
    groups = memory_groups(root)
    if not groups:
        return None, None
    return (
        min(group.limit for group in groups),
        min(max(0, group.limit - group.used) for group in groups),
    )


def memory_groups(root="/"):
    """Return the process's groups that have a limit, from its own to the root."""
    groups = [_read_group(*place) for place in _folders(root, "memory")]
    return [group for group in groups if group is not None]


def cpu_quota(root="/"):
    """Return how many cores' time the process's groups allow; None if not limited."""
    quotas = [_read_quota(*place) for place in _folders(root, "cpu")]
    return min((quota for quota in quotas if quota is not None), default=None)


def _folders(root, controller):
    """Return (folder, version) of the process's groups, from its own to the root."""
    found = []
    paths = _own_paths(root, controller)
    for version, top, seen in _mounts(root, controller):
        at = _below(paths.get(version, "/"), seen)
        while True:
            found.append((_join(root, top, at), version))
            if at == "/":
                break
            at = posixpath.dirname(at)
    return found


def _own_paths(root, controller):
    """Return the path of the process's group, by version of the hierarchy."""
    paths = {}
    for line in _read(_join(root, "/proc/self/cgroup")).splitlines():
        fields = line.split(":", 2)
        if len(fields) != 3:
            continue
        _, controllers, path = fields
        if not controllers:
            paths[2] = path
        elif controller in controllers.split(","):
            paths[1] = path
    return paths


def _mounts(root, controller):
    """Return (version, mount point, group at the mount point) of each hierarchy."""
    found = []
    for line in _read(_join(root, "/proc/self/mountinfo")).splitlines():
        before, separator, after = line.partition(" - ")
        fields, rest = before.split(), after.split()
        if not separator or len(fields) < 5 or not rest:
            continue
        if rest[0] == "cgroup2":
            version = 2
        elif rest[0] == "cgroup" and controller in rest[-1].split(","):
            version = 1
        else:
            continue
        found.append((version, _unescape(fields[4]), _unescape(fields[3])))
    # Fallback: the usual mount points.
    return found or [
        (2, "/sys/fs/cgroup", "/"),
        (1, f"/sys/fs/cgroup/{controller}", "/"),
    ]


def _below(path, seen):
    """Return the path of a group relative to the group at a mount point."""
    path, seen = posixpath.normpath(path), posixpath.normpath(seen)
    if ".." in path.split("/"):
        # The group lies outside of the process's cgroup namespace.
        return "/"
    if seen != "/":
        if path != seen and not path.startswith(seen + "/"):
            return "/"
        path = path[len(seen) :]
    return "/" + path.strip("/")


def _read_group(folder, version):
    """Return the limit of a group and its used bytes; None if it has no limit."""
    names = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        if version == 1
        else ("memory.max", "memory.current", "inactive_file")
    )
    limit = _number(_read(posixpath.join(folder, names[0])))
    if limit is None or limit >= _UNLIMITED:
        return None
    used = _number(_read(posixpath.join(folder, names[1]))) or 0
    # Inactive pages of files count as used, but the kernel reclaims them on demand.
    for line in _read(posixpath.join(folder, "memory.stat")).splitlines():
        name, _, value = line.partition(" ")
        if name == names[2]:
            used -= min(used, _number(value) or 0)
    return Group(limit, used)


def _read_quota(folder, version):
    """Return the cores' worth of CPU time of a group; None if it has no limit."""
    if version == 1:
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        texts = [_read(posixpath.join(folder, name)) for name in names]
    else:
        texts = _read(posixpath.join(folder, "cpu.max")).split()
    quota, period = (_number(text) for text in (*texts, "", "")[:2])
    return quota / period if quota and period and quota > 0 and period > 0 else None


def _join(root, *parts):
    """Return a path below the root; all parts are absolute."""
    return os.path.join(root, *(part.lstrip("/") for part in parts))


def _unescape(text):
    r"""Return a path of mountinfo, where a space is written as ``\040``."""
    return re.sub(_OCTAL, lambda match: chr(int(match[1], 8)), text)


def _number(text):
    try:
        return int(text)
    except ValueError:  # "max", or no such file
        return None


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
