"""NumPy's random generators, whose methods fill memory of ndx."""

import functools
from typing import Any

import numpy as np

from ndx._lib.bit_generators import StandIn, numpy_generator, seed_of
from ndx._numpy.wrappers import NumPyFunction, call_function

__all__ = ["Generator", "RandomState", "default_rng"]


def _with_methods(source):
    """Return a decorator that gives a class the methods of one of NumPy's."""

    def decorate(cls):
        for name in dir(source):
            known = name in vars(cls) or name.startswith("_")
            if not known and callable(getattr(source, name)):
                method = NumPyFunction(getattr(source, name), name, cls.__module__)
                setattr(cls, name, method)
        return cls

    return decorate


@_with_methods(np.random.Generator)
class Generator(np.random.Generator, metaclass=StandIn):
    """`numpy.random.Generator`, whose arrays are NDArrays.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
        The source of the numbers.

    Notes
    -----
    The same seed gives the same numbers as NumPy. Without `size`, methods return
    scalars, as NumPy's do. It is one of NumPy's generators, so that other libraries
    take it.

    Examples
    --------
    >>> import ndx.numpy as np
    >>> rng = np.random.default_rng(1)
    >>> rng.integers(10, size=3)
    NDArray([4, 5, 7])
    """

    __slots__ = ()

    @functools.wraps(np.random.Generator.multivariate_normal)
    def multivariate_normal(self, *args, **kwargs):
        # NumPy's assigns a shape to what another method of the object returns.
        plain = np.random.Generator(self.bit_generator)
        return call_function(plain.multivariate_normal, *args, **kwargs)

    def __reduce__(self):
        return Generator, (self.bit_generator,)


@_with_methods(np.random.RandomState)
class RandomState(np.random.RandomState, metaclass=StandIn):
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
        super().__init__(seed_of(seed))

    @functools.wraps(np.random.RandomState.multivariate_normal)
    def multivariate_normal(self, *args, **kwargs):
        # As in `Generator`; a part of the state is not in the bit generator.
        plain = np.random.RandomState()
        plain.set_state(self.get_state(legacy=False))
        result = call_function(plain.multivariate_normal, *args, **kwargs)
        self.set_state(plain.get_state(legacy=False))
        return result

    def __reduce__(self):
        return _restored, (self.get_state(legacy=False),)


def _restored(state):
    result = RandomState()
    result.set_state(state)
    return result


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
    if issubclass(type(seed), Generator):
        return seed
    return Generator(numpy_generator(seed).bit_generator)
