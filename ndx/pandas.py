"""NDArrays in pandas.

Nobody has to import this module: ndx does when pandas is imported. Where pandas looks
for the class of NumPy's arrays, it takes NDArrays for lists, and where it looks for
numbers, for objects: a mask would select rows 0 and 1, `isin` find nothing, a column of
results have dtype object. These functions are given NumPy's arrays and scalars instead.

Examples
--------
>>> import ndx, pandas as pd
>>> pd.Series([3, 1, 2]).isin(ndx.asarray([1, 3])).tolist()
[True, True, False]
>>> pd.DataFrame([{"loss": ndx.asarray([1.0, 2.0]).sum()}]).dtypes["loss"]
dtype('float64')
"""

import numpy as np
import pandas as pd

from ndx._api.creation_from_data import asarray
from ndx._borders import CELLS, ITEMS, VALUE, Border, install

__all__ = ["BORDERS", "register"]

_OBJECTS = ("pandas:Series", "pandas:DataFrame", "pandas:Index", "pandas:MultiIndex")
_FRAMES = _OBJECTS[:2]
_INDEXERS = tuple(
    f"pandas.core.indexing:{name}"
    for name in ("_LocationIndexer", "_ScalarAccessIndexer")
)
_INDEXES = tuple(
    f"pandas:{kind}Index"
    for kind in (
        *("", "Categorical", "Datetime", "Interval", "Multi"),
        *("Period", "Range", "Timedelta"),
    )
)
_EXTENSION = "pandas.api.extensions:ExtensionArray"
_MASKED = "pandas.arrays:IntegerArray"
_ARITHMETIC = (
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ "
    "__floordiv__ __rfloordiv__ __mod__ __rmod__ __divmod__ __rdivmod__ "
)
_OPERATORS = _ARITHMETIC + (
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __pow__ __rpow__ "
    "__and__ __rand__ __or__ __ror__ __xor__ __rxor__"
)
_METHODS = (
    "eq ne lt le gt ge add radd sub rsub subtract mul rmul multiply div rdiv divide "
    "truediv rtruediv floordiv rfloordiv mod rmod pow rpow"
)


def _all_of(owners, names, arguments):
    return [Border(owner, names, arguments) for owner in owners]


BORDERS = (
    # pandas copies NumPy's arrays, and would share the memory of others.
    *_all_of(_FRAMES, "__init__", {"data": VALUE}),
    Border("pandas:Index", "__new__", {"data": VALUE}),
    Border("pandas", "array", {"data": ITEMS}),
    Border("pandas", "unique factorize", {"values": VALUE}),
    # A matrix without rows has columns all the same.
    Border("pandas.core.internals.construction", "to_arrays", {"data": VALUE}),
    # Elements of lists, records and results of functions, which are numbers.
    Border("pandas._libs.lib", "maybe_convert_objects", {"objects": CELLS}),
    *_all_of(_INDEXERS, "__getitem__", {"key": ITEMS}),
    *_all_of((*_INDEXERS, *_FRAMES), "__setitem__", {"key": ITEMS, "value": ITEMS}),
    *_all_of((*_FRAMES, "pandas:RangeIndex"), "__getitem__", {"key": ITEMS}),
    Border("pandas.api.indexers", "check_array_indexer", {"indexer": VALUE}),
    Border("pandas:DataFrame", "insert", {"value": ITEMS}),
    *_all_of((*_OBJECTS, _EXTENSION), "isin", {"values": ITEMS}),
    *_all_of((*_INDEXES, _EXTENSION, _MASKED), "delete", {"loc": ITEMS}),
    *_all_of((*_INDEXES, _EXTENSION), "insert", {"loc": VALUE, "item": VALUE}),
    *_all_of((*_FRAMES, "pandas.arrays:SparseArray"), "fillna", {"value": ITEMS}),
    Border("pandas:Index", "where", {"cond": VALUE, "other": VALUE}),
    Border("pandas:Index", "putmask", {"mask": VALUE, "value": VALUE}),
    *_all_of(_FRAMES, "_where", {"cond": VALUE, "other": VALUE}),  # `where`, `mask`
    *_all_of(_FRAMES, "clip", {"lower": VALUE, "upper": VALUE}),
    *_all_of(_FRAMES, "replace", {"to_replace": ITEMS, "value": ITEMS}),
    *_all_of(_FRAMES, "reindex", {"fill_value": VALUE}),
    Border("pandas.core.arraylike:OpsMixin", _OPERATORS, {"other": VALUE}),
    Border("pandas:Timedelta", _ARITHMETIC, {"other": VALUE}),
    *_all_of(_FRAMES, _METHODS, {"other": VALUE}),
)


def _answers():
    """Whether pandas does with NDArrays what it does with NumPy's arrays."""
    # Over NumPy's memory: an import takes none of a backend or workspace.
    mask, number = asarray(np.array([False, True])), asarray(np.array(3.0))
    series = pd.Series([3, 1])
    return (
        series.iloc[mask].tolist() == [1]
        and series.isin(asarray(np.array([1]))).tolist() == [False, True]
        and pd.Series([number]).dtype == float
    )


def register():
    """Replace functions of pandas by ones that convert NDArrays to NumPy's arrays."""
    install("pandas", BORDERS, _answers)
