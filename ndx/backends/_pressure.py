"""Memory that may be given back when some is short: idle memory, and callbacks.

`backends._relief` says what is done when, and against which reason.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import threading
import weakref
from typing import TYPE_CHECKING, NamedTuple

from ndx._lib.weak import members
from ndx.backends._budget import missing_of_gpu, missing_of_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from ndx.backends.base import Backend

__all__ = [
    "HeldArena",
    "add_callback",
    "backends",
    "callbacks",
    "counting_backends",
    "evict",
    "fallback_of",
    "held_arenas",
    "idle_arenas",
    "innermost",
    "is_adaptor",
    "is_asked_again",
    "is_pool",
    "is_trying",
    "largest_makers",
    "live_backends",
    "live_pools",
    "may_have_room",
    "missing_for",
    "new_evictor",
    "note_asked_again",
    "numbered_backends",
    "numbers",
    "pooled",
    "register_class",
    "release_idle_arenas",
    "release_on_disk",
    "release_old_arenas",
    "release_others",
    "release_own",
    "remove_callback",
    "set_asked_again",
    "set_evictor",
    "set_held_arenas",
    "set_largest_makers",
    "set_oom_report",
    "settle",
    "trying",
]

# All of them, by `id`: those that users write need not be hashable.
backends = weakref.WeakValueDictionary()
# Their keys: no backend has the number of another one, also of one that is gone.
numbers = itertools.count()

_classes = {}

# Backends that keep idle memory, which others may need more.
pooled = weakref.WeakSet()

# The most calls of one callback for one request: one that always returns True may not
# loop for ever.
TURNS = 3

_callbacks = []
# Arenas by address: how many cycles they had, and when that was first seen.
_seen = {}


def _nothing(*_):
    return []


# Of rooms above this one: what lists the arenas of workspaces, and the makers of live
# arrays.
_held_arenas = _largest_makers = _nothing
_evictor = oom_report = None


class _Here(threading.local):
    """The state of the current thread."""

    calling = False  # a callback is running
    trying = False  # a limit is only tried: no callbacks, no reports
    asked_again = False  # a backend is asked again, after it has refused a request


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
    if _here.calling or _here.trying:
        return
    for callback in list(_callbacks):
        for _ in range(TURNS):
            if callback not in _callbacks:
                # It has removed itself, or another one has.
                break
            _here.calling = True
            try:
                again = callback(nbytes)
            finally:
                _here.calling = False
            if not again:
                break
            yield


@contextlib.contextmanager
def trying():
    """Try a limit in this thread: refusals call no callback, and write no report."""
    before, _here.trying = _here.trying, True
    try:
        yield
    finally:
        _here.trying = before


def is_trying():
    """Whether this thread only tries a limit."""
    return _here.trying


def note_asked_again():
    """Keep the answer of `is_asked_again` up to date from now on, which takes time."""
    global turns_matter
    turns_matter = True


def is_asked_again():
    """Whether this thread asks a backend again for a request that it refused."""
    return _here.asked_again


def set_asked_again(value):
    """Set the answer of `is_asked_again` for this thread; return the previous one."""
    before, _here.asked_again = _here.asked_again, value
    return before


def live_pools():
    """Return all backends with a pool."""
    return members(pooled)


def live_backends():
    """Return all backends, adaptors included."""
    found = [each() for each in backends.valuerefs()]
    return [each for each in found if each is not None]


def counting_backends():
    """Return all backends but adaptors: requests are counted by the backend inside."""
    return [each for _, each in numbered_backends()]


def numbered_backends():
    """Return (number, backend) of all backends but adaptors, in their order."""
    found = [(each.key, each()) for each in backends.valuerefs()]
    return sorted(
        (each for each in found if each[1] is not None and not is_adaptor(each[1])),
        key=operator.itemgetter(0),
    )


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
    """Return the backend inside of all adaptors."""
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


def set_oom_report(function):
    """Set the function that is called with each `OutOfMemoryError`; None: none."""
    global oom_report
    oom_report = function


def set_evictor(cls):
    """Set the class that moves arrays away, made with their backend and the place."""
    global _evictor
    _evictor = cls


def new_evictor(backend, place):
    """Return what moves arrays of a backend to another one."""
    return _evictor(backend, place)


def set_held_arenas(function):
    """Set the function that returns a `HeldArena` for each arena of a workspace."""
    global _held_arenas
    _held_arenas = function


def set_largest_makers(function):
    """Set the function that returns the known makers of a backend's live arrays."""
    global _largest_makers
    _largest_makers = function


def largest_makers(backend):
    """Return (line, bytes, number) of those that made most of a backend's arrays.

    None are known where no recording runs, and nothing was tracked.
    """
    return _largest_makers(backend)


class HeldArena(NamedTuple):
    """The memory of an arena; that of a closed workspace is idle, usually."""

    workspace: str
    backend: Backend
    nbytes: int
    address: int
    is_open: bool
    is_idle: bool
    cycles: int
    # Gives the memory back to its pool if it is idle; returns the bytes.
    release: Callable[[], int]


def held_arenas(backend=None):
    """Return the arenas of workspaces: all, or those in the memory of a backend."""
    if backend is None:
        return _held_arenas()
    found = innermost(backend)
    return [each for each in _held_arenas() if each.backend is found]


def idle_arenas(backend=None):
    """Return the idle arenas: all, or those in the memory of a backend."""
    return [each for each in held_arenas(backend) if each.is_idle]


