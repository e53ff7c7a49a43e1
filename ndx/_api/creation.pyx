"""Creation functions of the standard: new arrays, and arrays over others' memory."""

from cpython.buffer cimport PyObject_CheckBuffer

from operator import index

import numpy as np

from ndx._array.dispatch cimport compute_elsewhere, is_off_host
from ndx._array.interchange cimport from_dlpack_capsule
from ndx._array.storage cimport (
    BaseArray, check, from_numpy, is_array, new_empty, new_like, new_zeros, numpy_view,
)
from ndx._compute.elementwise cimport as_operand, cast, copy as copied, fill, is_scalar
from ndx._compute.numpy_calls cimport argument
from ndx._compute.numpy_results cimport call_numpy, own_result
from ndx._compute.orders cimport cast_ordered, check_order, lies_in
from ndx._lib.dtypes cimport FLOAT64, INT64, dtype_code, dtype_object, kind_of
from ndx._lib.dtypes cimport BOOL, COMPLEX128, KIND_COMPLEX, KIND_UINT
from ndx._lib.layout cimport MAXDIMS, parse_shape

from ndx._lib.device import as_device, find_device
from ndx._lib.errors import DeviceError

# DLPack's numbers of CUDA's memory: a GPU's, and what moves by itself.
cdef tuple DLPACK_CUDA = (2, 13)

__all__ = [
    "asarray", "empty", "empty_like", "from_dlpack", "full", "full_like", "ones",
    "ones_like", "zeros", "zeros_like",
]


def empty(shape, *, dtype=None, device=None):
    """Return a new array whose elements are not set.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    dtype : dtype, optional
        Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Raises
    ------
    ValueError
        If a length is negative, the array is beyond the address space, or there is
        no such device.
    OutOfMemoryError
        If the backend can't serve it.

    Notes
    -----
    Array API 2025.12, `empty`.

    Examples
    --------
    >>> import ndx
    >>> ndx.empty((2, 3)).shape
    (2, 3)
    """
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int ndim = parse_shape(shape, lengths)
    if device is not None:
        as_device(device)
    return new_empty(FLOAT64 if dtype is None else dtype_code(dtype), ndim, lengths)


def zeros(shape, *, dtype=None, device=None):
    """Return a new array of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    dtype : dtype, optional
        Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `zeros`. Raises as `empty` does.

    Examples
    --------
    >>> import ndx
    >>> ndx.zeros(3)
    NDArray([0., 0., 0.])
    """
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int ndim = parse_shape(shape, lengths)
    if device is not None:
        as_device(device)
    return new_zeros(FLOAT64 if dtype is None else dtype_code(dtype), ndim, lengths)


def ones(shape, *, dtype=None, device=None):
    """Return a new array of ones.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    dtype : dtype, optional
        Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `ones`. Raises as `empty` does.

    Examples
    --------
    >>> import ndx
    >>> ndx.ones((2, 2))
    NDArray([[1., 1.],
             [1., 1.]])
    """
    return full(shape, 1, dtype=np.float64 if dtype is None else dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None):
    """Return a new array filled with one value.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    fill_value : bool, int, float or complex
        The value of every element.
    dtype : dtype, optional
        Default: the default dtype of the value's kind.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Raises
    ------
    TypeError
        If the value is of a kind that the dtype has not: 1.5 for integers.
    OverflowError
        If an integer does not fit the dtype.

    Notes
    -----
    Array API 2025.12, `full`. Raises as `empty` does, too.

    Examples
    --------
    >>> import ndx
    >>> ndx.full(3, 7)
    NDArray([7, 7, 7])
    """
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int ndim = parse_shape(shape, lengths), code
    cdef BaseArray x, value
    as_device(device)
    if not is_scalar(fill_value):
        value = as_operand(fill_value)
        if value is None or value.ndim:
            raise TypeError(
                f"fill_value must be a scalar, not {type(fill_value).__name__}")
        if dtype is None:
            dtype = dtype_object(value.dtype)
        fill_value = (<object>value).item()
    code = scalar_default(fill_value) if dtype is None else dtype_code(dtype)
    x = new_empty(code, ndim, lengths)
    fill_checked(x, fill_value)
    return x


