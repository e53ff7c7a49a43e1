"""What an evaluation has found: as values, as text, as HTML, and as a picture."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any

from ndx._lib.tables import Table, format_number, literal

__all__ = ["Report"]

# The width and height of a panel of a picture, in inches.
_PANEL = 5, 4.5


class Report(Mapping[str, Any]):
    """The results of an evaluation, by the names of the metrics.

    Made by `ndx.evaluate`. ``print(report)`` shows tables as text; at the end of a
    notebook's cell it is shown as HTML. All arrays in it are independent.

    Attributes
    ----------
    batches : int
        How many batches were evaluated.
    """

    __slots__ = ("_results", "batches")

    def __init__(self, results: Mapping[str, Any], batches: int) -> None:
        self._results, self.batches = dict(results), batches

    def __getitem__(self, name: str) -> Any:
        try:
            return self._results[name]
        except KeyError:
            names = ", ".join(map(repr, self._results))
            msg = f"the report has no metric {name!r}; it has {names}"
            raise KeyError(msg) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __contains__(self, name: object) -> bool:
        return name in self._results

    # ---- Text and HTML ---------------------------------------------------------------

    @property
    def _title(self) -> str:
        return f"Evaluation of {self.batches} batch{'es' * (self.batches != 1)}"

    def __str__(self) -> str:
        parts = [self._title]
        for name, result in self.items():
            content = _content(result)
            each = [content] if isinstance(content, str) else map(str, content)
            parts += [f"{name}: {text}" for text in each]
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the report as HTML, with all text escaped."""
        parts = [f"<h3>{self._title}</h3>"]
        for name, result in self.items():
            parts.append(f"<h4>{html.escape(name)}</h4>")
            content = _content(result)
            if isinstance(content, str):
                parts.append(f"<pre>{html.escape(content)}</pre>")
            else:
                parts += [table._repr_html_() for table in content]
        return f"<div>{''.join(parts)}</div>"

    # ---- The picture -----------------------------------------------------------------

    def plot(self, path: str | PathLike[str] | None = None, *, dpi: float = 150) -> Any:
        """Draw the results that have a picture: confusion matrices, ROC curves.

        Parameters
        ----------
        path : str or os.PathLike, optional
            Where to save it; the suffix (``.png``, ``.svg``, ``.pdf``) is the format.
        dpi : float
            Dots per inch of a saved picture; a panel is 5 inches wide.

        Returns
        -------
        matplotlib.figure.Figure
            With a panel for each result. A notebook shows it.

        Raises
        ------
        ImportError
            If there is no matplotlib (``pip install 'ndxarray[plot]'``).
        ValueError
            If no result has a picture.
        """
        drawn = {name: draw for name, x in self.items() if (draw := _drawing_of(x))}
        if not drawn:
            names = ", ".join(map(repr, self)) or "none"
            raise ValueError(
                f"no result of this report has a picture (its metrics: {names}); "
                "Classification and ROC have one, and results with plot(axes)"
            )
        figure = _new_figure(len(drawn))
        for axes, (name, draw) in zip(figure.axes, drawn.items(), strict=True):
            draw(axes)
            title = axes.get_title()
            axes.set_title(f"{literal(name)}{': ' * bool(title)}{title}", fontsize=11)
        if path is not None:
            figure.savefig(path, dpi=dpi)
        return figure


def _new_figure(panels: int) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "report.plot needs matplotlib: pip install 'ndxarray[plot]'; "
            "or print(report)"
        ) from error
    # Not by pyplot, which would keep it, and open a window.
    width, height = _PANEL
    figure = Figure(figsize=(width * panels, height), layout="constrained")
    figure.subplots(1, panels)
    return figure


def _content(result: Any) -> list[Table] | str:
    """Return the tables of a result of `ndx.metrics`; of another one its text."""
    tables = getattr(result, "tables", None)
    try:
        found = tables() if callable(tables) else None
    except ImportError as error:
        return f"{result}\n({error})"
    if isinstance(found, list) and all(isinstance(each, Table) for each in found):
        return found
    return format_number(result) if type(result) is float else str(result)


def _drawing_of(result: Any) -> Callable[[Any], Any] | None:
    draw = getattr(result, "plot", None)
    return draw if callable(draw) else None
