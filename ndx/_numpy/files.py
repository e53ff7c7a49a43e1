"""`ndx.numpy.load`: arrays from files, as NDArrays."""

import functools
from typing import Any

import numpy as np

from ndx._numpy.wrappers import call_function

__all__ = ["load"]


class _Archive(np.lib.npyio.NpzFile):
    """The arrays of an ``.npz`` file, read when they are asked for."""

    def __getitem__(self, key):
        return call_function(super().__getitem__, key)


def load(*args: Any, **kwargs: Any) -> Any:
    result = call_function(np.load, *args, **kwargs)
    if isinstance(result, np.lib.npyio.NpzFile):
        # The object has an open file, which it closes at its end: no second object may
        # have it.
        result.__class__ = _Archive
    return result


functools.update_wrapper(load, np.load)
