"""Damage to memory, as users see it: what was written, where, and what lies there."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Damage", "text_of"]

_ADVICE = (
    "Look for foreign code (C, Cython, Numba, ctypes, a NumPy view with wrong strides) "
    "that got the address of it."
)


class Damage(NamedTuple):
    """Bytes that something wrote to which nothing may write.

    Attributes
    ----------
    kind : str
        ``"before"`` or ``"behind"`` memory in use, or ``"freed"``: in memory that was
        given back.
    address : int
        Of the memory's first byte.
    nbytes : int
        Bytes of the memory. Of freed memory: of the free range, which may have been
        several arrays.
    first, last : int
        The first and the last byte that was changed, counted from `address`.
    found : bytes
        What was written, from `first` on: 16 bytes at most.
    backend : str
        Name of the backend.
    workspace : str or None
        Name of the workspace in whose arena it is.
    line : str or None
        The line that made the memory: known with `ndx.memory.track`.
    shape : tuple of int or None
        Of the array that has the memory: known if `ndx.memory.check` found the damage.
    dtype : str or None
        Likewise.
    """

    kind: str
    address: int
    nbytes: int
    first: int
    last: int
    found: bytes
    backend: str
    workspace: str | None = None
    line: str | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None

    def __str__(self):
        what = f"{self.nbytes} bytes at {self.address:#x} (backend {self.backend!r}"
        if self.workspace is not None:
            what += f", workspace {self.workspace!r}"
        what += ")"
        if self.shape is not None:
            what += f", an array of {self.dtype} and shape {self.shape}"
        if self.line is not None:
            what += f", made at {self.line}"
        count = self.last - self.first + 1
        text = self.found.hex(" ") + (" ..." if count > len(self.found) else "")
        end = self.nbytes
        where = {
            "before": f"before {what}: at its start - {_span(-self.first, -self.last)}",
            "behind": f"behind {what}: at its end + "
            f"{_span(self.first - end, self.last - end)}",
            "freed": f"to freed memory, {what}: at byte {_span(self.first, self.last)}",
        }
        return f"{where[self.kind]}, {count} in all: {text}"


def _span(first, last):
    return f"{first}" if first == last else f"{first} to {last}"


def text_of(damages):
    """Return the text of a report."""
    told = "; and ".join(map(str, damages))
    return f"something wrote {told}. {_ADVICE}"