def release_idle_arenas(backend=None):
    """Give the idle arenas back to their pools; return the bytes."""
    return sum(each.release() for each in idle_arenas(backend))


def release_old_arenas(now):
    """Give arenas back that had no cycle for the `idle_release` of their backends.

    The time is when they were first seen with as many cycles: nothing is noted when a
    cycle ends. `now` is in milliseconds. Returns in how many milliseconds to look
    again; None if there is no arena that could become idle.
    """
    seen, again = {}, None
    for each in held_arenas():
        after = each.backend.options.idle_milliseconds if is_pool(each.backend) else 0
        if after == 0:
            continue
        cycles, since = _seen.get(each.address, (None, now))
        if each.is_open or cycles != each.cycles:
            since = now
        if since + after > now or not each.release():
            seen[each.address] = each.cycles, since
            rest = max(since + after - now, 0) or after
            again = rest if again is None else min(again, rest)
    _seen.clear()
    _seen.update(seen)
    return again


def release_others(backend, nbytes, reason):
    """Give back what competes with a backend: closed arenas, then other pools' memory.

    Returns the bytes that went back, to the system or to the backend's own pool. Where
    it is known how much is missing nothing goes back unless there is enough.
    """
    found = innermost(backend)
    pools = _competitors(found, reason)
    arenas = [each for each in idle_arenas() if each.backend in pools]
    # The backend's own first: its pool can serve from them at once.
    arenas.sort(key=lambda each: (each.backend is not found, -each.nbytes))
    others = [each for each in pools if each is not found and is_pool(each)]
    missing = _missing(found, nbytes, reason)
    if missing is None:
        released = sum(each.release() for each in arenas)
        return released + sum(each.trim() for each in others)
    if missing > (own := _idle_of(found)):
        # The backend gives its own idle memory back itself, once that and what others
        # give are enough. If its own alone was enough, the backend has tried, and was
        # refused.
        missing -= own
    if missing > sum(each.nbytes for each in arenas) + sum(map(_idle_of, others)):
        return 0
    released, emptied = 0, []
    for each in arenas:
        if released >= missing:
            break
        emptied.append((each.backend, each.release()))
        released += emptied[-1][1]
    # What is idle in another pool by now has to go on, to the system.
    missing -= sum(n for each, n in emptied if each not in others)
    others.sort(key=lambda each: each not in dict(emptied))
    return released + _shrink_just_enough(others, missing)


def evict(backend, nbytes, reason):
    """Let arrays leave that were not used for longest; return the bytes that did.

    They are of the backends that compete with one, which has refused a request.
    """
    found = innermost(backend)
    missing = _missing(found, nbytes, reason)
    missing = nbytes if missing is None else max(1, missing - _idle_of(found))
    evicted = 0
    for each in _competitors(found, reason):
        if evicted < missing and is_pool(each):
            evicted += each._evict(missing - evicted)
    return evicted


def may_have_room(backend, nbytes):
    """Return False if a pool's limit forbids so many bytes, whatever leaves it."""
    found = innermost(backend)
    while is_pool(found):
        if not missing_for(found, nbytes):
            return True
        if found.fallback is None:
            return False
        found = innermost(found.fallback)
    return True


def missing_for(backend, nbytes):
    """Return how many bytes a pool lacks to serve a request; 0: it has room."""
    missing = backend._missing_nbytes(nbytes)
    if backend.budgeted:
        missing = max(missing, missing_of_process(nbytes))
    if backend.gpu:
        missing = max(missing, missing_of_gpu(backend.gpu, nbytes))
    return max(0, missing - backend.idle_nbytes)


def _competitors(backend, reason):
    """Return the backends whose memory counts for what has refused a request."""
    if reason in ("process", "ndx"):
        found = [each for each in live_backends() if getattr(each, "budgeted", False)]
    elif reason == "device":
        found = [each for each in live_pools() if each.gpu == backend.gpu]
    elif reason in ("system", "source"):
        resource = "machine"
        if reason == "source":
            resource = getattr(backend, "resource", None)
        found = [
            each
            for each in live_pools()
            if each.resource == resource and resource is not None
        ]
    else:
        found = []
    return [backend, *(each for each in found if each is not backend)]


def _missing(backend, nbytes, reason):
    """Return how many bytes must go back for a request; None if that is not known."""
    if reason in ("process", "ndx"):
        return missing_of_process(nbytes)
    if reason == "device":
        return missing_of_gpu(backend.gpu, nbytes)
    if reason == "limit" and is_pool(backend):
        return backend._missing_nbytes(nbytes)
    return None


def _idle_of(backend):
    return getattr(backend, "idle_nbytes", 0)


def _shrink_just_enough(pools, missing):
    """Let pools give back idle memory, until `missing` bytes went back; return these.

    Memory that `initial` and `reserve` have set aside goes last.
    """
    released = 0
    for kept in (False, True):
        for pool in pools:
            if released < missing and pool.idle_nbytes:
                released += pool._shrink(pool.idle_nbytes, kept)
    return released


def settle(reason, backend=None):
    """Give back what is idle above a limit that was lowered.

    Idle memory goes first, then the arenas of closed workspaces, then the idle memory
    that `initial` and `reserve` have set aside.
    """
    pools = [each for each in _competitors(backend, reason) if is_pool(each)]

    def missing():
        return _missing(backend, 0, reason)

    for kept in (False, True):
        for pool in pools:
            pool._shrink(missing(), kept)
        for each in idle_arenas():
            if each.backend in pools and missing():
                each.release()
                each.backend._shrink(missing(), kept)
