"""Threads that ndx starts: they take no signals, which are for the program's own."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["BackgroundThread", "signals_of_program"]

# Windows has neither.
_HAS_MASKS = hasattr(signal, "pthread_sigmask")
# A fault is a signal to the thread that faults: a mapping's SIGBUS has a handler.
_FAULTS = {"SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP"}
_BLOCKED = {
    each
    for each in (signal.valid_signals() if _HAS_MASKS else ())
    if getattr(each, "name", None) not in _FAULTS
}


class _OfThread(threading.local):
    """The signals that the program blocks, as a thread of ndx knows them.

    Attributes
    ----------
    program : set of int, optional
        In a thread of ndx, the signals that the thread of the program blocks that has
        started it, or its starter; None in all others.
    """

    program: set[Any] | None = None


_thread = _OfThread()


class BackgroundThread(threading.Thread):
    """A thread that blocks all signals from its birth, but those of its own faults.

    The system gives a signal of the process to any thread that doesn't block it. A
    program that blocks one in its own threads, and waits for it (`signal.sigwait`),
    would be ended by it if a thread of a library took it.

    A process that is forked in the thread, or started in `signals_of_program`, blocks
    what the program does.

    Parameters
    ----------
    **options
        As for `threading.Thread`. The thread is a daemon.

    Examples
    --------
    >>> import signal
    >>> from ndx._lib.background import BackgroundThread
    >>> found = []
    >>> def look():
    ...     found.append(signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    >>> thread = BackgroundThread(target=look)
    >>> thread.start(); thread.join()
    >>> found
    [True]
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, daemon=True)
        self._program: set[Any] | None = None

    def start(self) -> None:
        """Start the thread with all signals blocked; the caller's mask is restored."""
        if not _HAS_MASKS:
            super().start()
            return
        # The mask is read first: blocking signals may raise, from the handler of one
        # that arrived before.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._program = before if _thread.program is None else _thread.program
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run(self) -> None:
        """Run the target; record which signals the program blocks for this thread."""
        _thread.program = self._program
        super().run()


@contextlib.contextmanager
def signals_of_program() -> Iterator[None]:
    """Give this thread the signal mask of the program, while a process is started.

    A process inherits the signals that the thread which starts it blocks. A process
    that a thread of ndx started would take no SIGTERM.
    """
    if _thread.program is None:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, _thread.program)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _after_fork() -> None:
    if _thread.program is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _thread.program)


if _HAS_MASKS:
    os.register_at_fork(after_in_child=_after_fork)
