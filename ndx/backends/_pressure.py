"""Memory that may be given back when some is short: idle memory, and callbacks.

`backends._relief` says what is done when, and against which reason.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

from ndx._lib.weak import members
from ndx.backends._budget import missing_of_gpu, missing_of_process

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "add_callback",
    "backends",
    "callbacks",
    "fallback_of",
    "innermost",
    "is_adaptor",
    "is_asked_again",
    "live_backends",
    "live_pools",
    "note_asked_again",
    "pooled",
    "release_on_disk",
    "release_others",
    "release_own",
    "register_class",
    "remove_callback",
    "set_asked_again",
]

# All of them, by `id`: those that users write need not be hashable.
backends = weakref.WeakValueDictionary()

_classes = {}

# Backends that keep idle memory, which others may need more.
pooled = weakref.WeakSet()

# Turns of one callback for one request: one that always says yes may not hang it.
TURNS = 3

_callbacks = []


class _Here(threading.local):
    """What is known of each thread."""

    calling = False  # a callback
    asked_again = False  # a backend, for a request that was refused before


_here = _Here()
# Whether there was ever an adaptor that counts how often one request is made.
turns_matter = False


def add_callback(callback: Callable[[int], object]) -> None:
    """Have a function called when memory is short.

    Parameters
    ----------
    callback : callable
        Called as ``callback(nbytes)`` with the bytes of a request that nothing else
        could serve: a chance to drop caches, or to raise a limit. The request is made
        again if it returns true, three times at most.

    Raises
    ------
    TypeError
        If it can't be called.

    Notes
    -----
    What it raises is raised by the request. It may make arrays itself: where there is
    no memory for these either, they raise `ndx.OutOfMemoryError` without a further
    call.
    """
    if not callable(callback):
        msg = f"a callback must be callable, not {type(callback).__name__}"
        raise TypeError(msg)
    _callbacks.append(callback)


def remove_callback(callback: Callable[[int], object]) -> None:
    """Forget a function that was given to `ndx.memory.on_oom`."""
    if callback not in _callbacks:
        msg = f"{callback!r} is not a callback that was added: {_callbacks}"
        raise ValueError(msg)
    _callbacks.remove(callback)


def callbacks(nbytes):
    """Call the callbacks in turn; yield when to try again.

    Exceptions of callbacks are not caught. A request of a callback calls none.
    """
    if _here.calling:
        return
    for callback in list(_callbacks):
        for _ in range(TURNS):
            _here.calling = True
            try:
                again = callback(nbytes)
            finally:
                _here.calling = False
            if not again:
                break
            yield


def note_asked_again():
    """Note from now on what `is_asked_again` returns, which takes time."""
    global turns_matter
    turns_matter = True


def is_asked_again():
    """Whether a backend is asked by this thread for what was refused before."""
    return _here.asked_again


def set_asked_again(value):
    """Set what `is_asked_again` returns; return what it has returned."""
    before, _here.asked_again = _here.asked_again, value
    return before


def live_pools():
    """Return all backends with a pool."""
    return members(pooled)


def live_backends():
    """Return all backends, adaptors included."""
    found = [each() for each in backends.valuerefs()]
    return [each for each in found if each is not None]


def register_class(kind, cls):
    """Set the base class of adaptors or of pools, whose modules import this one."""
    _classes[kind] = cls


def is_adaptor(backend):
    """Whether a backend has an upstream, not just an attribute of that name."""
    return isinstance(backend, _classes.get("adaptor", ()))


def is_pool(backend):
    """Whether a backend keeps idle memory in a pool of ndx."""
    return isinstance(backend, _classes.get("pool", ()))


def innermost(backend):
    """Return the backend that adaptors are around."""
    while is_adaptor(backend):
        backend = backend.upstream
    return backend


def fallback_of(backend):
    """Return the backend's fallback, or None: only pools have one."""
    found = innermost(backend)
    return found.fallback if is_pool(found) else None


def release_on_disk(disk):
    """Give back idle memory in files on a disk (its `st_dev`); return the bytes."""
    resource = ("disk", disk)
    return sum(each.trim() for each in live_pools() if each.resource == resource)


def release_own(backend):
    """Let a backend without a pool give back idle memory; return the bytes."""
    found = innermost(backend)
    # Pools have tried their idle memory before they refused.
    return 0 if is_pool(found) else found.trim()


def release_others(backend, nbytes, reason):
    """Give back idle memory of pools that compete with a backend; return the bytes."""
    found = innermost(backend)
    if reason == "process":
        others = [each for each in live_pools() if each.budgeted]
        return _release_just_enough(found, others, missing_of_process(nbytes))
    if reason == "device":
        others = [each for each in live_pools() if each.gpu == found.gpu]
        return _release_just_enough(found, others, missing_of_gpu(found.gpu, nbytes))
    resource = "machine" if reason == "system" else getattr(found, "resource", None)
    if resource is None:
        return 0
    return sum(
        other.trim()
        for other in live_pools()
        if other is not found and other.resource == resource
    )


def _release_just_enough(backend, pools, missing):
    """Give back idle memory of pools that share a limit, if there is enough."""
    own = getattr(backend, "idle_nbytes", 0)
    if missing > own:
        # The backend gives its own idle memory itself, once that is enough with what
        # others give. If it was enough from the start, the backend did so in vain.
        missing -= own
    others = [each for each in pools if each is not backend]
    if missing > sum(each.idle_nbytes for each in others):
        return 0
    released = 0
    for other in others:
        if released < missing and other.idle_nbytes:
            released += other.trim()
    return released
