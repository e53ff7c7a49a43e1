"""What a library answers to an expression, in a form in which two can be compared."""

import sys
import warnings

import numpy as np

import ndx


class Refused(Exception):
    """The error that an expression raised, as a value to compare."""


def answer(expression, names):
    """Return what an expression gives, after the statements before it, or its error."""
    names = dict(names, np=np)
    *statements, last = expression.split("; ")
    try:
        for statement in statements:
            exec(statement, names)
        return normal(eval(last, names))
    except Exception as error:
        return Refused(f"{type(error).__name__}: {error}")


def normal(value):
    """Return the types, dtypes, labels and elements of a result, to compare them."""
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if isinstance(value, np.ndarray | np.generic | ndx.NDArray):
        array = np.asarray(value)
        what = "matrix" if isinstance(value, np.matrix) else "array"
        return what, str(array.dtype), str(array.tolist())
    if module == "scipy":
        return kind.__name__, str(value.dtype), value.toarray().tolist()
    if module == "pandas":
        pandas = sys.modules["pandas"]
        if isinstance(value, pandas.DataFrame):
            columns = [value.iloc[:, k] for k in range(value.shape[1])]
            return "frame", normal(value.columns), [normal(each) for each in columns]
        if isinstance(value, pandas.Series):
            held = type(value.array).__name__
            return "series", held, str(value.dtype), cells(value), normal(value.index)
        if isinstance(value, pandas.Index | pandas.api.extensions.ExtensionArray):
            return kind.__name__, str(value.dtype), cells(value)
    if isinstance(value, dict):
        return {str(key): normal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [normal(item) for item in value]
    return kind.__name__, str(value)


def cells(values):
    """Return the classes and texts of elements; objects in collections by value."""
    return [
        normal(item) if isinstance(item, list | tuple | dict | np.ndarray | ndx.NDArray)
        else (type(item).__name__, str(item))
        for item in values
    ]  # fmt: skip


def watched(expression, names):
    """Return the answer to an expression, and the warnings that it gave, and where."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = answer(expression, names)
    return found, [(each.category.__name__, each.filename) for each in caught]


def differences(expressions, theirs, ours):
    """Return the expressions that are answered, silently, in another way for us.

    Parameters
    ----------
    expressions : iterable of (str, str)
        Each with what is said of it: "raises ..." if it may be refused for us, "may
        raise" if it may be refused for both.
    theirs, ours : callable
        Make the names in the expressions, anew for each.
    """
    found = []
    for expression, remark in expressions:
        expected, said = watched(expression, theirs())
        if isinstance(expected, Refused):
            assert remark == "may raise", (expression, expected)
            continue
        answered, heard = watched(expression, ours())
        if isinstance(answered, Refused):
            if "raise" not in remark:
                found.append(f"{expression}\n  refused: {answered}")
        elif (answered, heard) != (expected, said):
            found.append(
                f"{expression}\n  ours {answered} {heard}\n  NumPy {expected} {said}"
            )
    return found