cdef int fill_checked(BaseArray x, object value) except -1:
    """Fill, with the TypeErrors of a value that has no meaning in the dtype."""
    if BOOL < x.dtype and (
            kind_of[x.dtype] < KIND_COMPLEX and isinstance(value, complex)
            or kind_of[x.dtype] <= KIND_UINT and isinstance(value, float)):
        raise TypeError(
            f"a Python {type(value).__name__} has no place in an array of dtype "
            f"{dtype_object(x.dtype)}")
    return fill(x, value)


cdef int scalar_default(object value) noexcept:
    """Return the default dtype for a Python scalar's kind."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64
    return FLOAT64 if isinstance(value, float) else COMPLEX128


def empty_like(x, /, *, dtype=None, device=None):
    """Return a new array of the shape of `x` whose elements are not set.

    Parameters
    ----------
    x : NDArray
        Gives the shape, the layout in memory and, by default, the dtype.
    dtype : dtype, optional
        Default: that of `x`.
    device : Device or str, optional
        Default: that of `x`.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `empty_like`.

    Examples
    --------
    >>> import ndx
    >>> ndx.empty_like(ndx.zeros((2, 3))).shape
    (2, 3)
    """
    cdef BaseArray like = argument(x, "empty_like")
    as_device(device)
    return new_like(like, like.dtype if dtype is None else dtype_code(dtype), False,
                    None)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """Return a new array of the shape of `x`, filled with one value.

    Parameters
    ----------
    x : NDArray
        Gives the shape, the layout in memory and, by default, the dtype.
    fill_value : bool, int, float or complex
        The value of every element.
    dtype : dtype, optional
        Default: that of `x`.
    device : Device or str, optional
        Default: that of `x`.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `full_like`.

    Examples
    --------
    >>> import ndx
    >>> ndx.full_like(ndx.zeros(2), 3)
    NDArray([3., 3.])
    """
    result = empty_like(x, dtype=dtype, device=device)
    fill_checked(result, fill_value)
    return result


def zeros_like(x, /, *, dtype=None, device=None):
    """Return a new array of zeros of the shape of `x`.

    Parameters
    ----------
    x : NDArray
        Gives the shape, the layout in memory and, by default, the dtype.
    dtype : dtype, optional
        Default: that of `x`.
    device : Device or str, optional
        Default: that of `x`.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `zeros_like`.

    Examples
    --------
    >>> import ndx
    >>> ndx.zeros_like(ndx.ones(2))
    NDArray([0., 0.])
    """
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """Return a new array of ones of the shape of `x`.

    Parameters
    ----------
    x : NDArray
        Gives the shape, the layout in memory and, by default, the dtype.
    dtype : dtype, optional
        Default: that of `x`.
    device : Device or str, optional
        Default: that of `x`.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `ones_like`.

    Examples
    --------
    >>> import ndx
    >>> ndx.ones_like(ndx.zeros(2))
    NDArray([1., 1.])
    """
    return full_like(x, 1, dtype=dtype, device=device)


def asarray(obj, /, *, dtype=None, device=None, copy=None, order=None):
    """Return an array of what is given, over its memory where that is possible.

    Parameters
    ----------
    obj : array, scalar, nested sequence, or object with the buffer protocol
        A NumPy array, an object with ``__dlpack__``, a bytearray, a memoryview, ...
    dtype : dtype, optional
        Default: that of `obj`; of Python scalars the default of their kind. Floats
        become integers only if this says so: they are cut towards 0, as by `astype`.
    device : Device or str, optional
        Default: ``"cpu"``.
    copy : bool, optional
        True: always a copy, in our memory. None: shares the memory of `obj` (and
        keeps it alive) if dtype and layout allow, else copies. False: shares, or
        raises.
    order : {None, "C", "F"}, optional
        How the elements lie in memory: one after the other, the last axis fastest
        ("C") or the first ("F"). What lies otherwise is copied. None: as they do.

    Returns
    -------
    NDArray
        `obj` itself if it is an NDArray and nothing is to be changed.

    Raises
    ------
    ValueError
        If `copy` is False and a copy is needed: another dtype or byte order,
        elements that are not aligned or in another order, or no array.
    TypeError
        If `obj` or its dtype can't be an array of the standard's dtypes.

    Notes
    -----
    Array API 2025.12, `asarray`. Memory that is shared is foreign: it is not
    counted, belongs to no workspace, and is read-only where it was. `order` is
    beyond the standard; it is NumPy's.

    Examples
    --------
    >>> import ndx
    >>> ndx.asarray([[1, 2], [3, 4]])
    NDArray([[1, 2],
             [3, 4]])
    >>> import numpy as np
    >>> a = np.zeros(2)
    >>> x = ndx.asarray(a)
    >>> x[0] = 5.0
    >>> a
    array([5., 0.])
    """
    cdef BaseArray x
    cdef int code = -1 if dtype is None else dtype_code(dtype)
    as_device(device)
    if order is not None:
        check_order(order)
    x = shared_array(obj)
    if is_off_host(x):
        return compute_elsewhere(
            "asarray", (x,), {"dtype": dtype, "copy": copy, "order": order})
    if x is None:
        x = converted(obj, code, copy)
        return x if lies_in(x, order) else cast_ordered(x, x.dtype, order)
    check(x)
    if code >= 0 and code != x.dtype:
        if copy is False:
            raise copy_error(
                f"its dtype is {dtype_object(x.dtype)}, not {dtype_object(code)}")
    elif not lies_in(x, order):
        if copy is False:
            raise copy_error(f"its elements don't lie in order {order!r}")
        code = x.dtype
    elif copy:
        code = x.dtype
    else:
        return x
    return cast(x, code) if order is None else cast_ordered(x, code, order)


cdef object copy_error(str reason):
    return ValueError(
        f"copy=False, but {reason}; copy=None copies where it must")


cdef BaseArray shared_array(object obj):
    """Return an array over the memory of `obj`; None if it has none for us."""
    if is_array(obj):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if isinstance(obj, (np.generic, str, bytes)):
        return None
    if is_gpu_array(obj):
        return compute_elsewhere("from_gpu", (obj,), {})
    if hasattr(obj, "__dlpack__"):
        return imported(obj, None)
    if hasattr(obj, "__array_interface__") or hasattr(obj, "__array__"):
        return from_numpy(np.asarray(obj))
    if PyObject_CheckBuffer(obj):
        return from_numpy(np.asarray(memoryview(obj)))
    return None


cdef bint is_gpu_array(object obj) except -1:
    """Whether another library's array is in the memory of a GPU."""
    if hasattr(obj, "__cuda_array_interface__"):
        return True
    if not hasattr(obj, "__dlpack_device__"):
        return False
    where = obj.__dlpack_device__()
    return isinstance(where, tuple) and len(where) == 2 and where[0] in DLPACK_CUDA


