"""Models of a peak over the size of a batch, from the allocations of two runs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PeakLine", "PeakModel", "Sample"]


class Sample(NamedTuple):
    """A recorded run: what the backend had lent after each birth, and its line."""

    batch: int
    peak_bytes: int
    births: list[tuple[int, str | None]]

    @property
    def is_told(self) -> bool:
        """Whether the peak is that of a birth."""
        return self.peak_bytes == max((lent for lent, _ in self.births), default=0)


class PeakLine(NamedTuple):
    """Bytes that grow with a batch of n in proportion: ``constant + per_item * n``.

    Attributes
    ----------
    per_item, constant : fractions.Fraction
        Bytes.
    line : str or None
        The line of the program whose array reaches them.
    """

    per_item: Fraction
    constant: Fraction
    line: str | None = None

    def at(self, n: int) -> Fraction:
        """Return the bytes for a batch of n."""
        return self.constant + self.per_item * n

    def __str__(self):
        per_item, constant = (
            f"{int(each):,}" if each.denominator == 1 else f"{float(each):,.2f}"
            for each in (self.per_item, self.constant)
        )
        return f"{per_item} n + {constant}" + (f"  {self.line}" if self.line else "")


class PeakModel:
    """The peak as a function of the batch: the greatest of some lines.

    If a function allocates arrays in the same order for two batches, each allocation
    has a line of its own, and the greatest of these is exact for any batch of which
    that holds. Else there is one line, through the two peaks.

    Parameters
    ----------
    lines : iterable of PeakLine

    Attributes
    ----------
    lines : tuple of PeakLine
        Those that are the greatest for some batch from 1 on, in this order.
    """

    def __init__(self, lines: Iterable[PeakLine]) -> None:
        found: list[PeakLine] = []
        for each in sorted(lines, key=lambda line: (line.per_item, line.constant)):
            # A line that others are above of everywhere goes.
            while found and (
                each.at(1) >= found[-1].at(1)
                or (len(found) > 1 and _hidden(found[-2], found[-1], each))
            ):
                found.pop()
            found.append(each)
        self.lines = tuple(found)

    @classmethod
    def through(cls, a: Sample, b: Sample) -> PeakModel:
        """Return the model that two recorded runs tell."""
        pairs = {(a.peak_bytes, b.peak_bytes): None}
        if len(a.births) == len(b.births):
            births = zip(a.births, b.births, strict=True)
            lent = {(low, high): line for (low, _), (high, line) in births}
            # What is no birth of an array's, such as a buffer, has no line of its own.
            pairs = lent if a.is_told and b.is_told else pairs | lent
        lines = []
        for (low, high), line in pairs.items():
            per_item = Fraction(high - low, b.batch - a.batch)
            lines.append(PeakLine(per_item, low - per_item * a.batch, line))
        return cls(lines)

    def at(self, n: int) -> int:
        """Return the peak for a batch of n, in bytes.

        Parameters
        ----------
        n : int

        Returns
        -------
        int
        """
        return round(max(each.at(n) for each in self.lines))

    def largest(self, limit: int) -> int | None:
        """Return the largest batch whose peak is within a limit; None: any is.

        Parameters
        ----------
        limit : int
            Bytes.

        Returns
        -------
        int or None
        """
        growing = [each for each in self.lines if each.per_item > 0]
        return min(
            (int((limit - each.constant) // each.per_item) for each in growing),
            default=None,
        )

    def __repr__(self):
        return f"<PeakModel: {'; '.join(map(str, self.lines))}>"


def _hidden(low: PeakLine, middle: PeakLine, high: PeakLine) -> bool:
    """Return whether `high` is above `middle` wherever that is above `low`."""
    return (low.constant - high.constant) * (middle.per_item - low.per_item) <= (
        low.constant - middle.constant
    ) * (high.per_item - low.per_item)
