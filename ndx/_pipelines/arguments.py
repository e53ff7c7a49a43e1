"""Checks of arguments."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

__all__ = ["check_choice", "check_count"]


def check_choice(
    name: str,
    value: Any,
    choices: Sequence[Any],
    wrong: str = "is not valid",
    more: str = "",
) -> None:
    """Raise a ValueError that lists the choices, and `more`, if a value is none."""
    if not any(value is each or value == each for each in choices):
        valid = ", ".join(map(repr, choices))
        raise ValueError(f"{name}={value!r} {wrong}; valid are {valid}{more}")


def check_count(number: Any, name: str) -> int:
    """Return a count that is 1 or more, or raise an error that names it."""
    try:
        count = operator.index(number)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(number).__name__}") from None
    if isinstance(number, bool) or count < 1:
        raise ValueError(f"{name}={number!r} is not a count: give 1 or more")
    return count
