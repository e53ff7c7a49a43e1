"""Signatures and documentation of NumPy's methods, for `tools/make_methods.py`."""

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


def _reduction(name, signature, what, example, **more):
    return Method(name, signature, what, example, returns=_REDUCED, **more)


_REDUCTIONS = [
    _reduction(
        "all",
        _TEST,
        "Return whether all elements along axes are true.",
        _X + ">>> (x > 0).all(axis=0)\nNDArray([ True,  True])",
    ),
    _reduction(
        "any",
        _TEST,
        "Return whether an element along axes is true.",
        _X + ">>> (x > 3).any(axis=0)\nNDArray([False,  True])",
    ),
    Method(
        "argmax",
        "axis=None, out=None, *, keepdims=False",
        "Return the index of the largest element along an axis.",
        _X + ">>> x.argmax(axis=1)\nNDArray([1, 1])",
        parameters=_ONE_AXIS,
    ),
    Method(
        "argmin",
        "axis=None, out=None, *, keepdims=False",
        "Return the index of the smallest element along an axis.",
        _X + ">>> x.argmin(axis=1)\nNDArray([0, 0])",
        parameters=_ONE_AXIS,
    ),
    Method(
        "cumprod",
        "axis=None, dtype=None, out=None",
        "Return the products of the elements up to each along an axis.",
        _I + ">>> x.cumprod()\nNDArray([3, 3, 6])",
        parameters=_ONE_AXIS,
    ),
    Method(
        "cumsum",
        "axis=None, dtype=None, out=None",
        "Return the sums of the elements up to each along an axis.",
        _I + ">>> x.cumsum()\nNDArray([3, 4, 6])",
        parameters=_ONE_AXIS,
    ),
    _reduction(
        "max",
        _BOUND,
        "Return the largest element along axes.",
        _X + ">>> x.max(axis=1)\nNDArray([4., 3.])",
    ),
    _reduction(
        "mean",
        "axis=None, dtype=None, out=None, keepdims=False, *, where=True",
        "Return the arithmetic mean along axes.",
        _X + ">>> x.mean(axis=0)\nNDArray([1.5, 3.5])",
    ),
    _reduction(
        "min",
        _BOUND,
        "Return the smallest element along axes.",
        _X + ">>> x.min(axis=1)\nNDArray([1., 2.])",
    ),
    _reduction(
        "prod",
        _FOLD,
        "Return the product along axes.",
        _X + ">>> x.prod()\nNDArray(24.)",
    ),
    _reduction(
        "ptp",
        "axis=None, out=None, keepdims=False",
        "Return the difference of the largest and the smallest element along axes.",
        _X + ">>> x.ptp(axis=0)\nNDArray([1., 1.])",
        notes=("NumPy 2 has it as a function only: ``np.ptp``.",),
    ),
    _reduction(
        "std",
        "axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, "
        "mean=...",
        "Return the standard deviation along axes.",
        _X + ">>> x.std(axis=0)\nNDArray([0.5, 0.5])",
    ),
    _reduction(
        "sum",
        _FOLD,
        "Return the sum along axes.",
        _X + ">>> x.sum(axis=0)\nNDArray([3., 7.])",
    ),
    Method(
        "trace",
        "offset=0, axis1=0, axis2=1, dtype=None, out=None",
        "Return the sums along the diagonals of two axes.",
        _X + ">>> x.trace()\nNDArray(4.)",
    ),
    _reduction(
        "var",
        "axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, "
        "mean=...",
        "Return the variance along axes.",
        _X + ">>> x.var(axis=0)\nNDArray([0.25, 0.25])",
    ),
]

