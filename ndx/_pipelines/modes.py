"""The modes of workspaces that tools for training and inference have."""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

__all__ = ["Mode", "check_mode"]

Mode: TypeAlias = Literal["enabled", "none", "single", "separate"]

_MODES = ("enabled", "none", "single", "separate")
_DEPRECATED = {
    "single": "one arena, which holds the sum of all arrays",
    "separate": "an arena for each role, between which results are copied",
}


def check_mode(name: str, mode: object, tool: str) -> None:
    """Raise if an argument is no mode, and warn of one that is deprecated.

    Parameters
    ----------
    name : str
        Of the argument of a public function, which calls this itself: the warning is
        shown where that was called.
    mode : any
        Its value.
    tool : str
        What takes it.

    Raises
    ------
    ValueError
        If there is no such mode; it lists the valid ones.

    Warns
    -----
    DeprecationWarning
        For ``"single"`` and ``"separate"``.
    """
    if mode not in _MODES:
        names = ", ".join(map(repr, _MODES))
        msg = f"{name}={mode!r} is no mode of {tool}; valid are {names}"
        raise ValueError(msg)
    if mode in _DEPRECATED:
        msg = (
            f"{name}={mode!r} is a deprecated mode of ND4J ({_DEPRECATED[mode]}); "
            "give 'enabled', which replaces it, or 'none'"
        )
        warnings.warn(msg, DeprecationWarning, stacklevel=3)
