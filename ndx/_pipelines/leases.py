"""Slots for batches, each leased for as long as anything of its batch is referenced.

A slot is a workspace of its own. While a batch is made, its scope is open. At the end
of the scope the batch's arrays are exported, so that they *escape in place*
(``escape="detach"``): they keep their range of the arena, belong to no workspace, and
never go stale. The last reference to such an array (a view of it, or NumPy's export)
gives its range back. Therefore reference counting is the lease: a slot in which no
range is in use is free. A slot that is dropped meanwhile lives as long as its arrays.
"""

from __future__ import annotations

import gc
import itertools
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import ndx
from ndx._pipelines.signals import Signal
from ndx._pipelines.sizing import SlotSize

if TYPE_CHECKING:
    from ndx import Workspace

__all__ = ["Ring", "Slot", "SlotWait", "is_alone_with", "rest"]

# How many slots are looked at to find a free one, where there are very many.
_LOOKS = 64
# Seconds between two looks whether a slot is free: at first, and in the end.
_FIRST_DELAY = 0.0005
_LAST_DELAY = 0.02

# The idents of producers that run no code of users until they are told to.
_resting: set[int] = set()
if hasattr(os, "register_at_fork"):
    # They are threads of the parent. A thread of the child may get such a number.
    os.register_at_fork(after_in_child=_resting.clear)


@dataclass(eq=False, slots=True)
class Slot:
    """The memory of one batch at a time."""

    workspace: Workspace | None
    # Whether a batch is being made in it.
    filling: bool = False
    # The size that could not be had.
    refused: int = 0

    def is_free(self) -> bool:
        """Whether nothing of its last batch is referenced."""
        if self.filling:
            return False
        return self.workspace is None or not self.workspace.pinned_count


@dataclass
class Counters:
    """What a ring has counted since it was made."""

    batches: int = 0
    spilled_batches: int = 0
    spilled_bytes: int = 0
    slot_waits: int = 0
    grown: int = 0


@dataclass
class Ring:
    """The slots that batches are made in.

    Parameters
    ----------
    limit : int
        How many slots there are at most, unless `take` is told to grow.
    size : SlotSize
        The bytes of a slot.
    backend : str, optional
        Where the slots are. Default: the backend that is current when one is filled.
    enabled : bool
        False: batches are in no workspace, and nothing is leased.
    """

    limit: int
    size: SlotSize
    backend: str | None = None
    enabled: bool = True
    counters: Counters = field(default_factory=Counters)
    slots: list[Slot] = field(default_factory=list)
    looks: int = 0

    @classmethod
    def empty(cls) -> Ring:
        """Return a ring for counters that are all 0."""
        return cls(0, SlotSize(1, 0))

    def take(self, *, grow: bool = False, thorough: bool = False) -> Slot | None:
        """Return a slot that is free, of the wanted size; None if all are leased.

        Among very many slots, it looks at some, other ones each time, unless it is to
        be thorough: else a ring that grows would take quadratic time.
        """
        if not self.enabled:
            return Slot(None)
        looked_at = self.slots if thorough else self._some()
        free = [slot for slot in looked_at if slot.is_free()]
        if len(self.slots) > self.limit and len(free) > 1:
            # The ring has grown, and part of it is idle.
            self.slots.remove(free.pop())
        if free:
            # The first one: it is more often in the cache, and later ones may never
            # be needed.
            return self._resized(free[0])
        if len(self.slots) >= self.limit:
            if not grow:
                return None
            self.counters.grown += 1
        self.slots.append(self._new())
        return self._resized(self.slots[-1])

    def _some(self) -> list[Slot]:
        """Return the first slots, which are free most often, and some others."""
        count = len(self.slots)
        if count <= _LOOKS:
            return self.slots
        begin = _LOOKS + self.looks % (count - _LOOKS)
        self.looks += _LOOKS
        return self.slots[:_LOOKS] + self.slots[begin : begin + _LOOKS]

    def _new(self) -> Slot:
        return Slot(
            ndx.workspace(
                config=ndx.WorkspaceConfig(learn="none", escape="detach"),
                backend=self.backend,
            )
        )

    def _resized(self, slot: Slot) -> Slot:
        """Return a free slot, in the size that is wanted, if there is memory for it."""
        wanted = self.size.wanted
        assert slot.workspace is not None
        if slot.workspace.size > 2 * wanted:
            slot.workspace.destroy(trim=False)
        if slot.workspace.size < wanted and slot.refused != wanted:
            try:
                slot.workspace.reserve(wanted)
                slot.refused = 0
            except MemoryError:
                # The batch is spilled, if the backend has memory for that.
                slot.refused = wanted
        return slot

    def note(self, slot: Slot) -> None:
        """Count the batch that was made in a slot, and learn from it."""
        self.counters.batches += 1
        if slot.workspace is None:
            return
        stats = slot.workspace.stats()
        self.size.observe(stats["cycle_bytes"])
        self.counters.spilled_bytes += stats["spilled_bytes"]
        self.counters.spilled_batches += stats["spilled_count"] > 0

    def drop(self) -> None:
        """Let go of all slots: their memory goes back when their batches are gone."""
        self.slots = []

    def stats(self) -> dict[str, int]:
        """Return the counters, and the bytes of the slots."""
        slots = list(self.slots)
        return {
            "batches": self.counters.batches,
            "slots": len(slots),
            "leased_slots": sum(not slot.is_free() for slot in slots),
            "slot_bytes": self.size.wanted,
            "bytes": sum(slot.workspace.size for slot in slots if slot.workspace),
            "size_changes": self.size.changes,
            "spilled_batches": self.counters.spilled_batches,
            "spilled_bytes": self.counters.spilled_bytes,
            "slot_waits": self.counters.slot_waits,
            "grown": self.counters.grown,
        }


