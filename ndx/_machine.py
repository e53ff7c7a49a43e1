"""What the machine has, in bytes; each answer is a guess where it does not tell."""

import os

try:
    import resource
except ImportError:  # not on Windows
    resource = None

__all__ = [
    "address_space_is_rationed",
    "available_memory",
    "machine_memory",
    "memory_and_swap",
    "memory_for_pages",
    "read_ahead_of",
]

_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
_USED = (
    "/sys/fs/cgroup/memory.current",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes",
)


def machine_memory():
    """Return the bytes of memory that this process may use: the machine's, or less.

    Less where a control group (a container) has a limit of its own.
    """
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        total = 2**40
    limit = _read_number(_LIMITS)
    return total if limit is None else min(total, limit)


def memory_for_pages():
    """Return the bytes of files that are likely to stay in memory when they are read.

    Half of what is free or held by pages of files already, as far as the process's
    control group, or one that it is in, lets it have that.
    """
    available = _read_meminfo().get("MemAvailable", machine_memory())
    return min(available, machine_memory(), *_own_limits()) // 2


def read_ahead_of(fd):
    """Return the bytes that the system reads ahead of who reads a file in order."""
    try:
        device = os.fstat(fd).st_dev
        place = f"{os.major(device)}:{os.minor(device)}"
    except (AttributeError, OSError):
        return 0
    return 1024 * (_read_number((f"/sys/class/bdi/{place}/read_ahead_kb",)) or 0)


def memory_and_swap():
    """Return the bytes beyond which no single request can ever be served."""
    info = _read_meminfo()
    if "MemTotal" in info:
        # Not the control group's: its limit may be raised.
        return info["MemTotal"] + info.get("SwapTotal", 0)
    return 2**47


def available_memory():
    """Return the bytes that could be had now without pushing others out."""
    limit = machine_memory()
    available = _read_meminfo().get("MemAvailable", limit)
    used = _read_number(_USED)
    return available if used is None else max(0, min(available, limit - used))


def address_space_is_rationed():
    """Whether address space is limited, so that it should not be reserved freely."""
    if resource is None or not hasattr(resource, "RLIMIT_AS"):
        return True
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _own_limits():
    """Return the limits of the control groups that the process is in."""
    limits = []
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeError):
        return limits
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, name = "/sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        while path not in ("", "/"):
            limit = _read_number((f"{root}{path}/{name}",))
            if limit is not None:
                limits.append(limit)
            path = path.rpartition("/")[0]
    return limits


def _read_number(paths):
    for path in paths:
        try:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):  # not there, or "max"
            continue
    return None


def _read_meminfo():
    """Return what the kernel says of memory, in bytes by name; empty if nothing."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeError):
        return {}
    info = {}
    for line in lines:
        fields = line.split()
        if len(fields) == 3:
            info[fields[0].rstrip(":")] = 1024 * int(fields[1])
    return info
