"""The table of NumPy's methods that NDArray has, for `tools/make_methods.py`."""

from tables.method import Method

__all__ = ["GROUPS"]

_WRITES = ("ValueError", "If the array is read-only.")
_X = ">>> x = ndx.asarray([[1.0, 4.0], [2.0, 3.0]])\n"
_I = ">>> x = ndx.asarray([3, 1, 2])\n"
_REDUCED = ("NDArray", "Without the axes; without any axis if `axis` is None.")
_FOLD = "axis=None, dtype=None, out=None, keepdims=False, initial=..., where=True"
_BOUND = "axis=None, out=None, keepdims=False, initial=..., where=True"
_TEST = "axis=None, out=None, keepdims=False, *, where=True"
_ONE_AXIS = {"axis": ("int, optional", "The axis; None: of all elements, flattened.")}
_DESCENDING = ("bool, optional", "Largest first; needs NumPy 2.5.")
_SORTED = {"axis": ("int, optional", "The axis, by default the last.")}


def _reduction(name, signature, what, example, only="", **more):
    only = f"has_axes(self, axis) and {only}" if only else "has_axes(self, axis)"
    return Method(
        name,
        signature,
        what,
        example,
        returns=_REDUCED,
        reduces=True,
        only=only,
        **more,
    )


_REDUCTIONS = [
    _reduction(
        "all",
        _TEST,
        "Return whether all elements along axes are true.",
        _X + ">>> (x > 0).all(axis=0)\nNDArray([ True,  True])",
        direct="ndx.all(self, axis=axis, keepdims=keepdims)",
    ),
    _reduction(
        "any",
        _TEST,
        "Return whether an element along axes is true.",
        _X + ">>> (x > 3).any(axis=0)\nNDArray([False,  True])",
        direct="ndx.any(self, axis=axis, keepdims=keepdims)",
    ),
    Method(
        "argmax",
        "axis=None, out=None, *, keepdims=False",
        "Return the index of the largest element along an axis.",
        _X + ">>> x.argmax(axis=1)\nNDArray([1, 1])",
        parameters=_ONE_AXIS,
        direct="ndx.argmax(self, axis=axis, keepdims=keepdims)",
        reduces=True,
        only="as_index(axis) and has_axes(self, axis)",
    ),
    Method(
        "argmin",
        "axis=None, out=None, *, keepdims=False",
        "Return the index of the smallest element along an axis.",
        _X + ">>> x.argmin(axis=1)\nNDArray([0, 0])",
        parameters=_ONE_AXIS,
        direct="ndx.argmin(self, axis=axis, keepdims=keepdims)",
        reduces=True,
        only="as_index(axis) and has_axes(self, axis)",
    ),
    Method(
        "cumprod",
        "axis=None, dtype=None, out=None",
        "Return the products of the elements up to each along an axis.",
        _I + ">>> x.cumprod()\nNDArray([3, 3, 6])",
        parameters=_ONE_AXIS,
        direct="ndx.cumulative_prod(self, axis=axis, dtype=dtype)",
        only="(self.ndim == 1 or is_axis(self, axis)) and ("
        "dtype is None or stays_plain(self, dtype))",
    ),
    Method(
        "cumsum",
        "axis=None, dtype=None, out=None",
        "Return the sums of the elements up to each along an axis.",
        _I + ">>> x.cumsum()\nNDArray([3, 4, 6])",
        parameters=_ONE_AXIS,
        direct="ndx.cumulative_sum(self, axis=axis, dtype=dtype)",
        only="(self.ndim == 1 or is_axis(self, axis)) and ("
        "dtype is None or stays_plain(self, dtype))",
    ),
    _reduction(
        "max",
        _BOUND,
        "Return the largest element along axes.",
        _X + ">>> x.max(axis=1)\nNDArray([4., 3.])",
        direct="ndx.max(self, axis=axis, keepdims=keepdims)",
        only="not is_complex(self)",
    ),
    _reduction(
        "mean",
        "axis=None, dtype=None, out=None, keepdims=False, *, where=True",
        "Return the arithmetic mean along axes.",
        _X + ">>> x.mean(axis=0)\nNDArray([1.5, 3.5])",
        direct="ndx.mean(self, axis=axis, keepdims=keepdims)",
        only="is_inexact(self)",
    ),
    _reduction(
        "min",
        _BOUND,
        "Return the smallest element along axes.",
        _X + ">>> x.min(axis=1)\nNDArray([1., 2.])",
        direct="ndx.min(self, axis=axis, keepdims=keepdims)",
        only="not is_complex(self)",
    ),
    _reduction(
        "prod",
        _FOLD,
        "Return the product along axes.",
        _X + ">>> x.prod()\nNDArray(24.)",
        direct="ndx.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)",
        only="(dtype is None or stays_plain(self, dtype))",
    ),
    _reduction(
        "ptp",
        "axis=None, out=None, keepdims=False",
        "Return the difference of the largest and the smallest element along axes.",
        _X + ">>> x.ptp(axis=0)\nNDArray([1., 1.])",
        body="if out is None and not keepdims:\n"
        "    return compute_function(np.ptp, (self, axis), {})\n"
        "return call_function(np.ptp, (self,), "
        '{"axis": axis, "out": out, "keepdims": keepdims})',
        notes=("NumPy 2 has it as a function only: ``np.ptp``.",),
    ),
    _reduction(
        "std",
        "axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, "
        "mean=...",
        "Return the standard deviation along axes.",
        _X + ">>> x.std(axis=0)\nNDArray([0.5, 0.5])",
        direct="ndx.std(self, axis=axis, correction=ddof, keepdims=keepdims)",
        only="is_real_floating(self) and type(ddof) is int and 0 <= ddof <= 1",
    ),
    _reduction(
        "sum",
        _FOLD,
        "Return the sum along axes.",
        _X + ">>> x.sum(axis=0)\nNDArray([3., 7.])",
        direct="ndx.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)",
        only="(dtype is None or stays_plain(self, dtype))",
    ),
    Method(
        "trace",
        "offset=0, axis1=0, axis2=1, dtype=None, out=None",
        "Return the sums along the diagonals of two axes.",
        _X + ">>> x.trace()\nNDArray(4.)",
        direct="ndx.sum(self.diagonal())",
        only="is_matrix(self)",
    ),
    _reduction(
        "var",
        "axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, "
        "mean=...",
        "Return the variance along axes.",
        _X + ">>> x.var(axis=0)\nNDArray([0.25, 0.25])",
        direct="ndx.var(self, axis=axis, correction=ddof, keepdims=keepdims)",
        only="is_real_floating(self) and type(ddof) is int and 0 <= ddof <= 1",
    ),
]

