"""ndx: an array library with control of the memory of every array.

The module is a namespace of the Python Array API standard 2025.12. Its arrays are
`ndx.NDArray`; the context decides where they live.

Where to begin
--------------
ndx.asarray, zeros, arange, ...    make arrays; ndx.exp, sum, matmul, ... compute
ndx.linalg, fft, random            chapters of their own
ndx.use("mmap", limit="200GiB")    a backend for the arrays made in a scope
ndx.workspace("step")              memory that each turn of a loop reuses
ndx.memory.summary()               memory in use; limits, peaks, recordings
ndx.open, save, load               arrays in files
ndx.backends                       kinds of memory, and how to add your own

``help(ndx.sum)`` explains a function, ``dir(ndx)`` lists all names. ``import *`` omits
the names of Python's builtins, such as `abs`, `open` and `sum`.

Examples
--------
>>> import ndx
>>> x = ndx.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> ndx.sum(x, axis=0)
NDArray([4., 6.])
>>> with ndx.workspace("step"):
...     loss = ndx.sum(ndx.exp(x)).detach()
"""

__array_api_version__ = "2025.12"
__version__ = "0.1.0"  # of the distribution, too

import sys as _sys
from importlib import import_module as _import_module
from math import e, inf, nan, pi
from os import environ as _environ

# First: it raises a helpful error if ndx was never built.
from ndx._lib import built as _built

# isort: split
from ndx import backends
from ndx._api import elementwise as _elementwise
from ndx._api.creation import *
from ndx._api.creation_from_data import *
from ndx._api.data_types import *
from ndx._api.elementwise import *
from ndx._api.elementwise_parts import *
from ndx._api.indexing import *
from ndx._api.linear_algebra import *
from ndx._api.manipulation import *
from ndx._api.public import name_functions as _name_functions
from ndx._api.public import named as _named
from ndx._api.public import public_names as _public_names
from ndx._api.public import star_names as _star_names
from ndx._api.searching import *
from ndx._api.sorting import *
from ndx._api.statistical import *
from ndx._api.utility import *
from ndx._array.dispatch import synchronize, waitall
from ndx._capi import get_include
from ndx._compute.costs import cost_model
from ndx._compute.passes.settings import passes
from ndx._compute.threads import get_num_threads, set_num_threads
from ndx._context.context import current_backend, set_default
from ndx._context.use import no_workspace, use
from ndx._core import NDArray
from ndx._core import set_namespace as _set_namespace
from ndx._lib import import_hooks as _import_hooks
from ndx._lib.device import Device
from ndx._lib.errors import (
    DeviceError,
    MappedFileError,
    MemoryDamageError,
    OutOfMemoryError,
    ReadOnlyError,
    StaleArrayError,
    WorkspaceError,
)
from ndx._methods.numpy_dispatch import load_first as _load_first
from ndx._methods.ufuncs import register_ufuncs as _register_ufuncs
from ndx._workspaces.config import WorkspaceConfig
from ndx._workspaces.registry import current_workspace, workspace
from ndx._workspaces.workspace import Workspace

newaxis = None

# Names that are imported when they are first asked for, and the modules that have them
# (a module of ndx is its own): tools that use this namespace, and what not every
# program needs.
_LATER = {
    "Role": "ndx._pipelines.roles",
    "Roles": "ndx._pipelines.roles",
    "WorkspacePlan": "ndx._pipelines.workspace_plan",
    "__array_namespace_info__": "ndx._api.inspection",
    "cuda": "ndx.cuda",
    "engines": "ndx.engines",
    "evaluate": "ndx._pipelines.evaluation",
    "fft": "ndx.fft",
    "fuse": "ndx._fusing.function",
    "isin": "ndx._api.sets",
    "linalg": "ndx.linalg",
    "load": "ndx._api.file_io",
    "memory": "ndx.memory",
    "metrics": "ndx.metrics",
    "no_prefetch": "ndx._pipelines.sources",
    "open": "ndx._api.file_io",
    "parallel": "ndx.parallel",
    "prefetch": "ndx._pipelines.prefetching",
    "random": "ndx.random",
    "save": "ndx._api.file_io",
    "unique_all": "ndx._api.sets",
    "unique_counts": "ndx._api.sets",
    "unique_inverse": "ndx._api.sets",
    "unique_values": "ndx._api.sets",
    "use_workspaces": "ndx._pipelines.workspace_plan",
}

