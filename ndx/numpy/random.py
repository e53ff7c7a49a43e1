"""NumPy's `numpy.random` with arrays of ndx; the same seed gives the same numbers."""

import numpy as _numpy

from ndx._lib.bit_generators import SEEDED as _SEEDED
from ndx._numpy import namespace as _namespace
from ndx._numpy.generators import Generator, RandomState, default_rng

globals().update(_SEEDED)
__all__ = _namespace.fill(globals(), _numpy.random, __name__)


def __dir__():
    return __all__


def __getattr__(name):
    return _namespace.missing(__name__, _numpy.random, name)
