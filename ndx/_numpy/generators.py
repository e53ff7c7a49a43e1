"""NumPy's random generators, whose methods fill memory of ndx."""

import functools
from typing import Any

import numpy as np

from ndx._lib.bit_generators import numpy_generator
from ndx._numpy.calls import call_function

__all__ = ["Generator", "RandomState", "default_rng"]


def _method(name, source):
    """Return a method that calls NumPy's generator's."""

    def method(self, *args, **kwargs):
        return call_function(getattr(self._generator, name), *args, **kwargs)

    functools.update_wrapper(method, getattr(source, name))
    return method


def _with_methods(source):
    """Return a decorator that gives a class the methods of one of NumPy's."""

    def decorate(cls):
        for name in dir(source):
            known = name in vars(cls) or name.startswith("_")
            if not known and callable(getattr(source, name)):
                setattr(cls, name, _method(name, source))
        return cls

    return decorate


class _Numbers:
    """What both kinds of generator share: the object of NumPy's, copies, comparison."""

    __slots__ = ("_generator",)

    def __reduce__(self):
        return _restored, (type(self), self._generator)

    def __repr__(self):
        return f"{type(self).__name__}({self._generator})"


def _restored(cls, generator):
    result = cls.__new__(cls)
    result._generator = generator
    return result


@_with_methods(np.random.Generator)
class Generator(_Numbers):
    """`numpy.random.Generator`, whose arrays are NDArrays.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
        The source of the numbers.

    Notes
    -----
    The same seed gives the same numbers as NumPy. Without `size`, methods return
    scalars, as NumPy's do.

    Examples
    --------
    >>> import ndx.numpy as np
    >>> rng = np.random.default_rng(1)
    >>> rng.integers(10, size=3)
    NDArray([4, 5, 7])
    """

    __slots__ = ()

    def __init__(self, bit_generator):
        self._generator = np.random.Generator(bit_generator)

    @property
    def bit_generator(self):
        """The source of the numbers."""
        return self._generator.bit_generator

    def spawn(self, n_children):
        """Return new, independent generators."""
        return [
            _restored(type(self), each) for each in self._generator.spawn(n_children)
        ]


@_with_methods(np.random.RandomState)
class RandomState(_Numbers):
    """`numpy.random.RandomState`, whose arrays are NDArrays.

    Parameters
    ----------
    seed : int, array_like or numpy.random.BitGenerator, optional
        As in NumPy.

    Examples
    --------
    >>> import ndx.numpy as np
    >>> np.random.RandomState(0).randint(5, size=3)
    NDArray([4, 0, 3])
    """

    __slots__ = ()

    def __init__(self, seed=None):
        self._generator = np.random.RandomState(seed)


def default_rng(seed: Any = None) -> Generator:
    """Return a generator; see `numpy.random.default_rng`.

    Parameters
    ----------
    seed : int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        As in NumPy. A generator is returned as it is.

    Returns
    -------
    Generator

    Examples
    --------
    >>> import ndx.numpy as np
    >>> np.random.default_rng(1).integers(10, size=3)
    NDArray([4, 5, 7])
    """
    if isinstance(seed, Generator):
        return seed
    return _restored(Generator, numpy_generator(seed))
