"""Calls of other libraries with arrays, as data, and arrays of several kinds for them.

A file of `interop/calls` is of one library. Its first lines are run once: imports, and
functions. The lines after a blank one are run before each call: what is there a NumPy
array becomes an array of the kind that is tested, a NumPy scalar becomes one without
dimensions with ndx. Then come chapters of calls, one a line. `[name, needs
module>=1.2]` is left out without the module, or with an older one, `[name, q in LIST]`
is run for each source of LIST. `[name, not empty]` has no arrays without elements: the
library's compiled code reads or writes beyond the end of these, also of NumPy's.

A call is an expression, after statements if need be ("; "). What it says after "  # ":

- "raises TypeError: why": ours are refused, or answered as NumPy's;
- "raises TypeError if empty, strided: why": these kinds of arrays are;
- "may raise": NumPy's are, too, in some cases;
- "as an array": it is about the object, which has no dimensions with ndx.
"""

import ast
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ndx
from helpers.answers import Refused, watched

FOLDER = Path(__file__).parents[1] / "interop/calls"


def version_of(name):
    """Return the first two numbers of a module's version."""
    return tuple(map(int, import_module(name).__version__.split(".")[:2]))


class Call(NamedTuple):
    """A line of a chapter: an expression, and what is said of it."""

    expression: str
    remark: str = ""

    def may_raise(self, error, kind):
        """Whether the line says that an error is raised for a kind of arrays."""
        if self.remark == "may raise":
            return True
        said = re.match(r"raises ([\w, ]+?)(?: if ([\w, -]+))?(?:: .*)?$", self.remark)
        if said is None or error.name not in said[1].split(", "):
            return False
        return said[2] is None or kind in said[2].split(", ")


class Library:
    """The calls of one library.

    Parameters
    ----------
    name : str
        The file's name, without its ending.
    """

    def __init__(self, name):
        text = (FOLDER / f"{name}.txt").read_text("utf-8")
        setup, *parts = re.split(r"^\[([^\]]*)\]$", text, flags=re.MULTILINE)
        self.once, _, self.each = setup.partition("\n\n")
        self.name = name
        self.known = None
        self.chapters = {}
        for title, lines in zip(parts[::2], parts[1::2], strict=True):
            self.chapters[title] = [
                Call(*line.split("  # ")) for line in lines.splitlines() if line
            ]

    def missing(self, title):
        """Return the name of a module that a chapter needs, if it is not installed."""
        imports = [
            node
            for node in ast.parse(self.once).body
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = [
            name
            for node in imports
            for name in (
                [node.module]
                if isinstance(node, ast.ImportFrom)
                else [each.name for each in node.names]
            )
        ]
        _, _, need = title.partition(", needs ")
        need, _, least = need.partition(",")[0].partition(">=")
        for name in [*names, need]:
            top = name.partition(".")[0]
            if top and find_spec(top) is None:
                return top
        if least and version_of(need) < tuple(map(int, least.split("."))):
            return f"{need} {least}"
        return None

    def load(self):
        """Import what the calls need, once."""
        if self.known is None:
            known = {"np": np}
            exec(self.once, known)
            self.known = known

    def calls(self, title, kind):
        """Return the calls of a chapter with a kind of arrays."""
        calls = self.chapters[title]
        found = re.search(r", (\w+) in (\w+)$", title)
        if found is None:
            return calls
        return [
            Call(f"{found[1]} = {source}; {call.expression}", "may raise")
            for source in self.known[found[2]]
            for call in calls
        ]

    def names(self, convert, element):
        """Return new names for one call, with arrays and numbers that are converted."""
        names = dict(self.known)
        exec(self.each, names)
        for name, value in names.items():
            if isinstance(value, np.generic):
                names[name] = element(value)
            elif type(value) is np.ndarray:
                names[name] = convert(value)
        return names


def plain(xp, array):
    return xp.asarray(array, copy=True)


def strided(xp, array):
    """Return an array of every other element."""
    if not array.ndim:
        return plain(xp, array)
    shape = (*array.shape[:-1], 2 * array.shape[-1])
    view = xp.asarray(np.zeros(shape, array.dtype))[..., ::2]
    view[...] = xp.asarray(array)
    return view


def read_only(xp, array):
    array = array.copy()
    array.flags.writeable = False
    return xp.asarray(array)


def empty(xp, array):
    return plain(xp, array[:0] if array.ndim else array)


KINDS = {"plain": plain, "strided": strided, "read-only": read_only, "empty": empty}


def with_numpys(library, kind, call):
    """Return the names of a call with NumPy's arrays."""
    element = np.asarray if call.remark == "as an array" else lambda x: x
    return library.names(lambda x: KINDS[kind](np, x), element)


def with_ours(library, kind):
    """Return the names of a call with ours; those of a workspace may have ended."""
    if kind != "stale":
        return library.names(lambda x: KINDS[kind](ndx, x), ndx.asarray)
    with ndx.workspace() as workspace:
        names = library.names(lambda x: plain(ndx, x), lambda x: plain(ndx, x))
    with workspace:  # others are where they were
        ndx.full(1 << 12, 0xAA, dtype=ndx.uint8)
    return names


def outcome(library, kind, call):
    """Return "right" or "refused", None if NumPy's arrays are; or what is wrong."""
    expected, said = watched(
        call.expression,
        with_numpys(library, "plain" if kind == "stale" else kind, call),
    )
    if isinstance(expected, Refused):
        if kind == "plain" and call.remark != "may raise":
            return f"{call.expression}\n  raises with NumPy's arrays: {expected}"
        return None
    answered, heard = watched(call.expression, with_ours(library, kind))
    if isinstance(answered, Refused):
        if kind == "stale" or call.may_raise(answered, kind):
            return "refused"
        return f"{call.expression}\n  refused: {answered}"
    if kind == "stale" and "<stale NDArray" in str(answered):
        return "refused"  # a text that says so
    if answered != expected:
        return f"{call.expression}\n  ours {answered}\n  NumPy {expected}"
    if kind == "plain" and heard != said:
        return f"{call.expression}\n  ours warns {heard}\n  NumPy {said}"
    return "right"
