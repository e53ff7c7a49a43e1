"""Making one batch in a slot: what the source makes lies there, the rest is copied."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

import ndx
from ndx._lib.trees import map_tree

if TYPE_CHECKING:
    from types import TracebackType

    from ndx._pipelines.leases import Ring, Slot

__all__ = ["Filling", "FillingOnDevice", "filling"]


_READ_ONLY = (
    "ndx.prefetch makes an array that the source has made and yielded read-only for "
    "the source: the consumer may still read it. Make a new one for each batch, or "
    "yield ndx.asarray(x, copy=True)"
)


def filling(ring: Ring, slot: Slot, device: str | None, copy: bool) -> Filling:
    """Return the scope in which the source makes a batch, for a slot."""
    if device is None:
        return Filling(ring, slot, copy)
    return FillingOnDevice(ring, slot, copy, device)


class Filling:
    """The scope in which the source makes a batch.

    Parameters
    ----------
    ring : Ring
        Whose slot it is.
    slot : Slot
        A free one.
    copy : bool
        Whether NDArrays that are in no workspace, and parts of larger arrays, are
        copied: the source may write the next batch to them. What else it has made
        becomes read-only for it.
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
            made_here = self.slot.workspace is not None and self.slot.workspace.owns(
                leaf
            )
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
    """The same, for a slot on a GPU: the source runs in page-locked memory."""

    def __init__(self, ring: Ring, slot: Slot, copy: bool, device: str) -> None:
        super().__init__(ring, slot, copy)
        self.device = device

    def enter_source(self) -> None:
        self.scopes.enter_context(ndx.use("pinned"))

    def is_covered(self) -> bool:
        return current_place() != self.place

    def take_over(self, batch: Any) -> Any:
        pinned = map_tree(self.to_pinned, batch)
        # The source's scope ends; the rest is the GPU's.
        self.scopes.close()
        self.scopes.enter_context(ndx.use(self.device))
        if self.slot.workspace is not None:
            self.scopes.enter_context(self.slot.workspace)
        return map_tree(self.to_device, pinned)

    def to_pinned(self, leaf: Any) -> Any:
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


def current_place() -> tuple[object, object]:
    """Return where a new array would be: the backend, and the workspace if any."""
    return ndx.current_backend(), ndx.current_workspace()


def is_array_of_numpy(leaf: Any) -> bool:
    """Whether a leaf is an array that ndx takes: not an object array, or a mask."""
    if type(leaf) is not np.ndarray and type(leaf) is not np.memmap:
        return False
    return leaf.dtype.newbyteorder("=") in _DTYPES


_DTYPES = frozenset(ndx.__array_namespace_info__().dtypes().values())


def export(x: ndx.NDArray) -> Any:
    """Return an export of an array's memory, which keeps it in place."""
    # No stream is to wait: the capsule is dropped unread.
    return memoryview(x) if x.device == "cpu" else x.__dlpack__(stream=-1)
