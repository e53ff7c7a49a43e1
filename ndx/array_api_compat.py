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
    """Return the functions of a module that ask a class, with what arrays are to them.

    For each, whether the answer is for a class of arrays, and the answer. The class is
    neither that of another library, nor a scalar's; that of numbers is not writeable.
    """
    kinds = getattr(module, "_ArrayClsInfo", None)
    return {
        "_cls_to_namespace": (_is_ours, (None, None)),
        "_is_writeable_cls": (_is_of_numbers, False),
        "_validate_array_cls": (_is_ours, getattr(kinds, "unknown", None)),
    }


def _is_ours(cls):
    return issubclass(cls, NDArray)


def _is_of_numbers(cls):
    return cls is not NDArray and issubclass(cls, NDArray)


def _ours_first(function, applies, answer):
    """Return a function of classes that has an answer for some of NDArray's."""

    @functools.wraps(function)
    def of_class(cls, *args, **kwargs):
        return answer if applies(cls) else function(cls, *args, **kwargs)

    of_class.knows_ours = True
    return of_class


def register():
    """Let the loaded modules of `MODULES` know numbers for arrays."""
    for module in filter(None, map(sys.modules.get, MODULES)):
        for name, (applies, answer) in _answers(module).items():
            function = getattr(module, name, None)
            if function is not None and not hasattr(function, "knows_ours"):
                setattr(module, name, _ours_first(function, applies, answer))
