"""NumPy's `numpy.polynomial`: functions with arrays of ndx, and NumPy's classes.

The functions of NumPy take only its own arrays for arrays of points.
"""

import numpy.polynomial as _numpy

from ndx._numpy import namespace as _namespace

chebyshev, hermite, hermite_e, laguerre, legendre, polynomial = (
    _namespace.submodule(getattr(_numpy, name), f"{__name__}.{name}")
    for name in (
        "chebyshev", "hermite", "hermite_e", "laguerre", "legendre", "polynomial",
    )
)  # fmt: skip

__all__ = _namespace.fill(globals(), _numpy, __name__)


def __dir__():
    return __all__


def __getattr__(name):
    return _namespace.missing(__name__, _numpy, name)
