"""A flag that one thread sets and another waits for."""

from __future__ import annotations

import threading

__all__ = ["Signal"]


class Signal:
    """A flag that is set any number of times, and wakes the one that waits once.

    `threading.Event.set` takes a lock, so that a finalizer that calls it may wait for
    the thread that it interrupts. This `set` never waits.
    """

    def __init__(self) -> None:
        # Locked while the flag is not set.
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Wake the waiting thread, or the next that waits."""
        try:
            self._lock.release()
        except RuntimeError:
            # It is set already.
            return

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, and clear it; return whether it was set."""
        return self._lock.acquire(timeout=-1 if timeout is None else timeout)
