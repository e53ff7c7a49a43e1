"""Progress bars, by tqdm."""

from __future__ import annotations

from typing import Any

__all__ = ["length_of", "progress_bar", "tqdm_class"]


class _NoBar:
    """What is used without a bar."""

    def update(self, count: int = 1) -> None:
        pass

    def set_postfix(self, **values: Any) -> None:
        pass

    def close(self) -> None:
        pass


def tqdm_class() -> Any:
    """Return tqdm's bar for where this runs: a terminal or a notebook.

    Raises
    ------
    ImportError
        If tqdm is not installed.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError(
            "a progress bar needs tqdm, which is not installed: pip install "
            "'ndxarray[progress]'"
        ) from error
    # Without tqdm's thread, which would stay after the bar.
    return type("tqdm", (tqdm,), {"monitor_interval": 0})


def progress_bar(wanted: bool | str, total: int | None, unit: str) -> Any:
    """Return a progress bar, or what takes its place if none is wanted.

    Parameters
    ----------
    wanted : bool or str
        Whether there is one, or the text before it.
    total : int or None
        How many units there will be, if that is known.
    unit : str
        What is counted.

    Raises
    ------
    TypeError
        If `wanted` is neither.
    ImportError
        If tqdm is not installed.
    """
    if wanted is False:
        return _NoBar()
    if wanted is not True and not isinstance(wanted, str):
        raise TypeError(
            f"progress must be a bool or a text (str), not {type(wanted).__name__}"
        )
    text = wanted if isinstance(wanted, str) else None
    return tqdm_class()(total=total, unit=unit, desc=text)


def length_of(source: Any) -> int | None:
    """Return the number of items of a source; None if that is not known."""
    try:
        return len(source)
    except (TypeError, NotImplementedError):
        # A class may have `__len__` for some of its instances only.
        return None
