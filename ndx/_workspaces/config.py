"""The policies of a workspace: a frozen value that is compared and printed."""

from __future__ import annotations

import dataclasses
import math
import operator
import os
from typing import TYPE_CHECKING

from ndx._lib.options import repr_of_changes
from ndx._lib.sizes import parse_size

if TYPE_CHECKING:
    from typing import Unpack

    from ndx._typing import Escape, Learn, Mirror, Policies, Reset, Spill

__all__ = ["WorkspaceConfig"]

_CHOICES = {
    "learn": ("first", "over-time", "none", "liveness"),
    "spill": ("external", "grow", "fail", "mmap", "host"),
    "reset": ("scope", "ring"),
    "escape": ("raise", "detach"),
    "mirror": ("none", "host"),
}
_SLOTS = 2
_MOST_SLOTS = 4096


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceConfig:
    """The policies of a workspace.

    Parameters
    ----------
    size : int or str
        Bytes of the arena (of each slot of a ring), such as ``"64MiB"``; taken as it
        is. 0: it is learned, or there is none.
    min_size, max_size : int or str, optional
        Bounds, in bytes, of a size that is learned. What does not fit is spilled.
    overallocation : float, optional
        What is added to a learned size, as a part of it: 0.3 for 30 %; 0 is strict.
        Default: 0.3; 0 for ``learn="liveness"``.
    learn : {"first", "over-time", "none", "liveness"}
        How the size is found where it is 0: from the first cycle that makes anything;
        as the most of the first `cycles` cycles; not at all; or from a plan of
        offsets, which is made from the births and deaths of the first cycle's arrays,
        and made again when they change.
    cycles : int
        For ``learn="over-time"``: how many cycles are observed. 0: until
        `Workspace.initialize` is called.
    spill : {"external", "grow", "fail", "mmap", "host"}
        What becomes of a request that does not fit: the backend serves it; the same,
        and the arena is larger from the next cycle on; `OutOfMemoryError` is raised;
        the backend ``mmap`` serves it, from files. Of a GPU's, ``"host"`` and
        ``"mmap"`` serve what its backend has no more memory for: from page-locked
        memory of the host, or from files where the GPU can address those.
        ``"fail"``, and ``"mmap"`` of the host's, don't hold while the size is still to
        be learned.
    reset : {"scope", "ring"}
        When memory is reclaimed: at the end of the scope; or in turn, when as many
        later scopes as there are slots have begun. Until then its arrays are valid.
    slots : int, optional
        Slots of a ring, from 2 on; each has an arena of its own. Default: 2.
    path : str or os.PathLike, optional
        A file that the arena lies in. It is made if there is none, keeps its content,
        and grows to `size` (by default it is taken as long as it is): arrays that are
        made by `ndx.empty`, in the same order and sizes, have the values of the cycle
        before, or of the process before. Not for rings or ``learn="liveness"``.
    escape : {"raise", "detach"}
        What becomes of arrays that are still referenced when their memory is
        reclaimed: to use one raises `StaleArrayError`; or they are moved out, to the
        backend that is current outside of the scope.
    mirror : {"none", "host"}
        Whether a GPU's arena has a mirror on the host, of the same size: copies of its
        arrays to the CPU then lie in the mirror, as long as they do in the arena, and
        copies from the CPU pass through it.
    debug : bool
        Record which line made each array, fill reclaimed memory with a pattern, and
        check guard bytes behind each array. Slow.

    Raises
    ------
    ValueError
        If a value is not among the valid ones, or two contradict each other.

    Notes
    -----
    The names of ND4J's ``WorkspaceConfiguration`` for these are ``initialSize``,
    ``minSize``, ``maxSize``, ``overallocationLimit``, ``policyLearning``,
    ``cyclesBeforeInitialization``, ``policySpill``, ``policyReset``,
    ``policyMirroring``; it has no escape policy and no lifetimes.

    Examples
    --------
    >>> import ndx
    >>> ndx.WorkspaceConfig(size="1KiB", spill="fail")
    WorkspaceConfig(size=1024, spill='fail')
    >>> ndx.WorkspaceConfig(slots=4, reset="ring") == ndx.WorkspaceConfig(reset="ring")
    False
    """

    size: int = 0
    min_size: int = 0
    max_size: int | None = None
    overallocation: float | None = None
    learn: Learn = "first"
    cycles: int = 0
    spill: Spill = "external"
    reset: Reset = "scope"
    slots: int | None = None
    path: str | None = None
    escape: Escape = "raise"
    mirror: Mirror = "none"
    debug: bool = False

    if TYPE_CHECKING:  # what is given may be of more types than what is kept

        def __init__(self, **policies: Unpack[Policies]) -> None: ...

    def __post_init__(self):
        for name in ("size", "min_size"):
            object.__setattr__(self, name, parse_size(getattr(self, name), name))
        if self.max_size is not None:
            object.__setattr__(self, "max_size", parse_size(self.max_size, "max_size"))
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                valid = ", ".join(map(repr, choices))
                msg = (
                    f"{name}={value!r} is not valid for a workspace; valid are {valid}"
                )
                raise ValueError(msg)
        if self.overallocation is not None:
            object.__setattr__(self, "overallocation", _fraction(self.overallocation))
        self._check_counts()
        self._check_sizes()
        if self.path is not None:
            self._check_path()

    def _check_counts(self):
        cycles = _count("cycles", self.cycles)
        object.__setattr__(self, "cycles", cycles)
        if cycles < 0 or (cycles and self.learn != "over-time"):
            msg = (
                f"cycles={cycles} is not valid with learn={self.learn!r}; it is the "
                "number of cycles that learn='over-time' observes"
            )
            raise ValueError(msg)
        if self.reset == "ring":
            slots = _SLOTS if self.slots is None else _count("slots", self.slots)
            object.__setattr__(self, "slots", slots)
            if not 2 <= slots <= _MOST_SLOTS:
                msg = f"slots={slots} is not valid; a ring has 2 to {_MOST_SLOTS}"
                raise ValueError(msg)
        elif self.slots is not None:
            msg = f"slots={self.slots!r} is for reset='ring', not {self.reset!r}"
            raise ValueError(msg)
        if not isinstance(self.debug, bool):
            msg = f"debug must be True or False, not {self.debug!r}"
            raise TypeError(msg)

    def _check_path(self):
        path = os.path.abspath(os.fsdecode(self.path))
        object.__setattr__(self, "path", path)
        for name, value in (("reset", "ring"), ("learn", "liveness")):
            if getattr(self, name) == value:
                msg = (
                    f"path={path!r} is not valid with {name}={value!r}: what is in the "
                    "file is found by its place, which has to be the same each cycle"
                )
                raise ValueError(msg)

    def _check_sizes(self):
        strict = self.spill in ("fail", "mmap") and self.path is None
        if strict and self.learn == "none" and not self.size:
            msg = (
                f"spill={self.spill!r} is not valid with learn='none' and size=0: "
                "there would never be an arena. Give a size, or let it be learned"
            )
            raise ValueError(msg)
        top = self.max_size
        if top is None:
            return
        for name in ("size", "min_size"):
            value = getattr(self, name)
            if top == 0 or value > top:
                msg = (
                    f"max_size={top} is not valid with {name}={value}; it is the upper "
                    "bound of the size, or None for no bound"
                )
                raise ValueError(msg)

    @property
    def margin(self) -> float:
        """The part of a learned size that is added to it."""
        if self.overallocation is not None:
            return self.overallocation
        return 0.0 if self.learn == "liveness" else 0.3

    __repr__ = repr_of_changes


def _fraction(value):
    try:
        fraction = float(value)
    except (TypeError, ValueError):
        fraction = math.nan
    if not 0 <= fraction <= 100:
        msg = (
            f"overallocation={value!r} is not valid for a workspace; it is a number "
            "from 0 to 100 (0.3 adds 30 %)"
        )
        raise ValueError(msg)
    return fraction


def _count(name, value):
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    msg = f"{name} must be an int, not {type(value).__name__}"
    raise TypeError(msg)
