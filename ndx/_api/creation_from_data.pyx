"""Creation functions of the standard that copy data or share its memory."""

from cpython.buffer cimport PyObject_CheckBuffer

from operator import index

import numpy as np

from ndx._api.creation cimport fill_checked, scalar_default
from ndx._array.dispatch cimport answer, engine_of, is_on_device
from ndx._array.interchange cimport imported, unknown_device
from ndx._array.storage cimport (
    BaseArray, from_numpy, holds_number, is_array, new_empty, numpy_view,
    require_usable,
)
from ndx._compute.copies cimport (
    cast, cast_ordered, check_order, copy as copied, lies_in,
)
from ndx._compute.elementwise cimport is_scalar
from ndx._compute.numpy_results cimport call_numpy, own_result
from ndx._compute.sequences cimport from_sequence, is_plain
from ndx._context.context cimport device_of_new
from ndx._lib.dtypes cimport (
    BOOL, KIND_COMPLEX, KIND_FLOAT, KIND_UINT, dtype_code, dtype_object,
    is_numpy_scalar, kind_of,
)
from ndx._lib.layout cimport MAXDIMS
from ndx._methods.values cimport integers_of, is_integer, numpy_scalar

from ndx._api.manipulation import stack
from ndx._lib.device import KINDS, device_of, find_device, kind_of_dlpack
from ndx._lib.errors import DeviceError


__all__ = ["asarray", "from_dlpack"]


def asarray(obj: Any, /, *, dtype: DTypeLike = None, device: DeviceLike = None,
            copy: bool | None = None,
            order: Literal["C", "F"] | None = None) -> NDArray:
    """Return an array of the given data, sharing its memory if possible.

    Parameters
    ----------
    obj : array, scalar, nested sequence, or object with the buffer protocol
        A NumPy array, an object with ``__dlpack__``, a bytearray, a memoryview, ...
    dtype : dtype, optional
        Default: that of `obj`; for Python scalars the default of their kind. Floats
        become integers only on request, truncated towards 0 as by `astype`.
    device : Device or str, optional
        Default: ``"cpu"``.
    copy : bool, optional
        True: always copy to memory of ndx. None: share the memory of `obj` (and keep
        it alive) if dtype and layout allow, else copy. False: share, or raise.
    order : {None, "C", "F"}, optional
        Order of the elements in memory, contiguous, with the last axis ("C") or the
        first ("F") fastest. Data in another order is copied. None: any order.

    Returns
    -------
    NDArray
        `obj` itself if it is an NDArray and needs no change.

    Raises
    ------
    ValueError
        If `copy` is False and a copy is needed, because of the dtype, the byte order,
        the alignment or the order of elements, or because `obj` is no array.
    TypeError
        If `obj` or its dtype can't be an array of the standard's dtypes.

    Notes
    -----
    Array API 2025.12, `asarray`. Shared memory is foreign: it is not counted, belongs
    to no workspace, and stays read-only if it was. `order` is an extension of the
    standard, as in NumPy.

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
    cdef int code = -1 if dtype is None else dtype_code(dtype), where
    if order is not None:
        check_order(order)
    x = shared_array(obj)
    if x is None:
        x = converted(obj, code, copy)
        copy = None              # `converted` has made a copy
    require_usable(x)
    if device is None and (x.block.device or is_array(obj)):
        where = x.block.device   # an array stays where it is
    else:
        where = device_of_new(device)
    if code < 0:
        code = x.dtype
    if where != x.block.device:
        return moved(x, where, code, copy, order)
    if code != x.dtype:
        if copy is False:
            raise copy_error(
                f"its dtype is {dtype_object(x.dtype)}, not {dtype_object(code)}")
    elif not lies_in(x, order):
        if copy is False:
            raise copy_error(f"its elements don't lie in order {order!r}")
    elif copy is False or not copy and not holds_number(x):
        return x                     # of a number, a copy that can be written to
    return cast(x, code) if order is None else cast_ordered(x, code, order)


cdef BaseArray moved(BaseArray x, int where, int code, object copy, object order):
    """Return a copy of an array on another device, in a dtype and an order."""
    if copy is False:
        raise copy_error(
            f"the array is on {str(device_of(x.block.device))!r}, and is wanted on "
            f"{str(device_of(where))!r}")
    if code != x.dtype:
        x = cast(x, code)
    if x.block.device:
        x = (<object>x).to_device(device_of(where))
    else:
        engine = engine_of(where)
        x = answer(engine, "upload", engine.upload(x, device_of(where)))
    return x if lies_in(x, order) else cast_ordered(x, code, order)


cdef object copy_error(str reason):
    return ValueError(
        f"copy=False, but {reason}; copy=None copies where it must")


cdef BaseArray shared_array(object obj):
    """Return an array over the memory of `obj`; None if it has none to share."""
    if is_array(obj):
        return obj
    if is_plain(obj):
        return None
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if isinstance(obj, (str, bytes)) or is_numpy_scalar(obj):
        return None
    return shared_foreign(obj)


cdef BaseArray shared_foreign(object obj):
    """Like `shared_array`, for arrays of libraries other than NumPy."""
    kind = device_kind_of(obj)
    if kind is not None:
        return engine_of(kind.first).from_other(obj)
    if hasattr(obj, "__dlpack__"):
        return imported(obj)
    if hasattr(obj, "__array_interface__") or hasattr(obj, "__array__"):
        return from_numpy(np.asarray(obj))
    if PyObject_CheckBuffer(obj):
        return from_numpy(np.asarray(memoryview(obj)))
    return None


cdef object device_kind_of(object obj):
    """Return the kind of devices that another library's array is on; None: the CPU."""
    for kind in KINDS:
        interface = kind.interface
        if interface is not None and hasattr(obj, interface):
            return kind
    if not hasattr(obj, "__dlpack_device__"):
        return None
    where = obj.__dlpack_device__()
    return kind_of_dlpack(where[0]) if isinstance(where, tuple) and len(where) == 2 \
        else None