_VIEWS = [
    Method(
        "diagonal",
        "offset=0, axis1=0, axis2=1",
        "Return the diagonals of two axes, as a read-only view.",
        _X + ">>> x.diagonal()\nNDArray([1., 3.])",
    ),
    Method(
        "flatten",
        "order='C'",
        "Return a copy with one axis.",
        _X + ">>> x.flatten()\nNDArray([1., 4., 2., 3.])",
    ),
    Method(
        "ravel",
        "order='C'",
        "Return the elements along one axis, a view of a contiguous array.",
        _X + ">>> x.ravel()\nNDArray([1., 4., 2., 3.])",
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
    ),
    Method(
        "reshape",
        "*shape, order='C', copy=None",
        "Return the array with another shape, a view if possible.",
        _X + ">>> x.reshape(4)\nNDArray([1., 4., 2., 3.])",
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
    ),
    Method(
        "resize",
        "*new_shape, refcheck=True",
        "Change the size in place: elements are cut off, or zeros follow.",
        ">>> x = ndx.asarray([1, 2, 3])\n>>> x.resize(2, 2)\n>>> x\n"
        "NDArray([[1, 2],\n         [3, 0]])",
        kind="None",
        returns=None,
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
        raises=(("ValueError", "If `axes` are not all axes."),),
    ),
    Method(
        "view",
        "dtype=None, type=None",
        "Return a view of the same bytes, as elements of another dtype.",
        ">>> ndx.asarray([1.0]).view('int64')\nNDArray([4607182418800017408])",
        kind="Any",
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
    ),
    Method(
        "put",
        "indices, values, mode='raise'",
        "Set elements by their index in the flattened array.",
        _I + ">>> x.put([0, 2], [7, 8])\n>>> x\nNDArray([7, 1, 8])",
        kind="None",
        returns=None,
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
        parameters={
            "v": ("array_like", "The values."),
            "side": ("{'left', 'right'}", "The index before or after equal elements."),
            "sorter": ("array_like of int, optional", "Indices that sort the array."),
        },
    ),
    Method(
        "take",
        "indices, axis=None, out=None, mode='raise'",
        "Return elements by their index along an axis.",
        _I + ">>> x.take([0, 2])\nNDArray([3, 2])",
        parameters=_ONE_AXIS | {"indices": ("array_like of int", "The indices.")},
    ),
]

_ORDER = [
    Method(
        "argpartition",
        "kth, axis=-1, kind='introselect', order=None",
        "Return the indices that partition the array.",
        _I + ">>> x.argpartition(0)[0]\nNDArray(1)",
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
    ),
    Method(
        "partition",
        "kth, axis=-1, kind='introselect', order=None",
        "Reorder the array so that some places have the elements of the sorted array.",
        _I + ">>> x.partition(0)\n>>> x[0]\nNDArray(1)",
        kind="None",
        returns=None,
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
    ),
    Method(
        "conjugate",
        "out=None",
        "Return the complex conjugates.",
        ">>> ndx.asarray([1j]).conjugate()\nNDArray([0.-1.j])",
    ),
    Method(
        "dot",
        "b, out=None",
        "Return the dot product with another array.",
        _X + ">>> x.dot(x)\nNDArray([[ 9., 16.],\n         [ 8., 17.]])",
        parameters={"b": ("array_like", "The other array.")},
    ),
    Method(
        "round",
        "decimals=0, out=None",
        "Return the elements, rounded to decimals.",
        ">>> ndx.asarray([1.25, 1.36]).round(1)\nNDArray([1.2, 1.4])",
    ),
]

_CONVERSIONS = [
    Method(
        "astype",
        "dtype, order='K', casting='unsafe', subok=True, copy=True",
        "Return the elements, converted to a dtype.",
        _I + ">>> x.astype('float32')\nNDArray([3., 1., 2.], dtype=float32)",
        kind="Any",
        parameters={"dtype": ("dtype", "The dtype of the result.")},
        notes=("For a dtype that no NDArray has the result is NumPy's array.",),
    ),
    Method(
        "byteswap",
        "inplace=False",
        "Return the elements with their bytes reversed.",
        ">>> ndx.asarray([1], dtype='int16').byteswap()\nNDArray([256], dtype=int16)",
        parameters={"inplace": ("bool, default False", "Change the array itself.")},
    ),
    Method(
        "copy",
        "order='C'",
        "Return a copy.",
        _I + ">>> x.copy() is x\nFalse",
    ),
    Method(
        "dump",
        "file",
        "Write a pickle of the array to a file.",
        ">>> import io\n>>> ndx.ones(3).dump(io.BytesIO())",
        kind="None",
        returns=None,
        parameters={"file": ("path or file", "Where to.")},
    ),
    Method(
        "dumps",
        "",
        "Return a pickle of the array.",
        ">>> type(ndx.ones(3).dumps())\n<class 'bytes'>",
        kind="bytes",
        returns=("bytes", ""),
    ),
    Method(
        "getfield",
        "dtype, offset=0",
        "Return a field of each element, as a view.",
        ">>> ndx.asarray([1 + 2j]).getfield('float64', 8)\nNDArray([2.])",
        kind="Any",
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
    ),
    Method(
        "tofile",
        "fid, sep='', format='%s'",
        "Write the elements to a file.",
        ">>> import os\n>>> ndx.ones(3).tofile(os.devnull)",
        kind="None",
        returns=None,
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
        "value, dtype, offset=0",
        "Set a field of each element.",
        ">>> x = ndx.zeros(1, dtype='complex128')\n>>> x.setfield(2.0, 'float64', 8)\n"
        ">>> x\nNDArray([0.+2.j])",
        kind="None",
        returns=None,
        parameters={
            "value": ("array_like", "The values."),
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
