"""Checks of arguments, and of the functions that workers call."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

__all__ = ["check_choice", "check_count", "check_function"]


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


def check_function(function: Any, what: str) -> Callable[..., Any]:
    """Return a function, or raise if workers can't call it and be done."""
    if not callable(function):
        raise TypeError(f"{what} must be callable, not {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        raise TypeError(
            f"{what} is the coroutine function {function!r}: a worker is a thread, "
            "without an event loop. Give a plain function"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"{what} is the generator function {function!r}: it would run after the "
            "worker's scope has ended. Return a list"
        )
    return cast("Callable[..., Any]", function)
