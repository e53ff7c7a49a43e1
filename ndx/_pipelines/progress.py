"""Progress bars, by tqdm, which is imported when one is wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["with_progress"]

Item = TypeVar("Item")


def with_progress(
    items: Iterable[Item], wanted: bool | str, unit: str
) -> Iterable[Item]:
    """Return items that move a progress bar, if one is wanted.

    Parameters
    ----------
    items : iterable
        Its length is the end of the bar, if it has one.
    wanted : bool or str
        A str stands beside the bar.
    unit : str
        What an item is called.
    """
    if wanted is False:
        return items
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        msg = "a progress bar needs tqdm: pip install ndx[progress]; or progress=False"
        raise ImportError(msg) from error
    bar: Iterable[Item] = tqdm(
        items, desc=wanted if isinstance(wanted, str) else None, unit=unit
    )
    return bar
