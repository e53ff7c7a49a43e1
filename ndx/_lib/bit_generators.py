"""The source of the bits of ndx's random numbers."""

import numpy as np

__all__ = ["SEEDED", "StandIn", "numpy_generator", "seed_of"]


class StandIn(type):
    """Lets `isinstance` take objects of NumPy's class for those of a subclass of ours.

    Programs ask for our class by NumPy's name, and get generators from elsewhere.
    """

    def __instancecheck__(cls, instance):
        if isinstance(cls.__base__, StandIn):
            return super().__instancecheck__(instance)
        return isinstance(instance, cls.__base__)


def seed_of(seed):
    """Return a seed with Python's numbers and NumPy's arrays in place of NDArrays.

    NumPy checks the class of a seed in compiled code, which knows only NumPy's classes.
    """
    if isinstance(seed, (list, tuple)):
        return [seed_of(item) for item in seed]
    if not hasattr(seed, "__array_namespace__") or isinstance(seed, np.ndarray):
        return seed
    return seed.item() if seed.shape == () else np.asarray(seed)


def _seeded(source):
    """Return a subclass of a class of `numpy.random` that takes our arrays as seeds."""

    def __init__(self, *args, **kwargs):
        named = {name: seed_of(value) for name, value in kwargs.items()}
        source.__init__(self, *map(seed_of, args), **named)

    # dask finds the library of a bit generator by the module of its class.
    return StandIn(
        source.__name__,
        (source,),
        {"__slots__": (), "__init__": __init__, "__doc__": source.__doc__,
         "__module__": __name__},
    )  # fmt: skip


# By name: the bit generators, and the sequence of seeds.
SEEDED = {
    name: _seeded(getattr(np.random, name))
    for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence")
}
globals().update(SEEDED)


def numpy_generator(seed):
    """Return `numpy.random.default_rng(seed)`, over a `PCG64` of ndx if it is new."""
    known = np.random.BitGenerator, np.random.Generator, np.random.RandomState
    if isinstance(seed, known):
        return np.random.default_rng(seed)
    return np.random.Generator(SEEDED["PCG64"](seed))
