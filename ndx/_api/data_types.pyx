"""Data types of the standard: their names, limits and promotion."""

import numpy as np

from ndx._array.storage cimport BaseArray
from ndx._compute.copies cimport cast
from ndx._compute.elementwise cimport as_operand, is_scalar
from ndx._compute.numpy_calls cimport argument
from ndx._lib.dtypes cimport (
    KIND_BOOL, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_UINT, dtype_code, dtype_object,
    kind_of, promote_all, promote_table, scalar_dtype,
)

from ndx._lib.device import find_device, number_of

__all__ = [
    "astype", "bool", "can_cast", "complex64", "complex128", "finfo", "float16",
    "float32", "float64", "iinfo", "int8", "int16", "int32", "int64", "isdtype",
    "result_type", "uint8", "uint16", "uint32", "uint64",
]

bool: np.dtype[np.bool] = np.dtype("bool")
complex64: np.dtype[np.complex64] = np.dtype("complex64")
complex128: np.dtype[np.complex128] = np.dtype("complex128")
float16: np.dtype[np.float16] = np.dtype("float16")
float32: np.dtype[np.float32] = np.dtype("float32")
float64: np.dtype[np.float64] = np.dtype("float64")
int8: np.dtype[np.int8] = np.dtype("int8")
int16: np.dtype[np.int16] = np.dtype("int16")
int32: np.dtype[np.int32] = np.dtype("int32")
int64: np.dtype[np.int64] = np.dtype("int64")
uint8: np.dtype[np.uint8] = np.dtype("uint8")
uint16: np.dtype[np.uint16] = np.dtype("uint16")
uint32: np.dtype[np.uint32] = np.dtype("uint32")
uint64: np.dtype[np.uint64] = np.dtype("uint64")

cdef dict KINDS = {
    "bool": (KIND_BOOL,),
    "signed integer": (KIND_INT,),
    "unsigned integer": (KIND_UINT,),
    "integral": (KIND_INT, KIND_UINT),
    "real floating": (KIND_FLOAT,),
    "complex floating": (KIND_COMPLEX,),
    "numeric": (KIND_INT, KIND_UINT, KIND_FLOAT, KIND_COMPLEX),
}


def astype(x: Array, dtype: AnyDType, /, *, copy: builtins.bool = True,
           device: DeviceLike = None) -> NDArray:
    """Return the elements of an array in another dtype.

    Parameters
    ----------
    x : NDArray
    dtype : dtype
        Dtype of the result; it may be real only if `x` is real.
    copy : bool
        Whether to copy even if `x` has the dtype already.
    device : Device or str, optional
        Default: that of `x`.

    Returns
    -------
    NDArray
        `x` itself if `copy` is False and `x` needs no change.

    Raises
    ------
    TypeError
        If `x` is complex and the dtype is real: imaginary parts would be lost.

    Notes
    -----
    Array API 2025.12, `astype`. The conversion of NaN, infinities and numbers out of
    range to an integer dtype depends on the machine, and gives no warning.

    Examples
    --------
    >>> import ndx
    >>> ndx.astype(ndx.asarray([1.7, -1.7]), ndx.int64)
    NDArray([ 1, -1])
    """
    cdef BaseArray array = argument(x, "astype")
    cdef int code = dtype_code(dtype)
    cdef bint moves = device is not None and \
        number_of(find_device(device)) != array.block.device
    if code != array.dtype or (copy and not moves):
        array = cast(array, code)
    return (<object>array).to_device(device) if moves else array


cdef int code_of(object x) except -1:
    """Return the code of the dtype of `x`: a dtype, the name of one, or an array."""
    array = as_operand(x)
    return dtype_code(x) if array is None else (<BaseArray>array).dtype


def can_cast(from_: Array | AnyDType, to: AnyDType, /) -> builtins.bool:
    """Return whether a dtype can be cast to another by the rules of promotion.

    Parameters
    ----------
    from_ : dtype or NDArray
    to : dtype

    Returns
    -------
    bool
        Whether the two promote to the dtype `to`.

    Notes
    -----
    Array API 2025.12, `can_cast`. Integers promote to float64, as in NumPy.

    Examples
    --------
    >>> import ndx
    >>> ndx.can_cast(ndx.int8, ndx.int16), ndx.can_cast(ndx.int16, ndx.int8)
    (True, False)
    """
    cdef int target = dtype_code(to)
    return promote_table[code_of(from_)][target] == target


