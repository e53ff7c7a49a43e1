"""NumPy's functions on arrays of a GPU: CuPy's functions of the same names."""

from operator import attrgetter

from ndx._core import NDArray
from ndx._cuda.bridge import check_writeable
from ndx._cuda.session import session_for
from ndx.backends import _cupy

__all__ = ["numpy_function"]


def numpy_function(name, args, kwargs):
    """Compute a function of NumPy by CuPy's of that name.

    Parameters
    ----------
    name : str
        The name after ``numpy.``: ``"nanmean"``, ``"add.reduce"``, ``"ndarray.sum"``.
    args, kwargs : tuple, dict
        The arguments; arrays may lie in tuples and lists.

    Raises
    ------
    TypeError
        If CuPy has no such function, or refuses an argument.
    ValueError
        If the arrays are on different devices, or ``out=`` is read-only.
    """
    session = session_for(args, kwargs)
    out = kwargs.get("out")
    for target in out if isinstance(out, tuple) else (out,):
        if isinstance(target, NDArray):
            check_writeable(target)
    owner, _, method = name.rpartition(".")
    with session.at_work():
        taken, named = session.unwrap([*args]), session.unwrap(kwargs)
        if owner == "ndarray":
            function = getattr(taken.pop(0), method, None)
        else:
            function = find(name)
        if not callable(function):
            msg = (
                f"numpy.{name} is not one of CuPy's functions, so it can't compute on "
                "a GPU; compute on the CPU: x.to_device('cpu')"
            )
            raise TypeError(msg)
        result = function(*taken, **named)
        if out is not None:
            return out[0] if isinstance(out, tuple) and len(out) == 1 else out
        return session.wrap(result)


def find(name):
    """Return CuPy's function of a name; None if it has none."""
    try:
        return attrgetter(name)(_cupy.load())
    except AttributeError:
        return None
