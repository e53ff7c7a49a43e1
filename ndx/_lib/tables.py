"""Tables of reports, as aligned text and as HTML, and the text of numbers in them."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Table",
    "format_count",
    "format_number",
    "format_share",
    "literal",
]

# The colour of cells by their share, red, green and blue, as in the picture.
_DARK = (8, 48, 107)

# Characters of a name in a picture.
_LONGEST = 16


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; the first column names the rows.

    Attributes
    ----------
    title : str
    header : sequence of str
    rows : sequence of sequences of str
    shades : list of list of float, optional
        From 0 to 1, for all columns but the first: how dark a cell is in HTML.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    shades: list[list[float]] | None = None

    def __str__(self) -> str:
        lines = [[_one_line(cell) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        text = [self.title]
        for line in lines:
            cells = [_pad(line[0], widths[0], left=True)]
            cells += map(_pad, line[1:], widths[1:])
            text.append(("  " + "  ".join(cells)).rstrip())
        return "\n".join(text)

    def _repr_html_(self) -> str:
        """Return the table as HTML, with all text escaped."""
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in self.header)
        body = []
        for i, row in enumerate(self.rows):
            cells = [f'<th style="text-align: left">{html.escape(row[0])}</th>']
            for j, cell in enumerate(row[1:]):
                style = "text-align: right"
                if self.shades is not None:
                    style += _shade(self.shades[i][j])
                cells.append(f'<td style="{style}">{html.escape(cell)}</td>')
            body.append(f"<tr>{''.join(cells)}</tr>")
        return (
            f"<table><caption>{html.escape(self.title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        )


def _shade(share: float) -> str:
    red, green, blue = (round(255 + (dark - 255) * share) for dark in _DARK)
    text = "white" if share > 0.5 else "black"
    return f"; background: rgb({red}, {green}, {blue}); color: {text}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def _pad(text: str, width: int, left: bool = False) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


def format_share(value: Any) -> str:
    """Return a number between 0 and 1 as text."""
    return f"{float(value):.4f}"


def format_number(value: Any) -> str:
    """Return a number of any magnitude as text."""
    return f"{float(value):.6g}"


def format_count(value: Any) -> str:
    """Return a count, or a sum of weights, as text."""
    number = float(value)
    return f"{number:.0f}" if number.is_integer() else f"{number:.4g}"


def literal(text: str) -> str:
    """Return a short name for matplotlib.

    It reads "$" as the start of a formula, and leaves "_name" out of a legend.
    """
    line = _one_line(text)
    short = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
    return short.replace("$", r"\$").replace("_", "\u200b_", short.startswith("_"))