cdef BaseArray converted(object obj, int code, object copy):
    """Return a new array of scalars, sequences, or memory that can't be shared."""
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
            # As for sequences: truncate towards 0, and raise for NaN and infinity.
            obj = int(obj)
        x = new_empty(scalar_default(obj) if code < 0 else code, 0, NULL)
        fill_checked(x, obj)
        return x
    x = from_sequence(obj, code)
    if x is not None:
        return x
    try:
        source = unwrapped(obj)
    except OnDevice as error:
        x = stacked(obj, error.args[0])
        return x if code < 0 or code == x.dtype else cast(x, code)
    try:
        found = np.asarray(source)
    except ValueError as error:
        raise ValueError(f"{type(obj).__name__} can't be made an array: {error}"
                         ) from None
    if found.size == 0 and isinstance(obj, (list, tuple)):
        # Without an element the dtype is the default one.
        found = found.astype(np.float64)
    if found.dtype.kind not in "biufc":
        if not takes_any_int(code) or not holds_numbers(found):
            raise_not_numeric(obj, found)
        # Integers beyond 64 bits are bools and floats as others are.
        found = source
    elif code < 0:
        code = dtype_code(found.dtype.newbyteorder("="))
    elif found.dtype.kind == "c" and kind_of[code] < KIND_COMPLEX and code != BOOL:
        raise TypeError(
            f"complex values can't be cast to {dtype_object(code)}: the imaginary "
            "parts would be lost")
    elif isinstance(obj, (list, tuple)):
        # NumPy raises for scalars that don't fit, but wraps those of an array.
        found = integers_of(source, code) if is_integer(code) else source
    return own_result(call_numpy(
        np.array, (found,), {"dtype": dtype_object(code), "copy": True, "order": "K"}))


cdef bint takes_any_int(int code) noexcept:
    """Whether a dtype is one into which integers of any size can be converted."""
    return code == BOOL or code >= 0 and kind_of[code] >= KIND_FLOAT


