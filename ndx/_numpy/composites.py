"""NumPy's functions of several steps, with ndx's functions as their steps.

NumPy writes these functions in Python, over others of its own. Here the same code runs
with `ndx.numpy`'s functions under the names of NumPy's, so that nothing is converted
between the steps. What it can't compute raises an error; NumPy's own function then
computes, or raises its error.
"""

import sys
import types

import numpy as np

from ndx._lib.locks import module_lock
from ndx._lib.numpy_private import part

__all__ = ["composite", "is_of_steps"]

# Modules whose functions know more than arrays, or keep state.
_FOREIGN = ("numpy.ma", "numpy.random", "numpy.testing", "numpy.polynomial")
_DISPATCHER = part("dispatcher")
_CAN_REBIND = part("code") is not None
# The name of a module of NumPy -> its globals with ndx's functions. An id of one of
# NumPy's objects -> what stands for it; the objects live as long as NumPy.
_globals = {}
_ours = {}
# Held while they are filled: nobody else may see a part of them.
_lock = module_lock()


def composite(function):
    """Return a function of NumPy's, in Python, that calls those of `ndx.numpy`.

    Parameters
    ----------
    function : callable
        One of NumPy's.

    Returns
    -------
    function
        None if `ndx.numpy` is not imported, or NumPy does not write it in Python, or
        so that it can run over other functions (`_lib.numpy_private`).
    """
    face = sys.modules.get("ndx.numpy")
    if face is None or not _CAN_REBIND:
        return None
    code = function.__wrapped__ if type(function) is _DISPATCHER else function
    if not isinstance(code, types.FunctionType):
        return None
    with _lock:
        if not _ours:
            _find_ours(face)
        return _rebound(code)


def _find_ours(face):
    """Find what of `ndx.numpy` stands for NumPy's functions."""
    for module, names in (np.linalg, face.linalg), (np.fft, face.fft), (np, face):
        for name in dir(module):
            found = getattr(names, name, None)
            if found is not None and not isinstance(found, types.ModuleType):
                _ours[id(getattr(module, name))] = found


def is_of_steps(error):
    """Return whether code of NumPy or ndx has raised an error, and none of a user's.

    Composites call no function of a user's. Handlers of signals and finalizers run in
    between.
    """
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None:
        return True
    module = at.tb_frame.f_globals.get("__name__", "")
    return module.partition(".")[0] in ("ndx", "numpy")


def _is_numpys(name):
    return name.partition(".")[0] == "numpy" and not name.startswith(_FOREIGN)


class _Names:
    """The names of a module of NumPy, with ndx's functions for NumPy's."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        with _lock:
            found = _translated(getattr(self._module, name))
        setattr(self, name, found)
        return found


def _translated(value):
    """Return what stands for a value in the globals of a module of NumPy."""
    if id(value) in _ours:
        return _ours[id(value)]
    if isinstance(value, types.ModuleType):
        return _Names(value) if _is_numpys(value.__name__) else value
    if type(value) is _DISPATCHER:
        value = value.__wrapped__
    if isinstance(value, types.FunctionType) and _is_numpys(value.__module__ or ""):
        return _ours.get(id(value)) or _rebound(value)
    return value


def _rebound(function):
    """Return a function of NumPy over other globals."""
    theirs = function.__globals__
    name = theirs.get("__name__", "")
    known = name in _globals
    ours = _globals.setdefault(name, dict(theirs))
    found = types.FunctionType(
        function.__code__,
        ours,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    found.__kwdefaults__ = function.__kwdefaults__
    # Known before its module is translated: its functions call each other.
    _ours.setdefault(id(function), found)
    if not known:
        for key, value in theirs.items():
            if not key.startswith("__"):
                ours[key] = _translated(value)
    return found
