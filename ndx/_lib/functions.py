"""Functions of users: what can be called in a scope, and calls that run in one."""

import functools
import inspect

__all__ = ["check_function", "decorated"]


def check_function(function, what):
    """Raise TypeError unless a function has computed its result when it returns.

    Parameters
    ----------
    function : callable
        What is checked.
    what : str
        Its name, for errors.

    Raises
    ------
    TypeError
        If it can't be called, or is a coroutine function or a generator function.
    """
    if not callable(function):
        msg = f"{what} must be callable, not {type(function).__name__}"
        raise TypeError(msg)
    if inspect.iscoroutinefunction(function):
        kind = "coroutine"
    elif _generates(function):
        kind = "generator"
    else:
        return
    msg = (
        f"{what} is the {kind} function {function!r}: it would run after its scope has "
        "ended. Give a function that runs to its end and returns the result"
    )
    raise TypeError(msg)


def _generates(function):
    """Whether it is a generator function, asynchronous or not."""
    is_generator = inspect.isgeneratorfunction(function)
    return is_generator or inspect.isasyncgenfunction(function)


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
    if _generates(function):
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
