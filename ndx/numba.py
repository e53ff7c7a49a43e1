"""NDArrays as arguments of functions that numba compiles.

Nobody has to import this module: ndx does when numba is imported. Within a compiled
function an NDArray is one of numba's arrays over the same memory, which is pinned
meanwhile. Arrays that such a function returns are NumPy's, as always with numba;
`ndx.asarray` takes them without a copy.

Examples
--------
>>> import ndx, numba
>>> @numba.njit
... def total(x):
...     result = 0.0
...     for each in x.flat:
...         result += each
...     return result
>>> total(ndx.ones((2, 3)))
6.0
"""

import contextlib

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import (
    NativeValue,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from ndx._core import NDArray

__all__ = ["NDArrayType", "register"]


class NDArrayType(types.Array):
    """The type of NDArrays in compiled functions: an array of numba."""

    def __init__(self, dtype, ndim, layout, readonly=False):
        kind = types.Array(dtype, ndim, layout, readonly=readonly)
        super().__init__(
            dtype, ndim, layout, readonly=readonly, name=f"NDArray({kind.name})"
        )


register_model(NDArrayType)(models.ArrayModel)


@typeof_impl.register(NDArray)
def _typeof(value, context):
    view = typeof_impl(np.asarray(value), context)
    return NDArrayType(view.dtype, view.ndim, view.layout, readonly=not view.mutable)


@unbox(NDArrayType)
def _unboxed(kind, array, context):
    """Return the native form of NumPy's view, which holds the NDArray's memory."""
    plain = types.Array(kind.dtype, kind.ndim, kind.layout, readonly=not kind.mutable)
    builder, pyapi = context.builder, context.pyapi
    failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
    value = cgutils.alloca_once(builder, context.context.get_value_type(kind))
    view_of = pyapi.unserialize(pyapi.serialize_object(np.asarray))
    with contextlib.ExitStack() as stack:
        with cgutils.early_exit_if_null(builder, stack, view_of):
            pass
        view = pyapi.call_function_objargs(view_of, (array,))
        pyapi.decref(view_of)
        with cgutils.early_exit_if_null(builder, stack, view):
            pass
        native = context.unbox(plain, view)
        pyapi.decref(view)
        builder.store(native.value, value)
        builder.store(native.is_error, failed)
    return NativeValue(builder.load(value), is_error=builder.load(failed))


def register():
    """Do nothing: the functions above are registered as they are defined."""
