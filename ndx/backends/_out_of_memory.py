"""The error of a refused request: the reason, the largest blocks, the remedies."""

import os

from ndx._lib.device import device_of
from ndx._lib.errors import OutOfMemoryError
from ndx._lib.sizes import format_size
from ndx._lib.system import available_memory, default_directory, why_refused
from ndx.backends._budget import (
    gpu_limits,
    gpu_reserved,
    process_limit,
    process_reserved,
    resident_bound,
    resident_nbytes,
)
from ndx.backends._pressure import (
    held_arenas,
    innermost,
    is_adaptor,
    largest_makers,
    may_have_room,
)

__all__ = ["error"]

_MOST_ARENAS = 8


def error(nbytes, refusals):
    """Return the exception for a request.

    Parameters
    ----------
    nbytes : int
        What was asked for.
    refusals : list of (Backend, str, Exception or None)
        Who was asked, the reason of each (see `OutOfMemoryError`), and what its code
        in Python has raised: the backend, then those that serve where it can't.
    """
    backend, reason, raised = refusals[0]
    stats = backend.stats()
    allocated, reserved = stats["allocated_bytes"], stats["reserved_bytes"]
    cached = stats.get("cached_bytes", 0)
    largest = stats.get("largest_free_bytes", 0)
    device_free, device_total = backend.memory_info()
    cause, remedies = _explain(backend, nbytes, reason, raised)
    remedies = ["drop arrays that you no longer need, or use smaller ones", *remedies]
    arenas = held_arenas(backend)
    if not all(each.is_open for each in arenas):
        remedies.append(
            "give back the arenas of closed workspaces: ndx.memory.destroy_all()"
        )
    fallback = _fallback_that_would_do(backend, nbytes, reason)
    if len(refusals) == 1 and fallback:
        remedies.append(
            f"let another backend serve what does not fit: ndx.use({backend.name!r}, "
            f"fallback={fallback!r})"
        )
    advice = "; or ".join(remedies)
    if cached >= nbytes > largest:
        advice += (
            f". {format_size(cached)} of it are free, but in pieces of at most "
            f"{format_size(largest)}"
        )
    text = (
        f"backend {backend.name!r} can't allocate {format_size(nbytes)} ({nbytes} "
        f"bytes): {cause}, and {_holdings(backend, stats)}. "
    )
    for other, *why in refusals[1:]:
        text += f"Nor can {other.name!r}: {_explain(other, nbytes, *why)[0]}. "
    if getattr(backend, "options", None) and backend.options.evict and reason != "size":
        text += _of_eviction(backend, nbytes)
    text += (
        f"To go on, {advice}.{_table(backend, stats['allocated_count'])}"
        f"{_arenas(arenas)}{_makers(backend)}"
    )
    made = OutOfMemoryError(
        text,
        nbytes,
        allocated,
        reserved,
        stats["limit"],
        backend.name,
        cached=cached,
        largest_free=largest,
        device_free=device_free,
        device_total=device_total,
        reason=reason,
    )
    made.__cause__ = raised
    return made


def _of_eviction(backend, nbytes):
    """Return why no more arrays have left."""
    place = backend.options.evict
    left = backend._evictable_nbytes()
    if not left:
        return (
            f"No array could leave for {place.name!r} (evict=): what is left is in "
            "use, read by a NumPy view, in a workspace, or below 64 KiB. "
        )
    text = f"Arrays of {format_size(left)} did not leave for {place.name!r} (evict=): "
    if not may_have_room(place, min(left, nbytes)):
        return f"{text}it has no room either; raise its limit. "
    return (
        f"{text}they are in use or read by a NumPy view, they would not be enough, or "
        "it can't take them. "
    )


def _explain(backend, nbytes, reason, raised):
    """Return why a backend refused, and what may be done about that."""
    if reason == "adaptor":
        return _of_adaptor(backend, nbytes)
    if reason == "fork":
        return "it is memory of another process, of which this one is a fork", []
    backend = innermost(backend)
    limit = backend.limit
    arena = getattr(backend, "arena_nbytes", 0)
    if reason == "process":
        return _of_process()
    if reason == "ndx":
        return _of_ndx()
    if reason == "device":
        return _of_device(backend)
    if reason == "limit" or (reason == "size" and limit is not None and nbytes > limit):
        return _of_limit(backend, limit)
    if reason == "arena" or (reason == "size" and arena and nbytes > arena):
        return (
            f"its arena of {format_size(arena)} has no room for it",
            [f"make the arena larger: ndx.use({backend.name!r}, initial=...)"],
        )
    if reason == "size":
        return _of_size(backend)
    if reason == "source":
        return _of_source(backend, nbytes)
    if raised is not None and str(raised):
        return f"it says: {raised}", []
    return f"the system has no more{why_refused()}", []


def _of_limit(backend, limit):
    if limit is None:
        # The limit was raised meanwhile, by another thread.
        return "its limit forbade it", []
    page = getattr(backend, "page_nbytes", 0)
    remedy = f"raise the limit: ndx.use({backend.name!r}, limit=...)"
    if limit < page:
        remedy += f"; memory comes in pages of {page} bytes, so it admits nothing"
    return f"its limit is {format_size(limit)} ({limit} bytes)", [remedy]


def _of_device(backend):
    limit = gpu_limits().get(backend.gpu)
    if limit is None:
        # The limit was raised meanwhile, by another thread.
        return "the limit of its device forbade it", []
    # Whose memory it is, which another may use.
    device = str(device_of(backend.gpu))
    text = (
        f"the limit of {device!r} is {format_size(limit)} ({limit} bytes), of "
        f"which all backends together hold {format_size(gpu_reserved(backend.gpu))}"
    )
    remedy = f"raise the limit: ndx.memory.set_limit(..., device={device!r})"
    return text, [remedy]