cdef BaseArray converted(object obj, int code, object copy):
    """Return an array made of scalars, sequences, or memory not fit to be shared."""
    cdef BaseArray x
    if copy is False:
        raise copy_error(
            f"{type(obj).__name__} has no memory that an array could share"
            if not isinstance(obj, np.ndarray) else
            f"the memory can't be shared (dtype {obj.dtype}, native order and "
            "alignment are needed)")
    if is_scalar(obj):
        if isinstance(obj, float) and code >= 0 and code != BOOL \
                and kind_of[code] <= KIND_UINT:
            # As in a sequence: towards 0, and no NaN or infinity.
            obj = int(obj)
        x = new_empty(scalar_default(obj) if code < 0 else code, 0, NULL)
        fill_checked(x, obj)
        return x
    source = unwrapped(obj)
    try:
        found = np.asarray(source)
    except ValueError as error:
        raise ValueError(f"{type(obj).__name__} can't be made an array: {error}"
                         ) from None
    if found.size == 0 and isinstance(obj, (list, tuple)):
        # No element says a dtype: the default one.
        found = found.astype(np.float64)
    if found.dtype.kind not in "biufc":
        raise_not_numeric(obj, found)
    if code < 0:
        code = dtype_code(found.dtype.newbyteorder("="))
    elif found.dtype.kind == "c" and kind_of[code] < KIND_COMPLEX and code != BOOL:
        raise TypeError(
            f"complex values can't be cast to {dtype_object(code)}: the imaginary "
            "parts would be lost")
    elif isinstance(obj, (list, tuple)):
        # From the Python numbers themselves: those that don't fit raise.
        found = source
    return own_result(call_numpy(
        np.array, (found,), {"dtype": dtype_object(code), "copy": True, "order": "K"}))


