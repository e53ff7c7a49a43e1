"""Functions whose calls run in a scope: a workspace, a backend, a phase."""

import functools
import inspect

__all__ = ["decorated"]


def decorated(function, enter, by, rescued=None):
    """Return a function that calls another one in a scope.

    Parameters
    ----------
    function : callable
        A function or coroutine function.
    enter : callable
        Returns what is entered.
    by : str
        The name of what decorates, for errors.
    rescued : callable, optional
        Called as ``rescued(scope, result)``, in the scope; returns the result.

    Raises
    ------
    TypeError
        If it is no such function.
    """
    if not callable(function) or isinstance(function, type):
        # The wrapper of a class would be a function.
        kind = "classes" if callable(function) else type(function).__name__
        msg = f"{by} decorates functions, not {kind}"
        raise TypeError(msg)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        msg = (
            f"{function!r} is a generator function: its scope would end before it "
            f"runs. Put `with {by}(...):` inside of it."
        )
        raise TypeError(msg)
    if rescued is None:
        rescued = _unchanged
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            with enter() as scope:
                return rescued(scope, await function(*args, **kwargs))
    else:

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with enter() as scope:
                return rescued(scope, function(*args, **kwargs))

    return wrapper


def _unchanged(scope, result):
    return result