def _of_process():
    limit = resident_bound()
    if limit is None:
        # The limit was raised meanwhile, by another thread.
        return "the limit of the process forbade it", []
    held = process_reserved()
    present = max(resident_nbytes(), held)
    text = (
        f"the process may have {format_size(limit)} ({limit} bytes) in memory, and "
        f"has {format_size(present)}, of which ndx holds {format_size(held)}"
    )
    return text, ["raise the limit: ndx.memory.set_limit(process=...)"]


def _of_ndx():
    limit = process_limit()
    if limit is None:
        return "the limit of ndx forbade it", []
    cause = (
        f"the limit of ndx is {format_size(limit)} ({limit} bytes), of which all "
        f"backends together hold {format_size(process_reserved())}"
    )
    return cause, ["raise the limit: ndx.memory.set_limit(...)"]


def _of_size(backend):
    """Explain a request for more than the memory, disk or device has in all."""
    place = getattr(backend, "place", None)
    total = backend.memory_info()[1]
    if place is not None:
        size = "too little" if total is None else f"{format_size(total)} in all"
        return (
            f"the file system of {place!r} has {size}",
            ["give ndx.use a directory on a larger disk"],
        )
    if getattr(backend, "resource", None) == "machine":
        return "it is more than the machine has of memory and swap space", []
    size = "less" if total is None else f"{format_size(total)} in all"
    return f"its device has {size}", []


def _of_source(backend, nbytes):
    """Explain a full disk or device: how much of it is in use."""
    place = getattr(backend, "place", None)
    free, total = backend.memory_info()
    if place is None:
        if free is None:
            return "its device has no more", []
        if getattr(backend, "resource", None) == "machine":
            what = "the system gives no more page-locked memory; the machine"
        else:
            what = "its device"
        text = f"{what} has {format_size(free)} free of {format_size(total)}"
        if free >= nbytes:
            text += ", in pieces that are too small or for others only"
        return text, []
    text = f"there is no more room in {place!r}"
    if free is not None:
        text += f", whose file system has {format_size(free)} left"
        if free > nbytes:
            text += " (there are quotas, or a limit on files: ulimit -f)"
    return text, ["give ndx.use another directory"]


def _of_adaptor(backend, nbytes):
    """Explain a request that an adaptor refused: which adaptor."""
    found = backend
    while is_adaptor(found):
        bound = getattr(found, "allowed", None)
        if bound is not None:
            live = found.stats()["allocated_bytes"]
            if live + nbytes > bound:
                cause = (
                    f"its {type(found).__name__} lets no more than "
                    f"{format_size(bound)} ({bound} bytes) be live at once"
                )
                return cause, ["give the adaptor a larger bound"]
        found = found.upstream
    return f"its {type(backend).__name__} did not let it pass", []


def _fallback_that_would_do(backend, nbytes, reason):
    """Return the name of a backend that would have served the request, or None."""
    if reason == "adaptor" or getattr(backend, "fallback", ...) is not None:
        # An adaptor takes no such option, nor do backends without a pool.
        return None
    if backend.device_number:
        of_gpu = backend.name == backend.device
        return "host" if of_gpu and available_memory() > nbytes else None
    if getattr(backend, "place", None) is not None:
        return None
    try:
        disk = os.statvfs(default_directory())
    except (OSError, AttributeError):  # Windows has no statvfs
        return None
    return "mmap" if disk.f_bavail * disk.f_frsize > nbytes else None


def _holdings(backend, stats):
    """Return what a backend holds, as a part of a sentence."""
    live = f"{format_size(stats['allocated_bytes'])} in {stats['allocated_count']} "
    if is_adaptor(backend):
        return f"it has {live}arrays"
    reserved = format_size(stats["reserved_bytes"])
    return f"it holds {live}arrays ({reserved} reserved)"


def _table(backend, count):
    """Return the largest holders as lines of a message."""
    holders = backend.largest_live()
    if not holders:
        return ""
    if is_adaptor(backend):
        whose = f"all ranges of the backend {backend.name!r} that is behind it"
    else:
        whose = f"its {count} ranges"
    lines = [f"\nThe largest of {whose}:"]
    lines += [
        f"  {number:>6} x {format_size(size):>10} = {format_size(size * number):>10}"
        for size, number in holders
    ]
    return "\n".join(lines)


def _arenas(arenas):
    """Return the arenas of workspaces among the ranges, as lines of a message."""
    if not arenas:
        return ""
    found = sorted(arenas, key=lambda each: -each.nbytes)[:_MOST_ARENAS]
    lines = [
        f"  {format_size(each.nbytes):>10} of {each.workspace!r}, which is "
        f"{'open' if each.is_open else 'closed'}"
        for each in found
    ]
    left = len(arenas) - len(found)
    if left:
        lines.append(f"  and {left} more")
    return "\n".join(["\nOf these, arenas of workspaces:", *lines])


def _makers(backend):
    """Return the lines of code that made most live memory, as lines of a message."""
    makers = largest_makers(backend)
    if not makers:
        return ""
    lines = [
        f"  {max(count, 0):>6} arrays, {format_size(nbytes):>10}: {line or 'not known'}"
        for line, nbytes, count in makers
    ]
    return "\n".join(["\nIt was made by:", *lines])