@dataclass
class SlotWait:
    """Waiting for a slot, without waiting for ever.

    The consumer may release a slot as long as it works. When it waits for the next
    batch, only another thread or task can. Where there is none, or none has for
    `patience` seconds, the wait ends by an error.

    Parameters
    ----------
    ring : Ring
        Whose slots.
    grow : bool
        Whether to add a slot rather than wait.
    patience : float
        Seconds.
    consumer : callable
        Returns what waits for the next batch; None while nothing does.
    is_alone : callable
        Whether nothing but that consumer could release a batch.
    """

    ring: Ring
    grow: bool
    patience: float
    consumer: Callable[[], object]
    is_alone: Callable[[object], bool]

    def __post_init__(self) -> None:
        self._delays = itertools.chain(
            _doubled(_FIRST_DELAY, _LAST_DELAY), itertools.repeat(_LAST_DELAY)
        )
        self._counted = self._was_alone = False
        self._since: float | None = None

    def attempt(self) -> Slot | None:
        """Return a slot; None: try again after `delay`.

        Raises
        ------
        WorkspaceError
            If waiting on is in vain.
        """
        slot = self.ring.take(grow=self.grow)
        if slot is not None:
            return slot
        if not self._counted:
            self._counted = True
            self.ring.counters.slot_waits += 1
        consumer = self.consumer()
        if consumer is None:
            self._since = None
            return None
        now = time.monotonic()
        if self._since is None:
            self._since = now
        alone = self.is_alone(consumer)
        # Twice: a producer that rests may have been woken a moment ago.
        self._was_alone, is_sure = alone, alone and self._was_alone
        if now - self._since < self.patience and not is_sure:
            return None
        # Batches in reference cycles, if any, are gone after this.
        gc.collect()
        slot = self.ring.take(thorough=True)
        if slot is None:
            raise ndx.WorkspaceError(self._held())
        return slot

    @property
    def delay(self) -> float:
        """Seconds until the next attempt."""
        return next(self._delays)

    def _held(self) -> str:
        return (
            "the next batch can't be made: the consumer waits for it, and all "
            f"{len(self.ring.slots)} slots of the prefetch's ring are "
            "leased, because something still refers to an array, a view or a NumPy "
            "export of each earlier batch (in the consumer, or in the source). Drop "
            "batches that are not needed any more, keep copies "
            "(ndx.asarray(x, copy=True)), give more slots=, or let the ring grow: "
            "on_held='grow'"
        )


def _doubled(first: float, last: float) -> list[float]:
    delays = [first]
    while 2 * delays[-1] < last:
        delays.append(2 * delays[-1])
    return delays


def is_alone_with(consumer: object) -> bool:
    """Whether no threads run but this one, that of an ident, and those that rest."""
    known = {consumer, threading.get_ident()} | _resting
    return all(thread.ident in known for thread in threading.enumerate())


def rest(wake: Signal, timeout: float | None = None) -> None:
    """Wait for a signal, in a thread that runs code of users only after it."""
    me = threading.get_ident()
    _resting.add(me)
    try:
        wake.wait(timeout)
    finally:
        _resting.discard(me)
