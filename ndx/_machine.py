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
