"""Named options: their names, the error for unknown ones, and their ``repr``."""

import dataclasses
import functools
import inspect
import operator
import re

__all__ = ["at_least", "option_error", "option_errors", "options_of", "repr_of_changes"]

_SECTION = r"(?s)\nParameters\n-+\n(.*?)(?=\n\n[A-Z]\w*\n-+\n|\Z)"
_ENTRY = r"(?m)^(\w[\w, ]*) : "


def at_least(value, name, least):
    """Return the int that an argument is; raise if it is none, or below `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        msg = f"{name} must be an int, not {type(value).__name__}"
        raise TypeError(msg) from None
    if number < least:
        msg = f"{name}={value!r} is not valid; it is at least {least}"
        raise ValueError(msg)
    return number


def options_of(factory):
    """Return the option names of a class or function; None if they are not known.

    Compiled classes have no signature; their docstring lists the options.
    """
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        section = re.search(_SECTION, "\n" + (inspect.getdoc(factory) or ""))
        if section is None:
            return None
        lines = re.findall(_ENTRY, section[1])
        return [name.strip() for line in lines for name in line.split(",")]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    by_position = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL
    return [each.name for each in parameters if each.kind not in by_position]


def option_error(owner, given, valid):
    """Return the TypeError for unknown options; it lists the valid ones."""
    from difflib import get_close_matches

    unknown = [name for name in given if name not in valid]
    text = f"{owner} has no option {', '.join(map(repr, unknown))}"
    close = get_close_matches(unknown[0], valid, 1)
    if close:
        text += f" (did you mean {close[0]}=?)"
    return TypeError(f"{text}; its options are {', '.join(valid) or 'none'}")


def option_errors(owner):
    """Decorate a method of named options only: unknown ones raise `option_error`."""

    def decorate(method):
        valid = [name for name in options_of(method) if name != "self"]

        @functools.wraps(method)
        def wrapper(self, *args, **options):
            if not options.keys() <= set(valid):
                raise option_error(owner, options, valid)
            return method(self, *args, **options)

        return wrapper

    return decorate


def repr_of_changes(options):
    """Return a `repr` of a dataclass with only the fields that are not the default."""
    changed = ", ".join(
        f"{field.name}={getattr(options, field.name)!r}"
        for field in dataclasses.fields(options)
        if getattr(options, field.name) != field.default
    )
    return f"{type(options).__name__}({changed})"