_VIEWS = [
    Method(
        "diagonal",
        "offset=0, axis1=0, axis2=1",
        "Return the diagonals of two axes, as a read-only view.",
        _X + ">>> x.diagonal()\nNDArray([1., 3.])",
        direct="readonly_diagonal(self)",
        only="is_matrix(self)",
    ),
    Method(
        "flatten",
        "order='C'",
        "Return a copy with one axis.",
        _X + ">>> x.flatten()\nNDArray([1., 4., 2., 3.])",
        direct="ndx.reshape(self, (-1,), copy=True)",
    ),
    Method(
        "ravel",
        "order='C'",
        "Return the elements along one axis, a view of a contiguous array.",
        _X + ">>> x.ravel()\nNDArray([1., 4., 2., 3.])",
        body="if order == 'C' and is_contiguous(self):\n    return flat_view(self)\n"
        "if order == 'C':\n"
        "    return ndx.reshape(self, (-1,), copy=None if self.c_contiguous else True)\n"
        "return call_method('ravel', (self,), {'order': order})",
    ),
    Method(
        "repeat",
        "repeats, axis=None",
        "Return the array with its elements repeated.",
        _I + ">>> x.repeat(2)\nNDArray([3, 3, 1, 1, 2, 2])",
        parameters={
            "repeats": ("int or array of int", "How often each element is repeated."),
            "axis": ("int, optional", "The axis; None: of all elements, flattened."),
        },
        direct="ndx.repeat(self, repeats, axis=axis)",
        only="repeats_plainly(self, repeats, axis)",
    ),
    Method(
        "reshape",
        "*shape, order='C', copy=None",
        "Return the array with another shape, a view if possible.",
        _X + ">>> x.reshape(4)\nNDArray([1., 4., 2., 3.])",
        direct="ndx.reshape(self, lengths_of(shape), copy=copy)",
        parameters={
            "copy": ("bool, optional", "True: always a copy; False: never, or raise."),
            "order": ("{'C', 'F', 'A'}", "The order in which elements are taken."),
        },
        raises=(("ValueError", "If the shape has another number of elements."),),
    ),
    Method(
        "squeeze",
        "axis=None",
        "Return a view without axes of length 1.",
        ">>> ndx.ones((1, 3)).squeeze().shape\n(3,)",
        body="if not has_axes(self, axis):\n"
        "    return call_method('squeeze', (self,), {'axis': axis})\n"
        "return ndx.squeeze(self, ones_of(self) if axis is None else axis)",
        parameters={
            "axis": ("int or tuple of int, optional", "Default: all of length 1.")
        },
        raises=(("ValueError", "If an axis has another length."),),
    ),
    Method(
        "swapaxes",
        "axis1, axis2",
        "Return a view with two axes exchanged.",
        ">>> ndx.ones((2, 3)).swapaxes(0, 1).shape\n(3, 2)",
        positional=("axis1", "axis2"),
        direct="swap_axes(self, axis1, axis2)",
        only="is_axis(self, axis1) and is_axis(self, axis2)",
    ),
    Method(
        "resize",
        "*new_shape, refcheck=True",
        "Change the size in place: elements are cut off, or zeros follow.",
        ">>> x = ndx.asarray([1, 2, 3])\n>>> x.resize(2, 2)\n>>> x\n"
        "NDArray([[1, 2],\n         [3, 0]])",
        kind="None",
        returns=None,
        body="if not new_shape or new_shape == (None,):\n"
        "    return None\n"
        "shape = axes_of(new_shape)\n"
        "resize(self, ndx.zeros(shape, dtype=dtype_object(self.dtype)))",
        parameters={
            "*new_shape": ("int, or one tuple of int", "The new shape."),
            "refcheck": ("bool", "Not used: other references are always refused."),
        },
        raises=(
            ("ValueError", "If the array is a view or has views, or is read-only."),
            ("AttributeError", "If there are other references to the array."),
        ),
    ),
    Method(
        "transpose",
        "*axes",
        "Return a view with the axes in another order.",
        ">>> ndx.ones((2, 3, 4)).transpose(1, 0, 2).shape\n(3, 2, 4)",
        body="if not axes or axes == (None,):\n"
        "    return reverse_axes(self)\n"
        "return ndx.permute_dims(self, axes_of(axes))",
        raises=(("ValueError", "If `axes` are not all axes."),),
    ),
    Method(
        "view",
        "dtype=None, type=None",
        "Return a view of the same bytes, as elements of another dtype.",
        ">>> ndx.asarray([1.0]).view('int64')\nNDArray([4607182418800017408])",
        kind="Any",
        body="if is_array_class(dtype):\n"
        "    dtype, type = None, dtype\n"
        "found = same_view(self) if dtype is None else \\\n"
        "    call_method('view', (self, dtype), {})\n"
        "return found if type is None else view_of_class(found, type)",
        parameters={
            "dtype": ("dtype, optional", "The dtype of the view."),
            "type": (
                "type, optional",
                "A subclass of NumPy's class of arrays, of which the view is then one.",
            ),
        },
        raises=(("ValueError", "If the last axis has no whole number of elements."),),
    ),
]

