"""The check of the private field that `numpy_default` reads from CPython."""

import contextvars


def is_default(address):
    """Whether a function returns the address of a context variable's default."""
    first, second = object(), object()
    return [
        address(contextvars.ContextVar(name, default=default))
        for name, default in (("first", first), ("second", second), ("third", first))
    ] == [id(first), id(second), id(first)]
