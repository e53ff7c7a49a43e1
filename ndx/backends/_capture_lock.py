"""A lock between capturing a graph and waiting for a whole GPU.

CUDA aborts a capture in progress when any thread waits for a whole GPU, and the error
is raised in the capturing thread. So each waits until the other is over. A capture is
short, because it records work and computes nothing.
"""

import contextlib
import threading

from ndx._lib.errors import DeviceError

__all__ = ["capturing", "refuse_here", "try_waiting", "wait_or_owe", "waiting"]

# Reentrant: a destructor may acquire the lock while its thread waits for the GPU.
_lock = threading.RLock()
_capturing_thread = None
_owed = []


@contextlib.contextmanager
def capturing():
    """Let this thread capture, in a ``with``, once no thread waits for a GPU."""
    global _capturing_thread
    with _lock:
        _capturing_thread = threading.get_ident()
        try:
            yield
        finally:
            _capturing_thread = None
            while _owed:
                _owed.pop()()


@contextlib.contextmanager
def waiting():
    """Let this thread wait for GPUs, in a ``with``, as soon as none captures."""
    if _capturing_thread == threading.get_ident():
        refuse_here("waiting for the GPU")
    with _lock:
        yield


def wait_or_owe(wait):
    """Wait for a GPU by calling `wait`; in a capturing thread, after the capture."""
    if _capturing_thread == threading.get_ident():
        _owed.append(wait)
        return
    with _lock:
        wait()


@contextlib.contextmanager
def try_waiting():
    """Wait for GPUs only if no thread captures now; yield whether this may wait."""
    mine = _capturing_thread == threading.get_ident()
    found = not mine and _lock.acquire(blocking=False)
    try:
        yield found
    finally:
        if found:
            _lock.release()


def refuse_here(what):
    """Raise DeviceError: this thread is capturing, which can't contain `what`."""
    msg = (
        f"{what} can't be part of a captured graph, which runs on the GPU alone: "
        "do it before or after the function of ndx.cuda.graph"
    )
    raise DeviceError(msg)