_ELEMENTS = [
    Method(
        "choose",
        "*choices, out=None, mode='raise'",
        "Return elements of the choices, by the indices in the array.",
        ">>> ndx.asarray([1, 0]).choose([[1, 2], [3, 4]])\nNDArray([3, 2])",
        parameters={
            "*choices": ("array_like, or one sequence of them", "What to choose from.")
        },
    ),
    Method(
        "compress",
        "condition, axis=None, out=None",
        "Return the slices along an axis where a condition holds.",
        _I + ">>> x.compress([True, False, True])\nNDArray([3, 2])",
        positional=("condition",),
        parameters=_ONE_AXIS
        | {"condition": ("array_like of bool, 1-d", "Which slices to take.")},
    ),
    Method(
        "fill",
        "value",
        "Set all elements to a value.",
        _I + ">>> x.fill(7)\n>>> x\nNDArray([7, 7, 7])",
        kind="None",
        returns=None,
        body="set_item(self, ..., value)",
        parameters={"value": ("scalar", "The value.")},
        raises=(_WRITES,),
    ),
    Method(
        "nonzero",
        "",
        "Return the indices of elements that are not 0, for each axis.",
        _X + ">>> (x > 2).nonzero()\n(NDArray([0, 1]), NDArray([1, 1]))",
        kind="tuple[NDArray, ...]",
        returns=("tuple of NDArray", "An array for each axis."),
        direct="ndx.nonzero(self)",
        only="self.ndim > 0",
    ),
    Method(
        "put",
        "indices, values, mode='raise'",
        "Set elements by their index in the flattened array.",
        _I + ">>> x.put([0, 2], [7, 8])\n>>> x\nNDArray([7, 1, 8])",
        kind="None",
        returns=None,
        body="change_in_place(self)\n"
        "call_method('put', (self, indices, values), {'mode': mode})",
        parameters={
            "indices": ("array_like of int", "Indices of the flattened array."),
            "values": ("array_like", "Their new values, repeated if too few."),
        },
        raises=(_WRITES,),
    ),
    Method(
        "searchsorted",
        "v, side='left', sorter=None",
        "Return the indices where values belong in the sorted array.",
        ">>> ndx.asarray([1, 3, 5]).searchsorted([2, 3])\nNDArray([1, 1])",
        positional=("v",),
        parameters={
            "v": ("array_like", "The values."),
            "side": ("{'left', 'right'}", "The index before or after equal elements."),
            "sorter": ("array_like of int, optional", "Indices that sort the array."),
        },
        direct="searched(self, v, side == 'right')",
        only="searches_plainly(self, v, side) and sorter is None",
    ),
    Method(
        "take",
        "indices, axis=None, out=None, mode='raise'",
        "Return elements by their index along an axis.",
        _I + ">>> x.take([0, 2])\nNDArray([3, 2])",
        positional=("indices",),
        direct="ndx.take(self, indices, axis=axis)",
        only="takes_along(self, indices, axis)",
        parameters=_ONE_AXIS | {"indices": ("array_like of int", "The indices.")},
    ),
]

