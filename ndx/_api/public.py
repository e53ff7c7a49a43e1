"""The public names of the namespace, and the wrapping of its functions."""

import builtins
from types import FunctionType

from ndx._api.public_function import Function
from ndx._array.dispatch import synchronize

__all__ = ["name_functions", "named", "public_names", "star_names"]

_FUNCTIONS = (FunctionType, type(synchronize))  # plain and compiled functions
# Function -> what stands for it in all modules that have it.
_NAMED = {}
_DUNDERS = (
    "__all__",
    "__array_api_version__",
    "__array_namespace_info__",
    "__doc__",
    "__file__",
    "__name__",
    "__path__",
    "__version__",
)


def public_names(namespace):
    """Return the public names of a namespace (a dict), sorted."""
    names = [name for name in namespace if not name.startswith("_")]
    return sorted([*names, *(name for name in _DUNDERS if name in namespace)])


def star_names(namespace):
    """Return the names for ``from ndx import *``, which hide no builtin."""
    return [
        name
        for name in public_names(namespace)
        if not name.startswith("__") and not hasattr(builtins, name)
    ]


def name_functions(*namespaces):
    """Replace functions by `Function` objects, one for each function.

    Parameters
    ----------
    *namespaces : dict
        The ``globals()`` of public modules.
    """
    for namespace in namespaces:
        for name, value in list(namespace.items()):
            if type(value) in _FUNCTIONS:
                namespace[name] = named(value, name, namespace["__name__"])


def named(value, name, module):
    """Return the `Function` object of a public function; any other value as it is."""
    if name.startswith("_") or type(value) not in _FUNCTIONS:
        return value
    if value not in _NAMED:
        _NAMED[value] = Function(value, name, module)
    return _NAMED[value]
