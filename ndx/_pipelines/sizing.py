"""The size of a ring's slots, learned from what the batches need."""

from __future__ import annotations

from collections import deque

__all__ = ["SlotSize"]

# Batches whose needs are remembered. One that was large is forgotten after so many.
_WINDOW = 32
# What is added to a learned size, as for workspaces.
_OVERALLOCATION = 0.3
# A batch that needs more than so many times the second largest is an outlier.
_OUTLIER = 2.0


class SlotSize:
    """The bytes that each slot should have.

    Parameters
    ----------
    warmup : int
        The number of batches that are observed before there is a size.
    fixed : int
        Bytes; 0: they are learned.

    Attributes
    ----------
    wanted : int
        Bytes; 0 as long as they are to be learned.
    changes : int
        How often the size has changed since it was first chosen.
    """

    def __init__(self, warmup: int, fixed: int) -> None:
        self.wanted = fixed
        self.changes = 0
        self._fixed = bool(fixed)
        self._warmup = warmup
        self._needs: deque[int] = deque(maxlen=max(_WINDOW, warmup))

    def observe(self, nbytes: int) -> None:
        """Take note of what a batch needed."""
        if self._fixed:
            return
        self._needs.append(nbytes)
        if len(self._needs) < self._warmup:
            return
        most = self._most()
        size = int(most * (1 + _OVERALLOCATION))
        full = len(self._needs) == self._needs.maxlen
        # Down only by half, so that sizes that alternate don't change it each time.
        if most > self.wanted or (full and size < self.wanted / 2):
            self.changes += self.wanted > 0
            self.wanted = size

    def _most(self) -> int:
        """Return the most that a recent batch needed, without a single outlier."""
        needs = sorted(self._needs)
        if len(needs) > 2 and needs[-1] > _OUTLIER * needs[-2]:
            return needs[-2]
        return needs[-1]
