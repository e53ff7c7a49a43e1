"""NDArrays as the chunks of dask's arrays.

Nobody has to import this module: ndx does when ``dask.array`` is imported, and dask
does for its configuration ``array.backend``. It registers the functions that dask looks
up by the type of a chunk, and ndx as a backend for new arrays.

Examples
--------
>>> import dask, dask.array as da, ndx
>>> x = da.from_array(ndx.arange(6.0), chunks=3)
>>> x.sum().compute()
NDArray(15.)
>>> with dask.config.set({"array.backend": "ndx"}):
...     da.ones(3).compute()
NDArray([1., 1., 1.])
"""

import contextlib
import functools
import math
import sys

import dask
import dask.array as da
import numpy as np
from dask.array.backends import (
    ArrayBackendEntrypoint,
    array_creation_dispatch,
    percentile,
)
from dask.array.chunk_types import register_chunk_type
from dask.array.dispatch import (
    concatenate_lookup,
    divide_lookup,
    einsum_lookup,
    empty_lookup,
    numel_lookup,
    percentile_lookup,
    take_lookup,
    tensordot_lookup,
    to_numpy_dispatch,
)
from dask.utils import Dispatch

from ndx._api.creation import empty, full
from ndx._api.creation_from_data import asarray
from ndx._context.use import no_workspace
from ndx._core import NDArray
from ndx._lib.bit_generators import PCG64
from ndx._numpy.generators import RandomState

__all__ = ["Backend", "register"]

# Chunks of other kinds -> NDArrays.
_to_ndx = Dispatch("to_ndx")


@_to_ndx.register(np.ndarray)
def _from_numpy(data, **kwargs):
    return asarray(data, copy=True)


@_to_ndx.register(NDArray)
def _unchanged(data, **kwargs):
    return data


def _numel(x, axis=None, dtype=np.float64, keepdims=False, **kwargs):
    """Count the elements along axes, as an array of the reduction's shape."""
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis) % max(x.ndim, 1)
    count = math.prod(x.shape[each] for each in axes)
    sizes = [1 if i in axes else n for i, n in enumerate(x.shape)]
    kept = [n for i, n in enumerate(sizes) if keepdims or i not in axes]
    return full(tuple(kept), count, dtype=dtype)


def _with_ndx(name):
    """Return dask's function for a new array, with an NDArray for its kind of chunk."""

    def create(*args, meta=None, **kwargs):
        if meta is None:
            with no_workspace():
                meta = empty((), device="cpu")
        with dask.config.set({"array.backend": "numpy"}):
            return getattr(da, name)(*args, meta=meta, **kwargs)

    create.__name__ = name
    return staticmethod(create)


class Backend(ArrayBackendEntrypoint):
    """How dask makes and converts arrays for ``array.backend: ndx``.

    Examples
    --------
    >>> import dask.array as da
    >>> x = da.arange(4, chunks=2).to_backend("ndx")
    >>> (x + 1).compute()
    NDArray([1, 2, 3, 4])
    """

    empty = _with_ndx("empty")
    full = _with_ndx("full")
    ones = _with_ndx("ones")
    zeros = _with_ndx("zeros")
    RandomState = RandomState
    default_bit_generator = PCG64

    @staticmethod
    def arange(*args, like=None, **kwargs):
        """Create a range; see `dask.array.arange`."""
        if like is None:
            with no_workspace():
                like = empty((), device="cpu")
        with dask.config.set({"array.backend": "numpy"}):
            return da.arange(*args, like=like, **kwargs)

    @classmethod
    def to_backend_dispatch(cls):
        """Return the function that copies a chunk to ndx's memory."""
        return _to_ndx

    @classmethod
    def to_backend(cls, data, **kwargs):
        """Return an array whose chunks are NDArrays."""
        if isinstance(data._meta, NDArray):
            return data
        return data.map_blocks(_to_ndx, **kwargs)


def _of_arrays(reduce):
    """Return dask's step of a reduction, which knows the kind of a result without axes.

    dask takes `x.sum()` of the empty array that stands for chunks, which is a number,
    and makes an array of NumPy's of that, as of any scalar.
    """

    @functools.wraps(reduce)
    def reduce_chunks(func, x, *args, **kwargs):
        found = reduce(func, x, *args, **kwargs)
        if isinstance(x._meta, NDArray) and type(found._meta) is np.ndarray:
            with no_workspace(), contextlib.suppress(TypeError):
                found._meta = asarray(found._meta, device="cpu")
        return found

    return reduce_chunks


def register():
    """Register NDArrays with dask."""
    reductions = sys.modules.get("dask.array.reductions")
    reduce = getattr(reductions, "partial_reduce", None)
    if reduce is not None and not hasattr(reduce, "__wrapped__"):
        reductions.partial_reduce = _of_arrays(reduce)
    # The functions of NumPy that dask has for all other types compute NDArrays, too.
    for lookup in (
        concatenate_lookup,
        divide_lookup,
        einsum_lookup,
        take_lookup,
        tensordot_lookup,
    ):
        lookup.register(NDArray, lookup.dispatch(np.ndarray))
    empty_lookup.register(NDArray, empty)
    numel_lookup.register(NDArray, _numel)
    percentile_lookup.register(NDArray, percentile)
    to_numpy_dispatch.register(NDArray, lambda data, **kwargs: np.asarray(data))
    register_chunk_type(NDArray)
    array_creation_dispatch.register_backend("ndx", Backend())