_register_ufuncs([*_elementwise.UFUNCS, "matmul", "rint", "vecdot"])
_load_first("ndx._numpy.functions")
_load_first("ndx._numpy.indexed_functions")
_load_first("ndx._numpy.linalg_functions")
_load_first("ndx._numpy.order_statistics")
_name_functions(globals(), vars(backends))
# Each version has all of the one before.
_set_namespace(
    _sys.modules[__name__],
    ("2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__),
)
# Without `abs`, `open`, `sum` and the like, which would replace Python's.
__all__ = _star_names(globals() | _LATER)


# The keys of `ndx._library_borders.BORDERS`, which is imported with the first of them.
_BORDERED = [
    *("astropy.table", "bokeh.models.sources", "cv2", "dask.array", "duckdb"),
    *("lightgbm", "networkx", "patsy", "sklearn.model_selection", "sparse", "sympy"),
    *("uncertainties", "unyt", "xarray", "zarr"),
]

# Modules that register NDArrays with other libraries, when these are imported.
_import_hooks.register_on_import(
    {
        "array_api_compat.common._helpers": "ndx.array_api_compat",
        "dask.array.backends": "ndx.dask",
        "dask.array.reductions": "ndx.dask",
        "dask.sizeof": "ndx._clusters.sizes",
        "distributed.protocol.serialize": "ndx._clusters.serialization",
        "einops._backends": "ndx.einops",
        "h5py._hl.dataset": "ndx.h5py",
        "numba.typed": "ndx.numba",
        "opt_einsum.backends.dispatch": "ndx.opt_einsum",
        "pandas": "ndx.pandas",
        "polars": "ndx.polars",
        "scipy._external.array_api_compat.common._helpers": "ndx.array_api_compat",
        "scipy._lib._array_api_override": "ndx.array_api_compat",
        "scipy._lib.array_api_compat.common._helpers": "ndx.array_api_compat",
        "scipy.optimize._differentiable_functions": "ndx.scipy",
        "scipy.sparse": "ndx.scipy",
        "sklearn.externals.array_api_compat.common._helpers": "ndx.array_api_compat",
        "threadpoolctl": "ndx.threadpoolctl",
        "torch": "ndx.torch",
        "zarr.core.buffer.cpu": "ndx.zarr",
        "xarray.compat.array_api_compat": "ndx.xarray",
        "xarray.core.indexing": "ndx.xarray",
        "xarray.core.missing": "ndx.xarray",
        "xarray.ufuncs": "ndx.xarray",
    }
    | {each: f"ndx._library_borders {each}" for each in _BORDERED},
    _environ.get("NDX_ADAPTERS", "all"),
)


def __dir__():
    return _public_names(globals() | _LATER)


def __getattr__(name):
    if name not in _LATER:
        missing = _import_module("ndx._api.missing_names")
        raise missing.missing_name(__name__, name)
    found = _import_module(_LATER[name])
    if _LATER[name] != f"{__name__}.{name}":
        found = getattr(found, name)
        if not _LATER[name].startswith("ndx._pipelines."):
            found = _named(found, name, __name__)
        # Of several threads that ask first, all get what one has made.
        found = globals().setdefault(name, found)
    return found


if {"NDX_DEBUG_MEMORY", "NDX_OOM_REPORT", "NDX_TRACK"} & _environ.keys():
    # It notes the lines that make arrays, writes reports, and checks memory at exit.
    _import_module("ndx.memory")
