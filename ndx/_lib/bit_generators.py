"""The source of the bits of ndx's random numbers."""

import numpy as np

__all__ = ["PCG64", "numpy_generator"]


class PCG64(np.random.PCG64):
    """NumPy's PCG64, with a name by which others know whose arrays it is to fill.

    dask finds the library of a bit generator by the module of its class.
    """


def numpy_generator(seed):
    """Return `numpy.random.default_rng(seed)`, over a `PCG64` of ndx if it is new."""
    known = np.random.BitGenerator, np.random.Generator, np.random.RandomState
    if isinstance(seed, known):
        return np.random.default_rng(seed)
    return np.random.Generator(PCG64(seed))
