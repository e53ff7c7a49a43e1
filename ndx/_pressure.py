"""What is done when a backend has no more memory, and how that is reported."""

import weakref

from ndx._budget import process_limit, process_reserved
from ndx._errors import OutOfMemoryError
from ndx._sizes import format_size

__all__ = [
    "add_callback",
    "error",
    "pooled",
    "release_idle",
    "relieve",
    "remove_callback",
]

# Backends that keep idle memory, which others may need more.
pooled = weakref.WeakSet()

# Turns of one callback for one request: one that always says yes may not hang it.
TURNS = 3

_callbacks = []


def add_callback(callback):
    """Have a function called when memory is short; see `ndx.memory.on_oom`."""
    if not callable(callback):
        msg = f"a callback must be callable, not {type(callback).__name__}"
        raise TypeError(msg)
    _callbacks.append(callback)


def remove_callback(callback):
    """Forget a function that `add_callback` added."""
    if callback not in _callbacks:
        msg = f"{callback!r} is not a callback that was added: {_callbacks}"
        raise ValueError(msg)
    _callbacks.remove(callback)


def release_idle(but=None):
    """Give back what all backends but one keep idle; return how many bytes."""
    return sum(other.trim() for other in list(pooled) if other is not but)


def relieve(backend, nbytes):
    """Free memory step by step, the cheapest first; yield when to try again.

    Garbage has been collected before. Exceptions of callbacks are not caught.
    """
    if release_idle(backend):
        yield
    for callback in list(_callbacks):
        for _ in range(TURNS):
            if not callback(nbytes):
                break
            yield


def error(backend, nbytes):
    """Return the exception that says what was asked, what is there, what to do."""
    stats = backend.stats()
    limit = stats["limit"]
    allocated, reserved = stats["allocated_bytes"], stats["reserved_bytes"]
    cached = stats.get("cached_bytes", 0)
    largest = stats.get("largest_free_bytes", 0)
    device_free, device_total = backend.memory_info()
    whole = process_limit()
    advice = "drop arrays that you no longer need, or use smaller ones"
    place = getattr(backend, "place", None)
    reason = "the system has no more"
    if place is not None:
        reason = f"there is no more room in {place!r}"
        if device_free is not None:
            reason += f", whose file system has {format_size(device_free)} left"
            if device_free > nbytes:
                reason += " (there are quotas, or a limit on files: ulimit -f)"
        advice += ", or give ndx.use another directory"
    if limit is not None:
        reason = f"its limit is {format_size(limit)} ({limit} bytes)"
        advice = (
            "drop arrays that you no longer need, or raise the limit: "
            f"ndx.use({backend.name!r}, limit=...)"
        )
        page = getattr(backend, "page_nbytes", 0)
        if limit < page:
            advice += f"; memory comes in pages of {page} bytes, so it admits nothing"
    elif (
        whole is not None
        and place is None
        and backend.host_accessible
        and process_reserved() + nbytes - cached > whole
    ):
        reason = f"the limit of the process is {format_size(whole)} ({whole} bytes)"
        advice = (
            "drop arrays that you no longer need, or raise the limit: "
            "ndx.memory.set_limit(...)"
        )
    if cached >= nbytes > largest:
        advice += (
            f"; {format_size(cached)} of it are free, but in pieces of at most "
            f"{format_size(largest)}"
        )
    text = (
        f"backend {backend.name!r} can't allocate {format_size(nbytes)} ({nbytes} "
        f"bytes): {reason}, and it holds {format_size(allocated)} in "
        f"{stats['allocated_count']} arrays ({format_size(reserved)} reserved). "
        f"To go on, {advice}.{_table(backend.holders(), stats['allocated_count'])}"
    )
    return OutOfMemoryError(
        text,
        nbytes,
        allocated,
        reserved,
        limit,
        backend.name,
        cached=cached,
        largest_free=largest,
        device_free=device_free,
        device_total=device_total,
    )


def _table(holders, count):
    """Return the largest holders as lines of a message."""
    if not holders:
        return ""
    lines = [f"\nThe largest of its {count} ranges:"]
    lines += [
        f"  {number:>6} x {format_size(size):>10} = {format_size(size * number):>10}"
        for size, number in holders
    ]
    return "\n".join(lines)
