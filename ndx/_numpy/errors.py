"""Floating-point errors, reported as NumPy does: `ndx.numpy.errstate`, `seterr`."""

import contextlib
import contextvars
from typing import Any

import numpy as np

from ndx._lib.numpy_private import begin_reports, end_reports

__all__ = ["errstate", "seterr"]

# The errstates that this thread or task is in, innermost last: which object, NumPy's
# own, and a token.
_entered = contextvars.ContextVar("ndx_errstates", default=())


class errstate(contextlib.ContextDecorator):
    """`numpy.errstate`: within it, floating-point errors are reported.

    Elsewhere in ndx they are not. Computations in passes over files stay silent, too.

    Parameters
    ----------
    all, divide, over, under, invalid : str, optional
        ``"ignore"``, ``"warn"``, ``"raise"``, ``"call"``, ``"print"`` or ``"log"``.
    call : callable, optional
        For ``"call"`` and ``"log"``.

    Examples
    --------
    >>> import ndx.numpy as np
    >>> with np.errstate(divide="raise"):
    ...     np.ones(1) / np.zeros(1)
    Traceback (most recent call last):
        ...
    FloatingPointError: divide by zero encountered in divide
    """

    def __init__(self, **kwargs):
        self._kwargs = kwargs
        np.errstate(**kwargs)

    def __enter__(self):
        state = np.errstate(**self._kwargs)
        state.__enter__()
        _entered.set((*_entered.get(), (self, state, begin_reports())))
        return self

    def __exit__(self, *exception):
        entries = _entered.get()
        mine = [i for i, entry in enumerate(entries) if entry[0] is self]
        if not mine:
            raise RuntimeError(
                "an errstate was left that this thread or task has not entered"
            )
        _, state, token = entries[mine[-1]]
        _entered.set(entries[: mine[-1]] + entries[mine[-1] + 1 :])
        end_reports(token)
        state.__exit__(*exception)

    def _recreate_cm(self):
        return type(self)(**self._kwargs)


def seterr(
    all: str | None = None,
    divide: str | None = None,
    over: str | None = None,
    under: str | None = None,
    invalid: str | None = None,
) -> dict[str, Any]:
    """Set how floating-point errors are handled; see `numpy.seterr`.

    From the first call on they are reported, also by ndx, in this thread or task.

    Parameters
    ----------
    all, divide, over, under, invalid : str, optional
        As for `errstate`.

    Returns
    -------
    dict
        The former settings.

    Examples
    --------
    >>> import ndx.numpy as np
    >>> old = np.seterr(all="ignore")
    >>> np.seterr(**old)["over"]
    'ignore'
    """
    old = np.seterr(all, divide, over, under, invalid)
    begin_reports()
    return dict(old)
