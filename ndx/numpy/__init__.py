"""NumPy's namespace with arrays of ndx: ``import ndx.numpy as np``.

The names, signatures, promotion and documentation are NumPy's. Arrays are
`ndx.NDArray`, in the current workspace or backend. Scalars, dtypes and errors are
NumPy's own. Arrays of dtypes that no NDArray has (strings, dates, objects,
structured ones) stay NumPy's.

Floating-point warnings are off, as in all of ndx, but within `errstate` and after
`seterr`.

Examples
--------
>>> import ndx.numpy as np
>>> x = np.linspace(0, 1, 5).reshape(-1, 1)
>>> np.hstack([x, x**2]).sum(axis=0)
NDArray([2.5  , 1.875])
"""

import numpy as _numpy

from ndx._api.inspection import __array_namespace_info__
from ndx._numpy import namespace as _namespace
from ndx._numpy.array_class import ndarray, timedelta64, ufunc, void
from ndx._numpy.errors import errstate, seterr
from ndx._numpy.files import load
from ndx._numpy.vectorized import vectorize
from ndx.numpy import fft, lib, linalg, random, testing

_namespace.register_modules()
__array_api_version__ = _numpy.__array_api_version__
__version__ = _numpy.__version__
__all__ = _namespace.fill(globals(), _numpy, __name__)


def __dir__():
    return sorted(set(__all__) | {"__version__"})


def __getattr__(name):
    return _namespace.missing(__name__, _numpy, name)
