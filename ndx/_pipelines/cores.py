"""Workers and the threads inside of operations share the cores of the machine.

While N workers run, ndx's pool and BLAS have fewer threads each. One operation at a
time has ndx's pool; the others are computed by their own thread. So N - 1 workers and
one operation with `budget - N + 1` threads fill the cores. BLAS libraries do not share
like this: each call may have `budget // N`.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import ndx

__all__ = ["release", "share"]

# Reentrant: a finalizer that the collector runs here may release a share.
_lock = threading.RLock()
_shares: dict[object, tuple[int, int | None]] = {}


class _Limited:
    """One number of threads that is lowered while there are shares."""

    def __init__(self, library: Any):
        self._library = library
        self.before = library.num_threads
        self._set = self.before

    def limit(self, count: int) -> None:
        wanted = max(1, min(count, self.before))
        # A number that the user has set meanwhile is left alone.
        if self._library.num_threads == self._set != wanted:
            self._library.set_num_threads(wanted)
            self._set = wanted


class _Own:
    """ndx's pool, with the names that threadpoolctl has for libraries."""

    @property
    def num_threads(self) -> int:
        return ndx.get_num_threads()

    def set_num_threads(self, count: int) -> None:
        ndx.set_num_threads(count)


_own: list[_Limited] = []
_blas: list[_Limited] = []
_found: tuple[int, list[Any]] = (0, [])


def share(token: object, workers: int, threads: int | None) -> None:
    """Take a share of the cores for some workers.

    Parameters
    ----------
    token : object
        What `release` takes.
    workers : int
        How many threads compute at the same time.
    threads : int or None
        How many threads one operation of them may have; None: what is left for each.
    """
    with _lock:
        if not _shares:
            _own[:], _blas[:] = [_Limited(_Own())], []
        if not _blas and (_shares or workers > 1 or threads is not None):
            _blas[:] = map(_Limited, _blas_libraries())
        _shares[token] = (workers, threads)
        _apply()


def release(token: object) -> None:
    """Give a share back; with the last one, the numbers are as they were."""
    with _lock:
        if _shares.pop(token, None) is not None:
            _apply()


def _forget() -> None:
    """Forget, in a forked child, the workers of the parent, and whose lock it is."""
    global _lock
    _lock = threading.RLock()
    if _shares:
        _shares.clear()
        _apply()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _apply() -> None:
    budget = _own[0].before
    workers = sum(count for count, _ in _shares.values())
    asked = min(
        (each for _, each in _shares.values() if each is not None), default=None
    )
    alone = workers <= 1 and asked is None
    for limited in _own:
        limited.limit(budget if alone else asked or budget - workers + 1)
    for limited in _blas:
        limited.limit(limited.before if alone else asked or budget // workers)


def _blas_libraries() -> list[Any]:
    """Return threadpoolctl's controllers of BLAS; none if it is not installed.

    The search for libraries takes milliseconds: it is done again when modules were
    imported since, which may have loaded others.
    """
    global _found
    try:
        import threadpoolctl
    except ImportError:
        return []
    if _found[0] != len(sys.modules):
        controller = threadpoolctl.ThreadpoolController().select(user_api="blas")
        _found = (len(sys.modules), controller.lib_controllers)
    return _found[1]
