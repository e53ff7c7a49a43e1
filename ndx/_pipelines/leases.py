"""Slots for batches, each leased for as long as anything of its batch is referenced.

A slot is a workspace of its own. While a batch is made, its scope is open. At the end
of the scope the batch's arrays are exported, so that they *escape in place*
(``escape="detach"``): they keep their range of the arena, belong to no workspace, and
never go stale. The last reference to such an array (a view of it, or NumPy's export)
gives its range back. Therefore reference counting is the lease: a slot in which no
range is in use is free. A slot that is dropped meanwhile lives as long as its arrays.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import ndx
from ndx._lib.device import find_kind
from ndx._lib.dtypes import is_known  # type: ignore[import-not-found]
from ndx._lib.sizing import Sizing  # type: ignore[import-not-found]
from ndx._lib.trees import map_tree

if TYPE_CHECKING:
    from ndx import Workspace

__all__ = [
    "Filling",
    "FillingOnDevice",
    "Ring",
    "Slot",
    "SlotWait",
    "is_array_of_numpy",
    "scope_left_open",
    "slot_sizing",
]

# Batches whose needs count. One that was large is forgotten after so many.
_WINDOW = 32


def slot_sizing(warmup: int, fixed: int) -> Sizing:
    """Return what learns the bytes of a slot; `fixed`, if not 0, are given."""
    config = ndx.WorkspaceConfig(learn="over-time", cycles=warmup, spill="grow")
    if fixed:
        config = ndx.WorkspaceConfig(learn="none", size=fixed)
    return Sizing(config, max(_WINDOW, warmup))


# ---- Slots ---------------------------------------------------------------------------


# How many slots are looked at to find a free one, where there are very many.
_LOOKS = 64
# Seconds between two looks whether a slot is free: at first, and in the end.
_FIRST_DELAY = 0.0005
_LAST_DELAY = 0.02


@dataclass(eq=False, slots=True)
class Slot:
    """The memory of one batch at a time."""

    workspace: Workspace | None
    # Whether a batch is being made in it.
    filling: bool = False
    # Size of the last refused allocation; it is not asked for again.
    refused: int = 0

    def is_free(self) -> bool:
        """Whether nothing of its last batch is referenced."""
        if self.filling:
            return False
        return self.workspace is None or not self.workspace.pinned_count


# What a ring counts from its beginning.
_COUNTED = "batches", "spilled_batches", "spilled_bytes", "slot_waits", "grown"


@dataclass
class Ring:
    """The slots that batches are made in."""

    # How many slots there are at most, unless `take` is told to grow.
    limit: int
    # Learns the bytes of a slot.
    size: Sizing
    # Where the slots are; None: the backend that is current when one is filled.
    backend: str | None = None
    # False: batches are in no workspace, and nothing is leased.
    enabled: bool = True
    # Whether a slot is added rather than waited for.
    grows: bool = False
    # Seconds after which a wait for a slot fails.
    patience: float = 0.0
    counters: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    slots: list[Slot] = field(default_factory=list)
    looks: int = 0

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
            self.counters["grown"] += 1
        config = ndx.WorkspaceConfig(learn="none", escape="detach")
        self.slots.append(Slot(ndx.workspace(config=config, backend=self.backend)))
        return self._resized(self.slots[-1])

    def _some(self) -> list[Slot]:
        """Return the first slots, which are free most often, and some others."""
        count = len(self.slots)
        if count <= _LOOKS:
            return self.slots
        begin = _LOOKS + self.looks % (count - _LOOKS)
        self.looks += _LOOKS
        return self.slots[:_LOOKS] + self.slots[begin : begin + _LOOKS]

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
        self.counters["batches"] += 1
        if slot.workspace is None:
            return
        stats = slot.workspace.stats()
        self.size.observe(stats["cycle_bytes"])
        self.counters["spilled_bytes"] += stats["spilled_bytes"]
        self.counters["spilled_batches"] += stats["spilled_count"] > 0

    def drop(self) -> None:
        """Let go of all slots: their memory goes back when their batches are gone."""
        self.slots = []

    def stats(self) -> dict[str, int]:
        """Return the counters, and the bytes of the slots."""
        slots = list(self.slots)
        return {
            "slots": len(slots),
            "leased_slots": sum(not slot.is_free() for slot in slots),
            "slot_bytes": self.size.wanted,
            "bytes": sum(slot.workspace.size for slot in slots if slot.workspace),
            "size_changes": self.size.changes,
            **self.counters,
        }


@dataclass
class SlotWait:
    """Waiting for a slot, without waiting for ever.

    The consumer may release a slot as long as it works. When it waits for the next
    batch, only another thread or task can. Where there is none, or none has for
    the ring's patience, the wait ends by an error.
    """

    ring: Ring
    # Returns what waits for the next batch; None while nothing does.
    consumer: Callable[[], object]
    # Whether nothing but that consumer could release a batch.
    is_alone: Callable[[object], bool]

    def __post_init__(self) -> None:
        self._delay = _FIRST_DELAY
        self._counted = self._was_alone = False
        self._since: float | None = None

    def attempt(self) -> Slot | None:
        """Return a slot; None: try again after `delay`.

        Raises
        ------
        WorkspaceError
            If waiting on is in vain.
        """
        slot = self.ring.take(grow=self.ring.grows)
        if slot is not None:
            return slot
        if not self._counted:
            self._counted = True
            self.ring.counters["slot_waits"] += 1
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
        if now - self._since < self.ring.patience and not is_sure:
            return None
        # Batches in reference cycles, if any, are gone after this.
        gc.collect()
        slot = self.ring.take(thorough=True)
        if slot is None:
            raise ndx.WorkspaceError(_HELD.format(len(self.ring.slots)))
        return slot

    @property
    def delay(self) -> float:
        """Seconds until the next attempt."""
        now, self._delay = self._delay, min(2 * self._delay, _LAST_DELAY)
        return now


_HELD = (
    "the next batch can't be made: the consumer waits for it, and all {} slots of the "
    "prefetch's ring are leased, because something still refers to an array, a view or "
    "a NumPy export of each earlier batch (in the consumer, or in the source). Drop "
    "batches that are not needed any more, keep copies (ndx.asarray(x, copy=True)), "
    "give more slots=, or let the ring grow: on_held='grow'"
)


# ---- Making one batch in a slot ------------------------------------------------------


_READ_ONLY = (
    "ndx.prefetch makes an array that the source has made and yielded read-only for "
    "the source: the consumer may still read it. Make a new one for each batch, or "
    "yield ndx.asarray(x, copy=True)"
)


class Filling:
    """The scope in which the source makes a batch, in a free slot of a ring.

    With `copy`, NDArrays that are in no workspace, and parts of larger arrays, are
    copied: the source may write the next batch to them. What else it has made becomes
    read-only for it.
    """

    def __init__(self, ring: Ring, slot: Slot, copy: bool) -> None:
        self.ring = ring
        self.slot = slot
        self.copy = copy
        # Exports of the batch's arrays, which keep these in place.
        self.exports: list[Any] = []
        self.scopes = contextlib.ExitStack()

    def __enter__(self) -> Filling:
        self.slot.filling = True
        try:
            self.enter_source()
            self.place = current_place()
        except BaseException:
            self.scopes.close()
            self.slot.filling = False
            raise
        return self

    def enter_source(self) -> None:
        """Enter the scope in which the source runs."""
        if self.slot.workspace is not None:
            self.scopes.enter_context(self.slot.workspace)

    def is_covered(self) -> bool:
        """Whether the source has left a scope of its own open."""
        return self.slot.workspace is not None and current_place() != self.place

    def take_over(self, batch: Any) -> Any:
        """Return the batch, with its arrays in the slot."""
        if self.slot.workspace is not None:
            return map_tree(self.own, batch)
        # The source may be in a workspace of its own.
        with ndx.no_workspace():
            return map_tree(self.own, batch)

    def own(self, leaf: Any) -> Any:
        """Return a leaf, or what is in the slot in place of it."""
        if isinstance(leaf, ndx.NDArray):
            workspace = self.slot.workspace
            made_here = workspace is not None and workspace.owns(leaf)
            if made_here and (not self.copy or leaf.flags.owndata):
                return self.hand_over(leaf)
            if not (self.copy or leaf.attached):
                return leaf
        elif not is_array_of_numpy(leaf):
            return leaf
        made = ndx.asarray(leaf, copy=True)
        self.exports.append(export(made))
        return made

    def hand_over(self, leaf: ndx.NDArray) -> ndx.NDArray:
        """Return an array over the memory of one that was made in this scope.

        The source may still refer to its own, and write to it for the next batch,
        while the consumer reads this one. So its own becomes read-only.
        """
        made = leaf
        if self.copy and leaf.flags.writeable:
            made = leaf[...]
            leaf.flags.writeable = False
        self.exports.append(export(made))
        return made

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        try:
            self.scopes.__exit__(kind, error, traceback)
        finally:
            if isinstance(error, ndx.ReadOnlyError):
                error.add_note(_READ_ONLY)
            self.exports.clear()
            self.slot.filling = False
            if self.slot.workspace is not None and self.slot.workspace.is_open:
                # The source has failed inside a scope that it never left.
                self.ring.slots.remove(self.slot)
        if kind is None:
            self.ring.note(self.slot)


class FillingOnDevice(Filling):
    """The scope of a batch for a device; the source makes it in what is best copied."""

    def __init__(self, ring: Ring, slot: Slot, copy: bool, device: str) -> None:
        super().__init__(ring, slot, copy)
        self.device = device

    def enter_source(self) -> None:
        self.scopes.enter_context(ndx.use(find_kind(self.device).staging))

    def is_covered(self) -> bool:
        return current_place() != self.place

    def take_over(self, batch: Any) -> Any:
        staged = map_tree(self.staged, batch)
        # The source's scope ends; the rest is the device's.
        self.scopes.close()
        self.scopes.enter_context(ndx.use(self.device))
        if self.slot.workspace is not None:
            self.scopes.enter_context(self.slot.workspace)
        return map_tree(self.to_device, staged)

    def staged(self, leaf: Any) -> Any:
        return ndx.asarray(leaf, copy=True) if is_array_of_numpy(leaf) else leaf

    def to_device(self, leaf: Any) -> Any:
        if not isinstance(leaf, ndx.NDArray):
            return leaf
        moved = leaf.to_device(self.device)
        if moved is leaf:
            # It is there already; perhaps it is the source's own.
            return self.own(leaf)
        self.exports.append(export(moved))
        return moved


def scope_left_open() -> ndx.WorkspaceError:
    """Return the error of a source that yields inside of a scope of its own."""
    return ndx.WorkspaceError(
        "the source of a prefetch made a batch inside a scope that it left open (of "
        "ndx.workspace, ndx.use or ndx.no_workspace), so that the ring's slot can't "
        "be left. End the scope before each yield, or give workspace=None: batches are "
        "in no ring then"
    )


def current_place() -> tuple[object, object]:
    """Return where a new array would be: the backend, and the workspace if any."""
    return ndx.current_backend(), ndx.current_workspace()


def is_array_of_numpy(leaf: Any) -> bool:
    """Whether a leaf is an array that ndx takes: not an object array, or a mask."""
    if type(leaf) is not np.ndarray and type(leaf) is not np.memmap:
        return False
    return is_known(leaf.dtype.newbyteorder("="))


def export(x: ndx.NDArray) -> Any:
    """Return an export of an array's memory, which keeps it in place."""
    return ndx.engines.export(x)[1]
