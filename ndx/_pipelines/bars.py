"""Progress bars, by tqdm."""

from __future__ import annotations

from typing import Any

__all__ = ["progress_bar"]


class _NoBar:
    """What is used without a bar."""

    def update(self, count: int = 1) -> None:
        pass

    def set_postfix(self, **values: Any) -> None:
        pass

    def close(self) -> None:
        pass


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
    ImportError
        If tqdm is not installed.
    """
    if wanted is False:
        return _NoBar()
    if wanted is not True and not isinstance(wanted, str):
        raise TypeError(
            f"progress must be a bool or a text (str), not {type(wanted).__name__}"
        )
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError(
            f"progress={wanted!r} needs tqdm, which is not installed: "
            "pip install 'ndx[progress]'"
        ) from error
    # Without tqdm's thread, which would stay after the bar.
    kind = type("tqdm", (tqdm,), {"monitor_interval": 0})
    text = wanted if isinstance(wanted, str) else None
    return kind(total=total, unit=unit, desc=text)
