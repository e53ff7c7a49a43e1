"""The machine's resources, in bytes; estimates if the system reports nothing."""

import math
import os
import sys

from ndx._lib.control_groups import cpu_quota, memory_group

__all__ = [
    "address_space_is_rationed",
    "available_memory",
    "bound_memory_for_pages",
    "default_directory",
    "file_system_type",
    "huge_page_size",
    "in_memory_file_system",
    "is_in_shared_memory",
    "locked_ranges",
    "machine_memory",
    "memory_and_swap",
    "memory_for_pages",
    "peak_resident_memory",
    "physical_memory",
    "read_ahead_of",
    "usable_cores",
    "why_not_locked",
    "why_refused",
]


def machine_memory(root="/"):
    """Return the bytes of memory that this process may use.

    This is the machine's memory, or the limit of the process's control group (a
    container, a systemd unit, a job) or of a parent group, if that is less.
    """
    limit, _ = memory_group(root)
    total = physical_memory(root)
    return total if limit is None else min(total, limit)


def physical_memory(root="/"):
    """Return the bytes of memory that the machine has."""
    info = _read_meminfo(root)
    if "MemTotal" in info:
        return info["MemTotal"]
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**40


# What a process that is watched by another one allows itself; see below.
_most_for_pages = math.inf


def memory_for_pages(root="/"):
    """Return the bytes of files that are likely to stay in the page cache when read.

    This is half of the memory that is free or in the page cache, bounded by the limits
    of the process's control groups, and by `bound_memory_for_pages`.
    """
    most = machine_memory(root)
    free = min(_read_meminfo(root).get("MemAvailable", most), most)
    return min(free // 2, _most_for_pages)


def bound_memory_for_pages(nbytes):
    """Set the most that `memory_for_pages` returns; None for no bound.

    The system takes pages of files back when it needs memory. A supervisor that counts
    them as resident memory, and ends the process above a limit, does not.
    """
    global _most_for_pages
    _most_for_pages = math.inf if nbytes is None else nbytes


def read_ahead_of(fd):
    """Return the bytes that the system reads ahead when a file is read in order."""
    try:
        device = os.fstat(fd).st_dev
        place = f"{os.major(device)}:{os.minor(device)}"
    except (AttributeError, OSError):
        return 0
    return 1024 * (_read_number((f"/sys/class/bdi/{place}/read_ahead_kb",)) or 0)


def memory_and_swap():
    """Return the size beyond which no single request can ever be served, in bytes."""
    info = _read_meminfo()
    if "MemTotal" in info:
        # Not the control group's: its limit may be raised.
        return info["MemTotal"] + info.get("SwapTotal", 0)
    return 2**47


def available_memory(root="/"):
    """Return the bytes that can be allocated now without swapping."""
    limit, left = memory_group(root)
    most = physical_memory(root) if limit is None else limit
    available = _read_meminfo(root).get("MemAvailable", most)
    return available if left is None else min(available, left)


def peak_resident_memory(pid=None, root="/"):
    """Return the most bytes of memory that a process has had, as the system says.

    Pages of mapped files count while they are in memory. 0 if the system does not tell;
    without /proc it does for this process (None) only.
    """
    # Not `getrusage`, which on Linux also counts the program before an `exec`.
    name = "self" if pid is None else str(pid)
    for line in _lines(os.path.join(root, "proc", name, "status")):
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    resource = _resource()
    if resource is None or pid is not None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def usable_cores(root="/"):
    """Return how many cores the process may use.

    These are the cores of its affinity, and no more than its control groups have CPU
    time for; a part of a core counts as one.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    quota = cpu_quota(root)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def default_directory():
    """Return the default directory for temporary memory in files.

    This is the directory of ``TMPDIR`` if that is set, else ``/var/tmp``: it is meant
    for large files, while ``/tmp`` is often in memory.
    """
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK):
        return "/var/tmp"
    import tempfile

    return tempfile.gettempdir()


def file_system_type(path, root="/"):
    """Return the kind of file system that a path is on, such as ``"ext4"``.

    Returns
    -------
    str or None
        None if the system does not tell.
    """
    try:
        device = os.stat(path).st_dev
        place = f"{os.major(device)}:{os.minor(device)}"
        name = os.path.join(root, "proc/self/mountinfo")
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except (AttributeError, OSError):
        return None
    for line in lines:
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if separator and len(fields) > 2 and fields[2] == place:
            return after.split()[0]
    return None


def in_memory_file_system(path):
    """Return the kind of file system of a path if it is in memory itself, else None."""
    kind = file_system_type(path)
    return kind if kind in ("ramfs", "tmpfs") else None


def is_in_shared_memory(path):
    """Whether a file is in the memory that Linux has for files of several processes."""
    try:
        return os.stat(path).st_dev == os.stat("/dev/shm").st_dev
    except OSError:
        return False


def why_refused():
    """Return a likely reason why the system refuses memory, for error messages."""
    resource = _resource()
    if resource is not None and hasattr(resource, "RLIMIT_AS"):
        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            return f" (the process may have {most} bytes of address space: ulimit -v)"
    ranges = _read_number(("/proc/sys/vm/max_map_count",))
    if ranges is not None and _count_lines("/proc/self/maps") >= ranges - 16:
        return (
            f" (the process has the most mappings there can be: {ranges}, "
            "vm.max_map_count)"
        )
    if _read_number(("/proc/sys/vm/overcommit_memory",)) == 2:
        return " (it promises no more than it has: vm.overcommit_memory is 2)"
    return ""


def huge_page_size(root="/"):
    """Return the bytes of a transparent huge page; 0 if the system has none."""
    folder = os.path.join(root, "sys/kernel/mm/transparent_hugepage")
    if all("[never]" in line for line in _lines(os.path.join(folder, "enabled"))):
        return 0
    return _read_number((os.path.join(folder, "hpage_pmd_size"),)) or 0


def locked_ranges(root="/"):
    """Return the ranges that are locked in memory, as (start, bytes).

    Returns
    -------
    list or None
        None if the system does not tell.
    """
    ranges, known, low, high = [], False, 0, 0
    for line in _lines(os.path.join(root, "proc/self/smaps")):
        first, *rest = line.split()
        if first == "VmFlags:":
            known = True
            if "lo" in rest:
                ranges.append((low, high - low))
        elif not first.endswith(":"):
            low, high = (int(each, 16) for each in first.split("-"))
    return ranges if known else None


def why_not_locked(error, nbytes, root="/"):
    """Return why the system refused to lock pages, for error messages.

    Parameters
    ----------
    error : int
        What it answered, as in `errno`.
    nbytes : int
        How much was to be locked.
    """
    resource = _resource()
    status = _lines(os.path.join(root, "proc/self/status"))
    has = sum(1024 * int(line.split()[1]) for line in status if line[:6] == "VmLck:")
    if resource is not None and hasattr(resource, "RLIMIT_MEMLOCK"):
        most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        if most != resource.RLIM_INFINITY and has + nbytes > most:
            return (
                f"the process may lock {most} bytes of memory, of which it has locked "
                f"{has}: raise that limit (ulimit -l)"
            )
    return f"the system did not lock the pages: {os.strerror(error)}"


def address_space_is_rationed():
    """Whether address space is limited, so that it should not be reserved freely."""
    resource = _resource()
    if resource is None or not hasattr(resource, "RLIMIT_AS"):
        return True
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _read_number(paths):
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                return int(file.read())
        except (OSError, ValueError):  # not there, or "max"
            continue
    return None


def _count_lines(path):
    try:
        with open(path, "rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def _resource():
    """Return Python's module `resource`; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    return resource


def _read_meminfo(root="/"):
    """Return the entries of ``/proc/meminfo`` in bytes; empty if there are none."""
    info = {}
    for line in _lines(os.path.join(root, "proc/meminfo")):
        fields = line.split()
        if len(fields) == 3:
            info[fields[0].rstrip(":")] = 1024 * int(fields[1])
    return info


def _lines(path):
    """Return the lines of a file of the system; none if it can't be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeError):
        return []
