"""What a prefetch was asked to do, checked."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

import ndx
from ndx._pipelines.leases import Filling, Ring, Slot, SlotSize, filling

__all__ = ["Settings"]

# Slots beside those of the batches ahead: the one that the consumer has, the one that
# it still names while it asks for the next, and the one that a generator still names
# while it makes the next.
_SPARE_SLOTS = 3
_MOST_AHEAD = 4096


@dataclass(frozen=True)
class Settings:
    """The options of `ndx.prefetch`; see there."""

    depth: int = 8
    workspace: str | None = "ring"
    slots: int | None = None
    warmup: int = 3
    slot_size: int | str = 0
    on_held: str = "wait"
    patience: float = 10.0
    device: Any = None
    copy: bool = True
    progress: bool | str = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "depth", _count("depth", self.depth, 1, _MOST_AHEAD))
        put(self, "warmup", _count("warmup", self.warmup, 1, _MOST_AHEAD))
        if self.slots is None:
            put(self, "slots", self.depth + _SPARE_SLOTS)
        else:
            put(self, "slots", _count("slots", self.slots, 2, 2 * _MOST_AHEAD))
        _choice("workspace", self.workspace, ("ring", None))
        _choice("on_held", self.on_held, ("wait", "grow"))
        put(self, "slot_size", _size("slot_size", self.slot_size))
        patience: Any = self.patience
        if not isinstance(patience, int | float) or not patience >= 0:
            raise ValueError(
                f"patience={self.patience!r} is not valid; it is a number of seconds, "
                "0 or more"
            )
        if math.isinf(self.patience):
            raise ValueError(
                "patience=inf is not valid: the consumer would wait for ever for a "
                "batch that can't be made. Give a number of seconds"
            )
        if not isinstance(self.copy, bool):
            raise TypeError(f"copy must be True or False, not {self.copy!r}")
        if not isinstance(self.progress, bool | str):
            raise TypeError(
                "progress must be True, False or the bar's description, not "
                f"{self.progress!r}"
            )
        if self.device is not None:
            put(self, "device", _gpu(self.device))

    @property
    def grows(self) -> bool:
        """Whether the ring gets more slots rather than wait."""
        return self.on_held == "grow"

    def ring(self) -> Ring:
        """Return a new ring, for the thread that is to use it."""
        assert self.slots is not None
        return Ring(
            self.slots,
            SlotSize(self.warmup, int(self.slot_size)),
            self.device,
            self.workspace is not None,
        )

    def filling(self, ring: Ring, slot: Slot) -> Filling:
        """Return the scope in which the source makes a batch in a slot."""
        return filling(ring, slot, self.device, self.copy)


def _count(name: str, value: Any, least: int, most: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not least <= number <= most:
        raise ValueError(f"{name}={number} is not valid; it is from {least} to {most}")
    return number


def _size(name: str, value: Any) -> int:
    try:
        return ndx.WorkspaceConfig(size=value).size
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if not any(value is each or value == each for each in choices):
        valid = ", ".join(map(repr, choices))
        raise ValueError(f"{name}={value!r} is not valid; valid are {valid}")


def _gpu(device: Any) -> str | None:
    """Return the name of a GPU; None for the CPU."""
    if str(device) == "cpu":
        return None
    found = str(ndx.backends.get(str(device)).device)
    if found == "cpu":
        raise ValueError(
            f"device={device!r} is not valid; it is a GPU, such as 'cuda:0', or 'cpu'. "
            "Backends of the CPU are chosen by ndx.use"
        )
    return found
