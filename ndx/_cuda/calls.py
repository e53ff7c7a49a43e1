"""CuPy's functions, by the names of the standard.

The functions are those of ``array_api_compat.cupy``. The modules `overrides_*` replace
the ones that differ from the standard and the CPU.
"""

from operator import attrgetter

import numpy as np

from ndx._cuda import capture_functions
from ndx._cuda.capture_state import here, is_capturing
from ndx.backends import _cupy

__all__ = ["factored", "function_of", "standard"]

_found = {}


def function_of(name):
    """Return the function of a name in CuPy's namespace of the standard."""
    if here.notes is not None and name in capture_functions.FUNCTIONS:
        return capture_functions.FUNCTIONS[name]
    library = _cupy.namespace()
    key = name, id(library)
    if key not in _found:
        _found[key] = attrgetter(name)(library)
    return _found[key]


def standard(session, name, /, *args, **kwargs):
    """Compute a function as ``array_api_compat.cupy`` does."""
    return session.compute(function_of(name), args, kwargs)


def factored(name, reason, *, square=True):
    """Return a function that factorises matrices, and raises LinAlgError on failure.

    CuPy would return partial results. To detect them, the CPU waits for the GPU.

    Parameters
    ----------
    name : str
        As for `standard`.
    reason : str
        The error message for a matrix without such factors.
    square : bool
        Whether matrices must be square: for others CuPy's error is the right one.
    """

    def function(session, x, *args, **kwargs):
        if is_capturing():
            return standard(session, name, x, *args, **kwargs)
        try:
            with _cupy.errstate(linalg="raise"):
                return standard(session, name, x, *args, **kwargs)
        except np.linalg.LinAlgError as error:
            if square and (x.ndim < 2 or x.shape[-1] != x.shape[-2]):
                raise
            msg = f"{name}: {reason}"
            raise np.linalg.LinAlgError(msg) from error

    return function
