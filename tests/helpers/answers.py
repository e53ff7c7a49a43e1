"""What a library answers to an expression, in a form in which two can be compared."""

import dataclasses
import sys
import warnings

import numpy as np

import ndx


class Refused(Exception):
    """The error that an expression raised, as a value to compare."""

    @property
    def name(self):
        """The class of the error."""
        return str(self).partition(":")[0]


def answer(expression, names):
    """Return what an expression gives, after the statements before it, or its error.

    The name `read` may be a function that returns what is to be compared.
    """
    names = dict(names, np=np)
    *statements, last = expression.split("; ")
    try:
        for statement in statements:
            exec(statement, names)
        found = eval(last, names)
        return names.get("read", normal)(found)
    except Exception as error:
        return Refused(f"{type(error).__name__}: {error}")


def normal(value):
    """Return the types, dtypes, labels and elements of a result, to compare them."""
    kind = type(value)
    if isinstance(value, np.ndarray | np.generic | ndx.NDArray):
        array = np.asarray(value)
        said = array.dtype.str, array.shape, str(array.tolist())
        if isinstance(value, np.ma.MaskedArray):
            return "masked", *said, normal(value.mask)
        if type(value) is np.ndarray or not isinstance(value, np.ndarray):
            return "array", *said
        return kind.__name__, *said, str(getattr(value, "unit", ""))
    if isinstance(value, dict):
        return {str(key): normal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [normal(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return kind.__name__, normal(vars(value))
    parts = PARTS.get(kind.__module__.partition(".")[0])
    if parts is not None and (found := parts(value)) is not None:
        return kind.__name__, found
    return kind.__name__, str(value)


def parts_of_pandas(value):
    pandas = sys.modules["pandas"]
    if isinstance(value, pandas.DataFrame):
        columns = [value.iloc[:, k] for k in range(value.shape[1])]
        return normal(value.columns), [normal(each) for each in columns]
    if isinstance(value, pandas.Series):
        held = type(value.array).__name__
        return held, str(value.dtype), cells(value), normal(value.index)
    if isinstance(value, pandas.Index | pandas.api.extensions.ExtensionArray):
        return str(value.dtype), cells(value)
    return None


def parts_of_arrow(value):
    if hasattr(value, "schema"):
        return str(value.schema), str(value.to_pydict())
    if hasattr(value, "type") and hasattr(value, "to_pylist"):
        return str(value.type), str(value.to_pylist())
    return value.to_pybytes() if hasattr(value, "to_pybytes") else None


def parts_of_polars(value):
    if hasattr(value, "schema"):
        return str(value.schema), str(value.rows())
    return (str(value.dtype), str(value.to_list())) if hasattr(value, "name") else None


def parts_of_xarray(value):
    if hasattr(value, "data_vars"):
        return [(name, normal(value[name])) for name in value.variables]
    coordinates = getattr(value, "coords", {})
    names = [(name, normal(coordinates[name].values)) for name in coordinates]
    return value.dims, normal(value.data), names


def of_sparse(value):
    dense = hasattr(value, "toarray")
    return (str(value.dtype), normal(value.toarray())) if dense else None


def of_quantity(value):
    known = hasattr(value, "magnitude")
    return (str(value.units), normal(value.magnitude)) if known else None


def of_tensor(value):
    known = hasattr(value, "detach")
    return (str(value.dtype), str(value.detach().tolist())) if known else None


# By library: what there is to compare of its objects; None for their text.
PARTS = {
    "PIL": lambda image: (image.mode, image.size, image.tobytes()),
    "dask": lambda value: normal(value.compute()),
    "duckdb": lambda found: (str(found.types), str(found.fetchall())),
    "jaxlib": lambda array: normal(np.asarray(array)),
    "pandas": parts_of_pandas,
    "pint": of_quantity,
    "polars": parts_of_polars,
    "pyarrow": parts_of_arrow,
    "scipy": of_sparse,
    "torch": of_tensor,
    "xarray": parts_of_xarray,
}


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
