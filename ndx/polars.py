"""NDArrays in polars.

Nobody has to import this module: ndx does when polars is imported. polars looks for the
class of NumPy's arrays and numbers, and takes all else that is a number for a float: an
array of integers without dimensions would make a column of floats, and a series of
integers be multiplied by an integer. These functions are given NumPy's arrays and
scalars instead.

Examples
--------
>>> import ndx, polars as pl
>>> pl.Series(ndx.asarray([1, 2])).to_list()
[1, 2]
>>> (pl.Series([1, 2]) * ndx.asarray(1.5)).to_list()
[1.5, 3.0]
"""

import numpy as np
import polars as pl

from ndx._api.creation_from_data import asarray
from ndx._borders import ITEMS, RESULTS, VALUE, Border, install

__all__ = ["BORDERS", "register"]

_GETITEM = "polars._utils.getitem"

BORDERS = (
    Border("polars:Series", "__init__", {"name": ITEMS, "values": ITEMS}),
    Border("polars:DataFrame", "__init__", {"data": ITEMS}),
    Border("polars", "from_numpy from_records from_dicts from_dict", {"data": ITEMS}),
    # What is not an expression becomes one by this function.
    Border("polars.functions.lit", "lit", {"value": ITEMS}),
    Border("polars:Series", "_arithmetic _comp", {"other": VALUE}),
    Border("polars:Series", "__pow__ pow", {"exponent": VALUE}),
    Border("polars:Series", "__setitem__", {"key": ITEMS, "value": ITEMS}),
    Border("polars:Series", "scatter", {"indices": VALUE, "values": VALUE}),
    Border("polars:Series", "search_sorted", {"element": VALUE}),
    Border("polars:Series", "filter", {"predicate": VALUE}),
    Border("polars:DataFrame", "__setitem__", {"key": ITEMS, "value": ITEMS}),
    Border(_GETITEM, "get_series_item_by_key get_df_item_by_key", {"key": ITEMS}),
    Border("polars:Expr", "gather", {"indices": VALUE}),
    Border("polars:Series", "map_elements", {"function": RESULTS}),
    Border("polars:Expr", "map_elements map_batches", {"function": RESULTS}),
)


def _answers():
    """Whether polars does with NDArrays what it does with NumPy's arrays."""
    # Over NumPy's memory: an import takes none of a backend or workspace.
    number, floats = asarray(np.array(2)), asarray(np.array(1.5))
    series = pl.Series([3, 1])
    return (
        pl.Series([number, None]).dtype == pl.Int64
        and (series * floats).to_list() == [4.5, 1.5]
        and pl.select(pl.lit(number)).dtypes == [pl.Int64]
    )


def register():
    """Replace functions of polars by ones that convert NDArrays to NumPy's arrays."""
    install("polars", BORDERS, _answers)