_ORDER = [
    Method(
        "argpartition",
        "kth, axis=-1, kind='introselect', order=None",
        "Return the indices that partition the array.",
        _I + ">>> x.argpartition(0)[0]\nNDArray(1)",
        positional=("kth",),
        annotations={"kind": "PartitionKind"},
        parameters=_SORTED
        | {
            "kth": ("int or sequence of int", "The places that are sorted."),
            "order": ("None", "NumPy's, for structured dtypes."),
        },
    ),
    Method(
        "argsort",
        "axis=-1, kind=None, order=None, *, stable=None, descending=None",
        "Return the indices that sort the array.",
        _I + ">>> x.argsort()\nNDArray([1, 2, 0])",
        parameters=_SORTED
        | {
            "order": ("None", "NumPy's, for structured dtypes."),
            "stable": ("bool, optional", "Keep the order of equal elements."),
            "descending": _DESCENDING,
        },
        body="plain = order is stable is descending is None and (\n"
        "    kind is None or type(kind) is str and kind in KINDS)\n"
        "if plain and self.ndim > 0 and axis is not None:\n"
        "    return ndx.argsort(self, axis=axis)\n"
        "named = {'axis': axis, 'kind': kind, 'order': order, 'stable': stable}\n"
        "if descending is not None:\n"
        "    named['descending'] = descending\n"
        "return call_method('argsort', (self,), named)",
    ),
    Method(
        "partition",
        "kth, axis=-1, kind='introselect', order=None",
        "Reorder the array so that some places have the elements of the sorted array.",
        _I + ">>> x.partition(0)\n>>> x[0]\nNDArray(1)",
        kind="None",
        returns=None,
        body="change_in_place(self)\n"
        "named = {'axis': axis, 'kind': kind, 'order': order}\n"
        "call_method('partition', (self, kth), named)",
        annotations={"kind": "PartitionKind"},
        parameters=_SORTED
        | {
            "kth": ("int or sequence of int", "The places that are sorted."),
            "order": ("None", "NumPy's, for structured dtypes."),
        },
        raises=(_WRITES,),
    ),
    Method(
        "sort",
        "axis=-1, kind=None, order=None, *, stable=None, descending=None",
        "Sort the array in place.",
        _I + ">>> x.sort()\n>>> x\nNDArray([1, 2, 3])",
        kind="None",
        returns=None,
        body="change_in_place(self)\n"
        "if descending is None and sorts_plainly(self, axis, kind, order, stable):\n"
        "    sort_in_place(self, axis + self.ndim if axis < 0 else axis, False)\n"
        "    return\n"
        "named = {'axis': axis, 'kind': kind, 'order': order, 'stable': stable}\n"
        "if descending is not None:\n"
        "    named['descending'] = descending\n"
        "call_method('sort', (self,), named)",
        parameters=_SORTED
        | {
            "order": ("None", "NumPy's, for structured dtypes."),
            "stable": ("bool, optional", "Keep the order of equal elements."),
            "descending": _DESCENDING,
        },
        raises=(_WRITES,),
    ),
]

