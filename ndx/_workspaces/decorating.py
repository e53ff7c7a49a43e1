"""Functions whose calls run in a scope of a workspace."""

import functools
import inspect

__all__ = ["decorated"]


def decorated(function, enter, rescued):
    """Return a function that calls another one in a scope.

    Parameters
    ----------
    function : callable
        A function or coroutine function.
    enter : callable
        Returns what is entered.
    rescued : callable
        Called as ``rescued(scope, result)``, in the scope; returns the result.

    Raises
    ------
    TypeError
        If it is no such function.
    """
    if not callable(function) or isinstance(function, type):
        # The wrapper of a class would be a function.
        kind = "classes" if callable(function) else type(function).__name__
        msg = f"a workspace decorates functions, not {kind}"
        raise TypeError(msg)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        msg = (
            f"{function!r} is a generator function: its scope would end before it "
            "runs. Put `with ndx.workspace(...):` inside of it."
        )
        raise TypeError(msg)
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
