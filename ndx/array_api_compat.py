"""Numbers in array-api-compat, and in the copies of it in SciPy and scikit-learn.

Nobody has to import this module: ndx does when one of these libraries is imported.
`array_api_compat.array_namespace` takes an instance of float or complex for a Python
scalar, which has no namespace. Elements of dtype float64 and complex128 are instances
of these, and arrays, whose namespace is `ndx`.

Examples
--------
>>> import array_api_compat, ndx
>>> array_api_compat.array_namespace(ndx.ones(3)[0]).__name__
'ndx'
"""

import functools
import sys

from ndx._core import NDArray

__all__ = ["MODULES", "register"]

# The modules that tell the namespace by the class of an object.
MODULES = (
    "array_api_compat.common._helpers",
    "scipy._external.array_api_compat.common._helpers",
    "scipy._lib.array_api_compat.common._helpers",
    "sklearn.externals.array_api_compat.common._helpers",
)


def _arrays_first(function):
    """Return a function of classes that asks an NDArray's class for its namespace."""

    @functools.wraps(function)
    def namespace_of_class(cls, *args, **kwargs):
        if issubclass(cls, NDArray):
            return None, None  # neither a library's class, nor a scalar
        return function(cls, *args, **kwargs)

    namespace_of_class.asks_arrays = True
    return namespace_of_class


def register():
    """Let the loaded modules of `MODULES` find the namespace of numbers."""
    for name in MODULES:
        module = sys.modules.get(name)
        function = getattr(module, "_cls_to_namespace", None)
        if function is not None and not hasattr(function, "asks_arrays"):
            module._cls_to_namespace = _arrays_first(function)
