"""A progress bar, by tqdm."""

from __future__ import annotations

from typing import Any

__all__ = ["Bar", "length_of"]


class Bar:
    """A bar that counts batches; without `progress`, nothing.

    Parameters
    ----------
    progress : bool or str
        Whether there is to be one; a str is its description.
    total : int, optional
        The number of batches, if that is known.
    """

    def __init__(self, progress: bool | str, total: int | None) -> None:
        self.bar: Any = None
        if progress is False:
            return
        description = progress if isinstance(progress, str) else None
        self.bar = tqdm_class()(total=total, desc=description, unit="batch")

    def update(self) -> None:
        """Count a batch."""
        if self.bar is not None:
            self.bar.update()

    def close(self) -> None:
        """Leave the bar as it is; any number of times."""
        bar, self.bar = self.bar, None
        if bar is not None:
            bar.close()


def tqdm_class() -> Any:
    """Return tqdm's bar for where this runs: a terminal or a notebook."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError(
            "progress=True needs tqdm, which is not installed: pip install "
            "'ndx[progress]'"
        ) from error
    return tqdm


def length_of(source: Any) -> int | None:
    """Return the number of items of a source; None if that is not known."""
    try:
        return len(source)
    except TypeError:
        return None