def result_type(*arrays_and_dtypes: Array | AnyDType | Scalar) -> DType:
    """Return the dtype of an operation on arrays, dtypes and Python scalars.

    Parameters
    ----------
    *arrays_and_dtypes : NDArray, dtype, bool, int, float or complex
        At least one array or dtype.

    Returns
    -------
    dtype

    Raises
    ------
    ValueError
        If there is no array and no dtype.

    Notes
    -----
    Array API 2025.12, `result_type`. Kinds mix as in NumPy.

    Examples
    --------
    >>> import ndx
    >>> ndx.result_type(ndx.ones(2, dtype=ndx.float32), 1.5)
    dtype('float32')
    """
    cdef int code, other
    code = promote_all(
        [code_of(item) for item in arrays_and_dtypes if not is_scalar(item)])
    if code < 0:
        raise ValueError("result_type needs an array or a dtype among its arguments")
    for item in arrays_and_dtypes:
        if is_scalar(item):
            other = scalar_dtype(code, item)
            code = promote_table[code][other]
    return dtype_object(code)


cdef object own_dtype(object type, str function, tuple kinds):
    """Return the dtype of a dtype or an array; raise if it is not of given kinds."""
    cdef int code = code_of(type)
    if kind_of[code] not in kinds:
        raise TypeError(f"{function} has no limits for {dtype_object(code)}")
    return dtype_object(code)


def finfo(type: Array | AnyDType, /) -> FloatInfo:
    """Return the limits of a floating-point dtype.

    Parameters
    ----------
    type : dtype or NDArray
        Floating-point; for a complex dtype, the limits are those of its parts.

    Returns
    -------
    FloatInfo
        With `bits`, `eps`, `max`, `min`, `smallest_normal` and `dtype`.

    Raises
    ------
    TypeError
        If the dtype is not floating-point.

    Notes
    -----
    Array API 2025.12, `finfo`.

    Examples
    --------
    >>> import ndx
    >>> ndx.finfo(ndx.float32).eps
    1.1920928955078125e-07
    """
    from ndx._api.limits import FloatInfo

    info = np.finfo(own_dtype(type, "finfo", (KIND_FLOAT, KIND_COMPLEX)))
    return FloatInfo(info.bits, float(info.eps), float(info.max), float(info.min),
                     float(info.smallest_normal), np.dtype(info.dtype))


def iinfo(type: Array | AnyDType, /) -> IntegerInfo:
    """Return the limits of an integer dtype.

    Parameters
    ----------
    type : dtype or NDArray
        Of integers.

    Returns
    -------
    IntegerInfo
        With `bits`, `max`, `min` and `dtype`.

    Raises
    ------
    TypeError
        If the dtype is not one of integers.

    Notes
    -----
    Array API 2025.12, `iinfo`.

    Examples
    --------
    >>> import ndx
    >>> ndx.iinfo(ndx.int8).max
    127
    """
    from ndx._api.limits import IntegerInfo

    info = np.iinfo(own_dtype(type, "iinfo", (KIND_INT, KIND_UINT)))
    return IntegerInfo(info.bits, int(info.max), int(info.min), np.dtype(info.dtype))


def isdtype(dtype: AnyDType,
            kind: AnyDType | Kind | tuple[AnyDType | Kind, ...]) -> builtins.bool:
    """Return whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
    kind : dtype, str, or tuple of them
        A dtype, or one of ``'bool'``, ``'signed integer'``, ``'unsigned integer'``,
        ``'integral'``, ``'real floating'``, ``'complex floating'``, ``'numeric'``. A
        tuple stands for any of its items.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If there is no such kind.
    TypeError
        If a kind is no dtype, or a tuple is in a tuple.

    Notes
    -----
    Array API 2025.12, `isdtype`.

    Examples
    --------
    >>> import ndx
    >>> ndx.isdtype(ndx.int8, "integral")
    True
    """
    cdef int code = dtype_code(dtype)
    if isinstance(kind, tuple):
        for item in kind:
            if isinstance(item, tuple):
                raise TypeError("a tuple of kinds can't have tuples in it")
        return any([isdtype(dtype, item) for item in kind])
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(
                f"there is no kind of dtypes {kind!r}; valid are {', '.join(KINDS)}")
        return kind_of[code] in KINDS[kind]
    return code == dtype_code(kind)
