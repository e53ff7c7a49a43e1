"""Checks at import of the private fields that compiled modules read from CPython."""

import contextvars


def is_context(address):
    """Whether a function returns the address of the current contextvars.Context."""
    first, second = contextvars.copy_context(), contextvars.copy_context()

    def nested():
        return address(), second.run(address), address()

    return first.run(nested) == (id(first), id(second), id(first))


def is_frame(address):
    """Whether a function returns a distinct, stable address for each running frame."""

    def inner():
        return address()

    def generate():
        while True:
            yield address()

    outside, inside, frames = address(), inner(), generate()
    generated = next(frames)
    return (
        0 not in (outside, inside, generated)
        and len({outside, inside, generated}) == 3
        and (address(), next(frames)) == (outside, generated)
    )


def is_code(address):
    """Whether a function returns the address of the code of each running frame."""

    def inner():
        return address()

    def generate():
        yield address()

    found = address(), inner(), next(generate())
    functions = is_code, inner, generate
    return found == tuple(id(function.__code__) for function in functions)


def is_default(address):
    """Whether a function returns the address of a context variable's default."""
    first, second = object(), object()
    return [
        address(contextvars.ContextVar(name, default=default))
        for name, default in (("first", first), ("second", second), ("third", first))
    ] == [id(first), id(second), id(first)]
