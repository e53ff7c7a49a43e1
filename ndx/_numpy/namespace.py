"""The namespaces of `ndx.numpy`: NumPy's names, made from NumPy's own modules."""

import types

import numpy as np

from ndx._api import creation
from ndx._numpy.wrappers import NumPyFunction, NumPyIndexer, NumPyUfunc

__all__ = ["fill", "missing", "wrapped"]

# Functions that ndx has with the same first parameter and `dtype`.
_CREATE = ("empty", "ones", "zeros")
_INDEXERS = ("c_", "index_exp", "mgrid", "ogrid", "r_", "s_")


def fill(namespace, source, module):
    """Fill a namespace with the names of a module of NumPy.

    Parameters
    ----------
    namespace : dict
        The ``globals()`` of a module of ours. Names that it has stay as they are.
    source : module
        NumPy's.
    module : str
        The name of our module.

    Returns
    -------
    list of str
        The public names.
    """
    names = [name for name in source.__all__ if not name.startswith("__")]
    for name in names:
        # Modules that NumPy loads on first use are not loaded here either.
        if name not in namespace and name in vars(source):
            namespace[name] = wrapped(vars(source)[name], name, module)
    return sorted(name for name in names if name in namespace)


def wrapped(value, name, module):
    """Return an object of NumPy as one that computes on NDArrays; others unchanged."""
    if isinstance(value, np.ufunc):
        return NumPyUfunc(value, name, module)
    if name in _INDEXERS:
        return NumPyIndexer(value)
    if callable(value) and not isinstance(value, type) and name != "test":
        create = getattr(creation, name) if name in _CREATE else None
        return NumPyFunction(value, name, module, create)
    return value


def missing(module, source, name):
    """Return a module that NumPy loads on first use; raise for any other name.

    Parameters
    ----------
    module : str
        The name of our module.
    source : module
        NumPy's.
    name : str
        The name that was asked for.
    """
    if not name.startswith("_"):
        value = getattr(source, name, None)
        if isinstance(value, types.ModuleType):
            return value
    msg = f"module {module!r} has no attribute {name!r}"
    raise AttributeError(msg)
