"""NumPy's `numpy.linalg` with arrays of ndx."""

import numpy as _numpy

from ndx._numpy import namespace as _namespace

__all__ = _namespace.fill(globals(), _numpy.linalg, __name__)


def __dir__():
    return __all__


def __getattr__(name):
    return _namespace.missing(__name__, _numpy.linalg, name)