_NUMBERS = [
    Method(
        "clip",
        "min=None, max=None, out=None, **kwargs",
        "Return the elements, limited to an interval.",
        _I + ">>> x.clip(2, None)\nNDArray([3, 2, 2])",
        body="clipped = None if kwargs else clip_between(self, min, max, out)\n"
        "if clipped is not None:\n"
        "    return clipped if out is not None else like_operand(self, clipped)\n"
        "return call_method('clip', (self, min, max), "
        "{'out': out, **kwargs} if out is not None else kwargs)",
        parameters={
            "min": ("array_like, optional", "The least value."),
            "max": ("array_like, optional", "The greatest value."),
            "kwargs": ("", "Those of `numpy.ufunc`."),
        },
    ),
    Method(
        "conj",
        "out=None",
        "Return the complex conjugates.",
        ">>> ndx.asarray([1j]).conj()\nNDArray([0.-1.j])",
        body="return call_method('conj', (self,) if out is None else (self, out), {})",
    ),
    Method(
        "conjugate",
        "out=None",
        "Return the complex conjugates.",
        ">>> ndx.asarray([1j]).conjugate()\nNDArray([0.-1.j])",
        body="given = (self,) if out is None else (self, out)\n"
        "return call_method('conjugate', given, {})",
    ),
    Method(
        "dot",
        "b, out=None",
        "Return the dot product with another array.",
        _X + ">>> x.dot(x)\nNDArray([[ 9., 16.],\n         [ 8., 17.]])",
        positional=("b",),
        parameters={"b": ("array_like", "The other array.")},
        body="if out is None:\n    found = plain_product(self, b)\n"
        "    if found is not NotImplemented:\n        return as_number(found)\n"
        "return call_function(np.dot, (self, b), {'out': out})",
    ),
    Method(
        "round",
        "decimals=0, out=None",
        "Return the elements, rounded to decimals.",
        ">>> ndx.asarray([1.25, 1.36]).round(1)\nNDArray([1.2, 1.4])",
        body="if out is None:\n    found = rounded_floats(self, decimals)\n"
        "    if found is not NotImplemented:\n        return found\n"
        "return call_method('round', (self,), {'decimals': decimals, 'out': out})",
    ),
]