cdef int raise_not_numeric(object obj, object found) except -1:
    if found.dtype.kind == "O" and any([
            isinstance(item, int) and not -2**63 <= item < 2**64
            for item in found.flat]):
        raise OverflowError(
            "a Python integer does not fit int64 or uint64 (-2**63 to 2**64 - 1)")
    raise TypeError(
        f"{type(obj).__name__} holds values of dtype {found.dtype}, which is not a "
        "dtype of the array API")


cdef object unwrapped(object obj, int depth=0):
    """Return nested sequences with our arrays in them as NumPy's."""
    if isinstance(obj, (list, tuple)):
        # Also what ends a list that holds itself.
        if depth > MAXDIMS:
            raise ValueError(f"sequences are nested more than {MAXDIMS} deep")
        return [unwrapped(item, depth + 1) for item in obj]
    return numpy_view(<BaseArray>obj) if is_array(obj) else obj


cdef BaseArray imported(object x, object copy):
    """Return an array over what another library exports by DLPack."""
    try:
        capsule = x.__dlpack__(max_version=(1, 0), copy=copy)
    except TypeError:
        # An exporter from before DLPack 1.0.
        if copy:
            raise
        capsule = x.__dlpack__()
    return from_dlpack_capsule(capsule)


def from_dlpack(x, /, *, device=None, copy=None):
    """Return an array over the memory of another library's array.

    Parameters
    ----------
    x : object
        With ``__dlpack__`` and ``__dlpack_device__``.
    device : Device or str, optional
        Where the array is to lie. Default: where `x` lies.
    copy : bool, optional
        True: a copy. False: never one. None: only if it is needed.

    Returns
    -------
    NDArray
        It keeps the memory of `x` alive.

    Raises
    ------
    BufferError
        If the memory can't be taken: another device, dtype or DLPack version.
    AttributeError
        If `x` does not speak DLPack.

    Notes
    -----
    Array API 2025.12, `from_dlpack`.

    Examples
    --------
    >>> import ndx
    >>> import numpy as np
    >>> ndx.from_dlpack(np.arange(3))
    NDArray([0, 1, 2])
    """
    wanted = None if device is None else find_device(device)
    found = x.__dlpack_device__()
    try:
        where = tuple([index(item) for item in found])
    except TypeError:
        where = ()
    if len(where) != 2:
        raise BufferError(
            f"__dlpack_device__() of {type(x).__name__} returned {found!r}; it must be "
            "two ints, the type of the device and its number")
    if where[0] in DLPACK_CUDA:
        try:
            result = compute_elsewhere("from_gpu", (x,), {})
        except DeviceError as error:
            raise BufferError(str(error)) from None
    elif where == (1, 0):
        result = imported(x, None)
    else:
        raise BufferError(
            f"the array is on DLPack device {where}; only the CPU, (1, 0), and GPUs, "
            "(2, n), can be taken")
    if wanted is not None and wanted != result.device:
        if copy is False:
            raise BufferError(
                f"copy=False, but the array is on {str(result.device)!r}, and is "
                f"wanted on {str(wanted)!r}")
        return result.to_device(wanted)
    return copied(result) if copy else result
