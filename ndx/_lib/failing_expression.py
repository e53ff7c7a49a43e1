"""The user's expression at which an error arose; computed only for errors."""

import linecache
import re
import sys
from inspect import CO_OPTIMIZED, getattr_static
from itertools import islice

from ndx._lib.call_site import users_frame

__all__ = ["what_was_done"]

# Matches "x" and "self.x".
_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_LONGEST = 80
# References to a frame's dict of locals: the frame's own, a local variable, and the
# argument of `sys.getrefcount`.
_REFERENCES = 3


def what_was_done(x):
    """Return the user's running expression, and the name of an object in it.

    Returns
    -------
    tuple of (str or None, str or None)
        Such as ``("loss + 1", "loss")``. None if the source is not available, or if the
        object has no name there.

    Notes
    -----
    It never raises: an exception here would hide the error that it describes.
    """
    try:
        frame = users_frame(sys._getframe(1))
        if frame is None:
            return None, None
        text = _expression(frame.f_code, frame.f_lasti)
        if text is None:
            return None, None
        return _shortened(text), _name_of(x, frame, set(re.findall(_NAME, text)))
    except Exception:
        return None, None


def _expression(code, offset):
    """Return the source of the instruction at an offset, joined to one line."""
    if code.co_filename == "<string>":
        return None  # many have this name; from Python 3.13 on, its text is that of -c
    place = next(islice(code.co_positions(), offset // 2, None), None)
    if place is None or None in place:
        return None
    first, last, start, end = place
    lines = [
        linecache.getline(code.co_filename, number).encode()
        for number in range(first, last + 1)
    ]
    # Positions count columns in bytes, not characters.
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    parts = [line.decode(errors="replace").strip() for line in lines]
    text = " ".join(filter(None, parts))
    if len(parts) > 1:
        text = text.replace("( ", "(").replace(" )", ")").replace(",)", ")")
    return text or None


def _shortened(text):
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _name_of(x, frame, names):
    """Return the name, among `names`, that refers to an object in a frame."""
    code = frame.f_code
    local = frame.f_locals
    found = [_find(x, name, (local, frame.f_globals)) for name in names]
    # Before Python 3.13 the frame caches this dict, which would keep arrays alive. Its
    # variables are removed, unless user code has the dict, too (from `locals()`). The
    # frame fills it again at the next access.
    if (
        code.co_flags & CO_OPTIMIZED
        and type(local) is dict
        and sys.getrefcount(local) <= _REFERENCES
    ):
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            local.pop(name, None)
    return min(filter(None, found), default=None)


def _find(x, name, spaces):
    """Return the prefix of a dotted name that refers to an object; None if none does.

    Attributes are looked up statically, so that no user code runs.
    """
    first, *rest = name.split(".")
    value = next((space[first] for space in spaces if first in space), None)
    path = first
    while value is not x and rest:
        path += "." + rest[0]
        value = getattr_static(value, rest.pop(0), None)
    return path if value is x else None