_CONVERSIONS = [
    Method(
        "astype",
        "dtype, order='K', casting='unsafe', subok=True, copy=True",
        "Return the elements, converted to a dtype.",
        _I + ">>> x.astype('float32')\nNDArray([3., 1., 2.], dtype=float32)",
        kind="Any",
        positional=("dtype",),
        parameters={"dtype": ("dtype", "The dtype of the result.")},
        body="if order == 'K' and casting == 'unsafe' and isinstance(copy, bool):\n"
        "    found = plain_cast(self, dtype, copy)\n"
        "    if found is not None:\n        return like_operand(self, found)\n"
        "named = {'order': order, 'casting': casting, 'subok': subok, 'copy': copy}\n"
        "return call_method('astype', (self, dtype), named)",
        notes=("For a dtype that no NDArray has the result is NumPy's array.",),
    ),
    Method(
        "byteswap",
        "inplace=False",
        "Return the elements with their bytes reversed.",
        ">>> ndx.asarray([1], dtype='int16').byteswap()\nNDArray([256], dtype=int16)",
        body="if inplace:\n    change_in_place(self)\n"
        "return call_method('byteswap', (self, inplace), {})",
        parameters={"inplace": ("bool, default False", "Change the array itself.")},
    ),
    Method(
        "copy",
        "order='C'",
        "Return a copy.",
        _I + ">>> x.copy() is x\nFalse",
        body="if order in ('C', 'F'):\n"
        "    return like_operand(self, ordered_copy(self, order))\n"
        "return call_method('copy', (self,), {'order': order})",
    ),
    Method(
        "dump",
        "file",
        "Write a pickle of the array to a file.",
        ">>> import io\n>>> ndx.ones(3).dump(io.BytesIO())",
        kind="None",
        returns=None,
        body="write_pickle(self, file)",
        parameters={"file": ("path or file", "Where to.")},
    ),
    Method(
        "dumps",
        "",
        "Return a pickle of the array.",
        ">>> type(ndx.ones(3).dumps())\n<class 'bytes'>",
        kind="bytes",
        returns=("bytes", ""),
        body="return pickle_of(self)",
    ),
    Method(
        "getfield",
        "dtype, offset=0",
        "Return a field of each element, as a view.",
        ">>> ndx.asarray([1 + 2j]).getfield('float64', 8)\nNDArray([2.])",
        kind="Any",
        positional=("dtype", "offset"),
        parameters={
            "dtype": ("dtype", "The field's."),
            "offset": ("int", "Bytes from the start of the element."),
        },
    ),
    Method(
        "tobytes",
        "order='C'",
        "Return the elements' bytes.",
        ">>> ndx.asarray([1], dtype='uint8').tobytes()\nb'\\\\x01'",
        kind="bytes",
        returns=("bytes", "In C order, whatever the layout is."),
        direct="bytes_of(self)",
        only="is_contiguous(self)",
    ),
    Method(
        "tofile",
        "fid, sep='', format='%s'",
        "Write the elements to a file.",
        ">>> import os\n>>> ndx.ones(3).tofile(os.devnull)",
        kind="None",
        returns=None,
        body="write_elements(self, fid, sep, format)",
        parameters={
            "fid": ("path or file", "Where to; the file at a path is replaced."),
            "sep": ("str", "Between elements as text; '': as bytes."),
            "format": ("str", "Of each element as text."),
        },
    ),
]

_FLAGS = [
    Method(
        "setfield",
        "val, dtype, offset=0",
        "Set a field of each element.",
        ">>> x = ndx.zeros(1, dtype='complex128')\n>>> x.setfield(2.0, 'float64', 8)\n"
        ">>> x\nNDArray([0.+2.j])",
        kind="None",
        returns=None,
        body="change_in_place(self)\n"
        "call_method('setfield', (self, val, dtype, offset), {})",
        parameters={
            "val": ("array_like", "The values."),
            "dtype": ("dtype", "The field's."),
            "offset": ("int", "Bytes from the start of the element."),
        },
        raises=(_WRITES,),
    ),
    Method(
        "setflags",
        "write=None, align=None, uic=None",
        "Set whether elements can be changed.",
        ">>> x = ndx.zeros(2)\n>>> x.setflags(write=False)\n>>> x.flags.writeable\nFalse",
        kind="None",
        returns=None,
        body="if write is not None:\n    set_writeable(self, write)\n"
        "if align is not None and not align or uic:\n"
        "    raise ValueError(\n"
        "        'only write can be set: elements of an NDArray are aligned')",
        parameters={
            "write": ("bool, optional", "Whether elements can be changed."),
            "align": ("bool, optional", "True: an NDArray is aligned."),
            "uic": ("bool, optional", "False: an NDArray is no temporary copy."),
        },
        raises=(("ValueError", "If the memory is read-only, or shared by elements."),),
    ),
]

GROUPS = {
    "reductions": _REDUCTIONS,
    "views and copies": _VIEWS,
    "elements": _ELEMENTS,
    "sorting": _ORDER,
    "numbers": _NUMBERS,
    "conversions": _CONVERSIONS,
    "flags and fields": _FLAGS,
}
