"""Errors of workers, told at the place where they belong."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any, cast

__all__ = ["check_function", "with_index", "without_stop_iteration"]


def with_index(error: BaseException, what: str, index: int) -> BaseException:
    """Return an error that says to which item or batch it belongs.

    Its type stays. The number is in a note, and in the attribute ``index_of_item``.
    """
    # Errors of C extensions may take no attributes.
    with contextlib.suppress(Exception):
        if getattr(error, "index_of_item", None) != index:
            error.add_note(f"raised for {what} {index} (counted from 0)")
        error.index_of_item = index  # type: ignore[attr-defined]
    return error


def without_stop_iteration(error: BaseException) -> BaseException:
    """Return a RuntimeError for a StopIteration, as generators do (PEP 479).

    An iterator that raised the latter would end as if there were no more items.
    """
    if not isinstance(error, StopIteration):
        return error
    made = RuntimeError("the function raised StopIteration")
    made.__cause__ = error
    return made


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
