"""The namespaces of `ndx.numpy`: NumPy's names, made from NumPy's own modules."""

import functools
import sys
import types
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec

import numpy as np

from ndx._numpy import (  # noqa: F401 - they set rows
    functions,
    indexed_functions,
    linalg_functions,
    order_statistics,
)
from ndx._numpy.wrappers import NumPyFunction, NumPyIndexer, NumPyUfunc

__all__ = ["fill", "missing", "register_modules", "submodule", "wrapped"]

# Modules of ours that are loaded on first use, as NumPy's are.
_LAZY = ("ndx.numpy.polynomial",)
# NumPy's ufunc -> ours; `abs` is `absolute`.
_UFUNCS = {}
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
        if (
            name not in namespace
            and name in vars(source)
            and f"{module}.{name}" not in _LAZY
        ):
            namespace[name] = wrapped(vars(source)[name], name, module)
    return sorted(name for name in names if name in namespace)


def submodule(source, module):
    """Return a module of NumPy's names, and let Python import it.

    Parameters
    ----------
    source : module
        NumPy's.
    module : str
        The name of our module.
    """
    made = types.ModuleType(module, source.__doc__)
    made.__all__ = fill(vars(made), source, module)
    made.__getattr__ = functools.partial(missing, module, source)
    sys.modules[module] = made
    return made


def wrapped(value, name, module):
    """Return an object of NumPy as one that computes on NDArrays; others unchanged."""
    if isinstance(value, np.ufunc):
        if value not in _UFUNCS:
            _UFUNCS[value] = NumPyUfunc(value, value.__name__, module)
        return _UFUNCS[value]
    if name in _INDEXERS:
        return NumPyIndexer(value)
    if callable(value) and not isinstance(value, type) and name != "test":
        return NumPyFunction(value, name, module)
    return value


def missing(module, source, name):
    """Return an attribute of NumPy's module that is no public name; else raise.

    Such are modules, also those which are loaded on first use, private names that
    libraries use, such as `_NoValue`, and deprecated names. The error is NumPy's.

    Parameters
    ----------
    module : str
        The name of our module.
    source : module
        NumPy's.
    name : str
        The name that was asked for.
    """
    if f"{module}.{name}" in _LAZY:
        return import_module(f"{module}.{name}")
    msg = f"module {module!r} has no attribute {name!r}"
    if not name.startswith("__") or name == "__config__":
        try:
            value = getattr(source, name)
        except AttributeError as error:
            # NumPy's error tells what has become of a name that NumPy had.
            msg = str(error).replace(repr(source.__name__), repr(module))
        else:
            return value if name.startswith("_") else wrapped(value, name, module)
    raise AttributeError(msg)


class _Finder:
    """Finds modules of `ndx.numpy` that are not ours: they are NumPy's own.

    It comes before the finder of files, which would load those below a module of
    NumPy's a second time.
    """

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("ndx.numpy."):
            return None
        parent = name.rpartition(".")[0]
        ours = sys.modules[parent].__name__ == parent
        source = name.removeprefix("ndx.")
        if (ours and PathFinder.find_spec(name, path)) or find_spec(source) is None:
            return None
        return ModuleSpec(name, _Finder, is_package=True)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        name = module.__name__
        sys.modules[name] = import_module(name.removeprefix("ndx."))


def register_modules():
    """Let ``import ndx.numpy.ma`` and such find the modules of NumPy."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
