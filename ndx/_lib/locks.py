"""Locks of modules, which are free in a forked child."""

import os
import threading

__all__ = ["module_lock"]


def module_lock():
    """Return a lock for as long as the process lives, made anew in a forked child.

    There the threads that may hold it do not exist. It is reentrant: a handler of a
    signal, or a finalizer that the collector runs, may come back to what holds it.
    """
    lock = threading.RLock()
    renew = getattr(lock, "_at_fork_reinit", None)
    if renew is not None and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
    return lock
