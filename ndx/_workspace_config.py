"""The policies of a workspace: a frozen value that is compared and printed."""

import dataclasses
import math

from ndx._sizes import parse_size

__all__ = ["WorkspaceConfig"]

_CHOICES = {"learn": ("first", "none"), "spill": ("external", "fail")}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceConfig:
    """The policies of a workspace.

    Parameters
    ----------
    size : int or str
        Bytes of the arena, such as ``"64MiB"``. 0: it is learned, or there is none.
    learn : {"first", "none"}
        How the size is found where it is 0: from the first cycle, or not at all.
    overallocation : float
        What is added to a learned size, as a part of it: 0.3 for 30 %; 0 is strict.
    spill : {"external", "fail"}
        What becomes of a request that does not fit: the backend serves it, or
        `OutOfMemoryError` is raised (not while the size is still to be learned).

    Raises
    ------
    ValueError
        If a value is not among the valid ones.
    """

    size: int = 0
    learn: str = "first"
    overallocation: float = 0.3
    spill: str = "external"

    def __post_init__(self):
        object.__setattr__(self, "size", parse_size(self.size))
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                valid = ", ".join(map(repr, choices))
                msg = (
                    f"{name}={value!r} is not valid for a workspace; valid are {valid}"
                )
                raise ValueError(msg)
        try:
            overallocation = float(self.overallocation)
        except (TypeError, ValueError):
            overallocation = math.nan
        if not 0 <= overallocation <= 100:
            msg = (
                f"overallocation={self.overallocation!r} is not valid for a workspace; "
                "it is a number from 0 to 100 (0.3 adds 30 %)"
            )
            raise ValueError(msg)
        object.__setattr__(self, "overallocation", overallocation)
