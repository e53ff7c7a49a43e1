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

# The modules that tell the namespace, or the kind, by the class of an object.
MODULES = (
    "array_api_compat.common._helpers",
    "scipy._external.array_api_compat.common._helpers",
    "scipy._lib._array_api_override",
    "scipy._lib.array_api_compat.common._helpers",
    "sklearn.externals.array_api_compat.common._helpers",
)


def _answers(module):
    """Return the functions of a module that ask a class, and what arrays are to them.

    A class is then neither that of another library, nor a scalar's.
    """
    kinds = getattr(module, "_ArrayClsInfo", None)
    return {
        "_cls_to_namespace": (None, None),
        "_validate_array_cls": getattr(kinds, "unknown", None),
    }


def _arrays_first(function, answer):
    """Return a function of classes that has an answer for an NDArray's class."""

    @functools.wraps(function)
    def of_class(cls, *args, **kwargs):
        return answer if issubclass(cls, NDArray) else function(cls, *args, **kwargs)

    of_class.asks_arrays = True
    return of_class


def register():
    """Let the loaded modules of `MODULES` find the namespace of numbers."""
    for module in filter(None, map(sys.modules.get, MODULES)):
        for name, answer in _answers(module).items():
            function = getattr(module, name, None)
            if function is not None and not hasattr(function, "asks_arrays"):
                setattr(module, name, _arrays_first(function, answer))
