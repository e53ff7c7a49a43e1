"""Borders of libraries for which ndx does nothing else, as data.

Each would take an array without dimensions, or an NDArray, for something else, without
an error: a number that is no node of a graph, a factor of an expression, a sequence of
candidates. What `ndx._borders` says of `Border` holds for all of them.
"""

from ndx._borders import ITEMS, RESULTS, VALUE, VIEW, Border, install

__all__ = ["BORDERS", "register"]

_DUCKDB = "duckdb:DuckDBPyConnection"
_QUERIES = "execute executemany from_query query register sql values"
_ITEM = "__getitem__ __setitem__"
_NETWORKX = "networkx:Graph"
_VIEWS = "networkx.classes.reportviews"
_PATSY = "patsy.categorical"
_SEARCH = "sklearn.model_selection._search"
_SELECTIONS = " ".join(
    f"{verb}_{kind}_selection"
    for verb in ("get", "set")
    for kind in ("basic", "coordinate", "orthogonal")
)

# The module of a library after whose import they are installed -> borders.
BORDERS = {
    "astropy.table": (
        Border("astropy.table:Table", "__init__", {"data": VALUE}),
        Border("astropy.table:Table", "__getitem__", {"item": ITEMS}),
    ),
    "bokeh.models.sources": (
        Border("bokeh.models.sources:ColumnDataSource", "stream", {"new_data": VALUE}),
    ),
    "cv2": (Border("cv2", "*", {"*": ITEMS}),),
    "dask.array": (
        Border("dask.array:Array", "__getitem__", {"index": ITEMS}),
        Border("dask.array:Array", "__setitem__", {"key": ITEMS}),
        Border("dask.array:Array", "rechunk", {"chunks": ITEMS}),
        Border("dask.array.core", "normalize_chunks", {"chunks": ITEMS}),
        Border("dask.array", "tile", {"reps": ITEMS}),
        Border("dask.array", "roll", {"shift": ITEMS}),
        Border("dask.array", "repeat", {"repeats": VALUE}),
        Border("dask.array", "pad", {"pad_width": ITEMS}),
    ),
    "duckdb": (
        Border(_DUCKDB, _QUERIES, {"*": ITEMS}),
        Border(_DUCKDB, "create_function", {"*": RESULTS}),
        Border("duckdb", f"{_QUERIES} ConstantExpression", {"*": ITEMS}),
    ),
    "lightgbm": (
        Border(
            "lightgbm:Dataset",
            "__init__",
            {"data": VALUE, "label": VALUE, "weight": VALUE, "init_score": VALUE},
        ),
        Border("lightgbm.basic", "_list_to_1d_numpy", {"data": VALUE}),
        Border("lightgbm:Booster", "predict", {"data": VALUE}),
    ),
    "networkx": (
        Border(_NETWORKX, "__contains__ has_node", {"n": VALUE}),
        Border(_NETWORKX, "nbunch_iter", {"nbunch": ITEMS}),
        Border(f"{_VIEWS}:DiDegreeView", "__call__", {"nbunch": ITEMS}),
        Border("networkx.convert", "to_networkx_graph", {"data": VIEW}),
    ),
    "patsy": (
        Border(f"{_PATSY}:_CategoricalBox", "__init__", {"data": VALUE}),
        Border(f"{_PATSY}:CategoricalSniffer", "sniff", {"data": VALUE}),
        Border(_PATSY, "categorical_to_int", {"data": VALUE}),
    ),
    "sklearn.model_selection": (
        Border(f"{_SEARCH}:ParameterGrid", "__init__", {"param_grid": ITEMS}),
        Border(
            f"{_SEARCH}:ParameterSampler", "__init__", {"param_distributions": ITEMS}
        ),
    ),
    "sparse": (
        Border("sparse", "where", {"condition": VALUE, "x": VALUE, "y": VALUE}),
        Border("sparse", "dot matmul tensordot kron", {"a": VALUE, "b": VALUE}),
        Border("sparse:COO", "__init__", {"coords": VALUE, "data": VALUE}),
    ),
    "sympy": (
        Border("sympy.core.sympify", "sympify", {"a": VALUE}),
        Border("sympy.matrices.matrixbase:MatrixBase", "__mul__", {"other": VALUE}),
    ),
    "uncertainties": (Border("uncertainties.core", "wrap", {"f": RESULTS}),),
    "unyt": (
        Border("unyt:unyt_array", "__new__", {"input_array": VALUE}),
        Border("unyt:unyt_quantity", "__new__", {"input_scalar": VALUE}),
    ),
    "xarray": (Border("xarray:Variable", "_broadcast_indexes", {"key": ITEMS}),),
    "zarr": (
        Border("zarr:Array", f"{_ITEM} {_SELECTIONS}", {"selection": ITEMS}),
        Border("zarr.core.indexing:OIndex", _ITEM, {"selection": ITEMS}),
        Border("zarr.core.indexing:VIndex", _ITEM, {"selection": ITEMS}),
        Border("zarr.core.common", "parse_shapelike", {"data": ITEMS}),
    ),
}


def register(module):
    """Replace the functions of the library that has a module."""
    install(module.partition(".")[0], BORDERS[module])
