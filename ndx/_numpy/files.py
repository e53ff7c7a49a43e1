"""`ndx.numpy.load`: arrays from files, as NDArrays."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ndx._numpy.calls import call_function

__all__ = ["load"]


class _Attributes:
    """The items of a mapping as attributes."""

    def __init__(self, mapping):
        self._mapping = mapping

    def __getattr__(self, name):
        try:
            return self._mapping[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self):
        return list(self._mapping)


class _Archive(Mapping):
    """The arrays of an ``.npz`` file, read when they are asked for."""

    def __init__(self, source):
        self._source = source

    def __getitem__(self, key):
        return call_function(self._source.__getitem__, key)

    def __iter__(self):
        return iter(self._source)

    def __len__(self):
        return len(self._source)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return repr(self._source)

    @property
    def files(self):
        """The names of the arrays."""
        return self._source.files

    @property
    def zip(self):
        """The open archive: a `zipfile.ZipFile`."""
        return self._source.zip

    @property
    def f(self):
        """An object whose attributes are the arrays."""
        return _Attributes(self)

    def close(self):
        """Close the file."""
        self._source.close()


def load(*args: Any, **kwargs: Any) -> Any:
    result = call_function(np.load, *args, **kwargs)
    return _Archive(result) if isinstance(result, np.lib.npyio.NpzFile) else result


functools.update_wrapper(load, np.load)