cdef bint holds_numbers(object found) except -1:
    """Whether an array of objects holds only numbers of Python and NumPy."""
    return found.dtype.kind == "O" and all([
        isinstance(item, (int, float, complex)) or isinstance(item, np.number)
        or isinstance(item, np.bool_)
        for item in found.flat])


cdef int raise_not_numeric(object obj, object found) except -1:
    if holds_numbers(found) and any([
            isinstance(item, int) and not -2**63 <= item < 2**64
            for item in found.flat]):
        raise OverflowError(
            "a Python integer does not fit int64 or uint64 (-2**63 to 2**64 - 1)")
    raise TypeError(
        f"{type(obj).__name__} holds values of dtype {found.dtype}, which is not a "
        "dtype of the array API")


class OnDevice(Exception):
    """Raised if a sequence contains an array of a device, with the device's number."""


cdef BaseArray stacked(object obj, int device):
    """Return nested sequences with arrays of a device as one array on that device."""
    if isinstance(obj, (list, tuple)) and len(obj):
        return stack([stacked(item, device) for item in obj])
    if is_on_device(obj):
        return obj
    engine = engine_of(device)
    return answer(engine, "upload", engine.upload(np.asarray(obj), device_of(device)))


cdef object unwrapped(object obj, int depth=0):
    """Return nested sequences with NumPy views, and scalars, in place of NDArrays.

    Raises
    ------
    OnDevice
        If one is on a device. Checking beforehand would walk the sequences twice.
    """
    if isinstance(obj, (list, tuple)):
        # This also ends the recursion for a list that contains itself.
        if depth > MAXDIMS:
            raise ValueError(f"sequences are nested more than {MAXDIMS} deep")
        return [unwrapped(item, depth + 1) for item in obj]
    if is_on_device(obj):
        raise OnDevice((<BaseArray>obj).block.device)
    if not is_array(obj):
        return obj
    # A scalar that does not fit the dtype is refused, where an array is cast.
    if depth and (<BaseArray>obj).ndim == 0:
        return numpy_scalar(<BaseArray>obj)
    return numpy_view(<BaseArray>obj)


def from_dlpack(x: Any, /, *, device: DeviceLike = None,
                copy: bool | None = None) -> NDArray:
    """Return an array over the memory of another library's array.

    Parameters
    ----------
    x : object
        Has ``__dlpack__`` and ``__dlpack_device__``.
    device : Device or str, optional
        Device of the result. Default: that of `x`.
    copy : bool, optional
        True: copy. False: never copy. None: copy only if needed.

    Returns
    -------
    NDArray
        It keeps the memory of `x` alive.

    Raises
    ------
    BufferError
        If the device, dtype or DLPack version is not supported.
    AttributeError
        If `x` does not support DLPack.

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
    if not hasattr(x, "__dlpack_device__"):
        raise AttributeError(
            f"{type(x).__name__} does not support DLPack (it has no "
            "__dlpack_device__); use ndx.asarray", name="__dlpack_device__", obj=x)
    found = x.__dlpack_device__()
    try:
        where = tuple([index(item) for item in found])
    except TypeError:
        where = ()
    if len(where) != 2:
        raise BufferError(
            f"__dlpack_device__() of {type(x).__name__} returned {found!r}; it must be "
            "two ints, the type of the device and its number")
    if where == (1, 0):
        result = imported(x)
    else:
        kind = kind_of_dlpack(where[0])
        if kind is None:
            raise unknown_device(where[0], where[1])
        try:
            result = engine_of(kind.first).from_other(x)
        except DeviceError as error:
            raise BufferError(str(error)) from None
    if wanted is not None and wanted != result.device:
        if copy is False:
            raise BufferError(
                f"copy=False, but the array is on {str(result.device)!r}, and is "
                f"wanted on {str(wanted)!r}")
        return result.to_device(wanted)
    return copied(result) if copy else result
