"""Values that are stored in elements: the one way from a value to an element.

A single value (a Python number, a scalar of NumPy's, an array without axes) must fit
the dtype, as NumPy's scalars must in ``x[k] = value``: what is NaN, infinite or out of
range for integers is refused, and so are imaginary parts. Arrays with axes are cast and
broadcast as NumPy does it.
"""

import numpy as np

from ndx._array.pinning cimport Operands, begin_all, end_all, put
from ndx._array.storage cimport (
    BaseArray, is_array, new_number, numpy_view, require_usable,
)
from ndx._compute.copies cimport can_store, copy_into, fill_with
from ndx._compute.elementwise cimport as_operand, computes_itself, is_scalar
from ndx._lib.dtypes cimport (
    BOOL, FLOAT64, INT64, KIND_BOOL, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_UINT,
    code_or_none, dtype_object, is_numpy_scalar, is_refused_array, kind_of, promote_all,
    promote_table, store_scalar,
)
from ndx._lib.layout cimport MAXDIMS, shape_tuple
from ndx._methods.display cimport read_scalar


cdef object MOST_INT = 2**53


cdef object refused_value(str what, int dtype):
    return TypeError(
        f"{what} can't be stored in an array of dtype {dtype_object(dtype)}: the "
        "imaginary part would be lost; take ndx.real(x) or ndx.abs(x)")


cdef object converted(object scalar, int dtype):
    """Return a Python scalar of the kind of a dtype: floats are cut to integers."""
    if isinstance(scalar, complex):
        raise refused_value("a Python complex", dtype)
    if kind_of[dtype] == KIND_BOOL:
        return bool(scalar)
    try:
        return int(scalar)
    except (ValueError, OverflowError) as error:
        # NaN and infinity.
        raise type(error)(
            f"{scalar!r} can't be stored in an array of dtype {dtype_object(dtype)}; "
            "replace it first, as by ndx.nan_to_num, or take a dtype of floats"
        ) from None


cdef bint is_integer(int dtype) noexcept:
    """Whether a dtype, which may be -1, is one of integers."""
    return dtype >= 0 and (kind_of[dtype] == KIND_INT or kind_of[dtype] == KIND_UINT)


cdef bint fits_weakly(object x, int dtype) noexcept:
    """Whether a number of Python's takes the dtype of an array beside it."""
    kind = type(x)
    if kind is float:
        return kind_of[dtype] >= KIND_FLOAT
    if kind is bool:
        return dtype == BOOL
    if kind is not int:
        return False
    if dtype == INT64 or dtype == FLOAT64:
        return -MOST_INT < x < MOST_INT
    return dtype != BOOL and 0 <= x < 128


cdef BaseArray number_with(object scalar, int dtype):
    """Return a new number that holds a Python number."""
    cdef BaseArray number = new_number(dtype)
    cdef Operands operands
    operands.count = 0
    put(&operands, number)
    begin_all(&operands)
    try:
        store_constant(scalar, dtype, operands.data[0])
    finally:
        end_all(&operands)
    return number


cdef bint may_not_fit(int dtype, int into) noexcept:
    """Whether `dtype` has values that another dtype, one of integers, lacks."""
    return is_integer(into) and promote_table[dtype][into] != into


cdef object numpy_scalar(BaseArray x):
    """Return the element of an array without axes as NumPy's scalar."""
    return dtype_object(x.dtype).type(read_scalar(x))


cdef object number_of(object value):
    """Return a single value as a Python scalar; None for an object that is none."""
    if is_scalar(value):
        return value
    if is_array(value):
        if (<BaseArray>value).ndim or (<BaseArray>value).block.device:
            return None
        return read_scalar(<BaseArray>value)
    if is_numpy_scalar(value) or type(value) is np.ndarray and value.ndim == 0:
        if code_or_none(value.dtype) >= 0:
            return value.item()
    return None


cdef object with_scalars(object x, bint as_numbers=False, tuple around=()):
    """Return nested sequences with scalars in place of arrays without axes.

    NumPy refuses a scalar in a list that does not fit, and casts an array. The scalars
    are NumPy's. If `as_numbers`, they are Python's, as are those of NumPy's that are
    in the sequence: NumPy stores its own NaN as an element of uint64. `around` has the
    sequences that this one is in: what contains itself is left to NumPy, which refuses.
    """
    cdef list items = None, given
    cdef Py_ssize_t i
    if is_array(x):
        if (<BaseArray>x).ndim or (<BaseArray>x).block.device:
            return x
        return read_scalar(<BaseArray>x) if as_numbers else numpy_scalar(<BaseArray>x)
    if len(around) <= MAXDIMS and (type(x) is list or type(x) is tuple):
        for outer in around:
            if outer is x:
                return x
        around = (*around, x)
        given = x if type(x) is list else list(x)
        for i, item in enumerate(given):
            kind = type(item)
            if kind is float or kind is int:
                continue
            scalar = with_scalars(item, as_numbers, around)
            if scalar is not item:
                if items is None:
                    items = list(given)
                items[i] = scalar
        return x if items is None else items
    if as_numbers and isinstance(x, np.number) and not isinstance(x, np.timedelta64):
        return int(x) if isinstance(x, np.longdouble) else x.item()
    return x


cdef object made_by(object x):
    """Return the NDArray that an object's `__array__` returns; None if it does not."""
    if not hasattr(type(x), "__array__"):
        return None
    made = x.__array__()
    return made if is_array(made) else None


cdef object numpy_array(object x):
    """Return `numpy.asarray(x)`, also of an object whose `__array__` returns ours."""
    try:
        return np.asarray(x)
    except ValueError as raised:
        made = made_by(x) if is_refused_array(raised) else None
        if made is None:
            raise
        return numpy_view(<BaseArray>made)


cdef object stored_by_numpy(object value, int dtype):
    """Return the element that NumPy stores for one of its own values, as an array."""
    single = np.empty((), dtype_object(dtype))
    if isinstance(value, np.floating) and is_integer(dtype):
        # NumPy stores its own NaN as an unsigned element.
        value = converted(value, dtype)
    if value is np.ma.masked and kind_of[dtype] == KIND_COMPLEX:
        # NaN, with a warning; NumPy stores 0.
        value = float(value)
    single[()] = value
    return single


cdef object array_for(BaseArray x, object value):
    """Return an object that is no array of ndx's dtypes as an array of NumPy's that is.

    Nested lists are cast to the dtype of `x`, as are strings of numbers, arrays of
    objects, and floats of NumPy's that ndx lacks. Objects that are numbers, and
    elements of other classes of arrays, such as masked ones, determine their values
    themselves. Dates and a single None stay as they are, and the caller refuses them;
    NumPy would store days and NaN.
    """
    if isinstance(value, np.ndarray) and computes_itself(value) and value.ndim == 0:
        return stored_by_numpy(value, x.dtype)
    found = numpy_array(value)
    kind = found.dtype.kind
    if kind == "O" and kind_of[x.dtype] != KIND_COMPLEX:
        for each in found.flat:
            if isinstance(each, (complex, np.complexfloating)):
                raise refused_value("a complex object", x.dtype)
    if value is None:
        raise TypeError(
            f"None is no number, and can't be stored in an array of dtype "
            f"{dtype_object(x.dtype)}; what is missing is NaN: float('nan')")
    if found.ndim == 0 and kind in "SUfO":
        return stored_by_numpy(found[()], x.dtype)
    if kind == "c" or kind == "M" or kind == "m":
        return found
    if type(value) is list or type(value) is tuple:
        if is_integer(x.dtype):
            return integers_of(value, x.dtype)
        if code_or_none(found.dtype) < 0:
            return np.asarray(with_scalars(value), dtype=dtype_object(x.dtype))
    if code_or_none(found.dtype) < 0 and (kind != "O" or found.ndim):
        return found.astype(dtype_object(x.dtype))
    return found


cdef object integers_of(object items, int dtype):
    """Return nested lists as an array of integers of NumPy, if all of them fit."""
    return np.asarray(with_scalars(items, True), dtype=dtype_object(dtype))


cdef BaseArray source_for(BaseArray x, object value, char *stored):
    """Return the value that is assigned to elements of `x`, as an array.

    Return None for a single value that `x` may lack: it is checked, and its bytes are
    at `stored`.
    """
    cdef BaseArray source = None
    if is_scalar(value):
        store_value(value, x.dtype, stored)
        return None
    if is_array(value):
        source = value
    elif not (isinstance(value, np.ndarray) and value.ndim == 0
              and computes_itself(value)):
        try:
            source = as_operand(value)
        except TypeError:
            # NumPy's, of a dtype that no NDArray has.
            source = None
    if source is None:
        source = as_operand(array_for(x, value))
    require_usable(source)
    if source.dtype != x.dtype and not can_store(source.dtype, x.dtype) \
            and kind_of[source.dtype] == KIND_COMPLEX:
        raise refused_value(f"values of dtype {dtype_object(source.dtype)}", x.dtype)
    if source.ndim == 0 and not source.block.device \
            and may_not_fit(source.dtype, x.dtype):
        store_value(read_scalar(source), x.dtype, stored)
        return None
    return source


cdef object numpy_source(BaseArray source, BaseArray x, char *stored):
    """Return the array that `source_for` found for `x` as an array of NumPy."""
    if source is not None:
        return numpy_view(source)
    single = np.empty((), dtype_object(x.dtype))
    fill_with(as_operand(single), stored)
    return single


cdef int copy_broadcast(BaseArray target, BaseArray source) except -1:
    """Copy with broadcasting; the shapes are checked here, for a message with both."""
    cdef int axis, shift = target.ndim - source.ndim
    cdef Py_ssize_t length
    for axis in range(source.ndim):
        length = source.shape[axis]
        # Leading axes of length 1 that the target lacks are dropped.
        if length != 1 and (axis + shift < 0 or length != target.shape[axis + shift]):
            raise ValueError(
                f"could not broadcast input array from shape "
                f"{shape_tuple(source.ndim, source.shape)} into shape "
                f"{shape_tuple(target.ndim, target.shape)}, that of the selection")
    copy_into(target, source)
    return 0


# ---------------------------------------------------------------- NumPy's functions

# The parameters of functions that take values to choose from, an iterator, or a list.
cdef tuple CHOICES = ("index", "choices")
cdef tuple ITEMS = ("iter", "dtype")
cdef tuple LIST = ("list", "dtype")

# NumPy's functions that store values -> the names of their first parameters, and which
# is the value. The first parameter is the array; of `full`, `dtype` says how to store.
cdef dict STORING = {
    np.array: (LIST, 0),
    np.asanyarray: (LIST, 0),
    np.asarray: (LIST, 0),
    np.ascontiguousarray: (LIST, 0),
    np.asfortranarray: (LIST, 0),
    np.choose: (CHOICES, 1),
    np.copyto: (("dst", "src", "casting"), 1),
    np.fill_diagonal: (("a", "val"), 1),
    np.full: (("shape", "fill_value", "dtype"), 1),
    np.full_like: (("a", "fill_value", "dtype"), 1),
    np.insert: (("arr", "obj", "values"), 2),
    np.pad: (("array", "pad_width", "mode", "constant_values"), 3),
    np.place: (("arr", "mask", "vals"), 2),
    np.put: (("a", "ind", "v"), 2),
    np.put_along_axis: (("arr", "indices", "values"), 2),
    np.putmask: (("a", "mask", "values"), 2),
    np.fromiter: (ITEMS, 0),
    np.ndarray.choose: (CHOICES, 1),
    np.ndarray.put: (("self", "indices", "values"), 2),
    np.select: (CHOICES, 1),
    np.where: (CHOICES, 1),
}


cdef object argument_of(tuple names, Py_ssize_t place, tuple args, dict kwargs):
    """Return a parameter's argument; None: it is not given."""
    return args[place] if place < len(args) else kwargs.get(names[place])


cdef int dtype_of(object x) noexcept:
    """Return the code of the dtype of an array or a dtype; -1: it is no NDArray's."""
    if is_array(x):
        return (<BaseArray>x).dtype
    return code_or_none(x.dtype if isinstance(x, (np.ndarray, np.generic)) else x)


cdef int dtype_stored(tuple names, tuple args, dict kwargs) except -2:
    """Return the code of the dtype in which a function stores; -1: no NDArray's."""
    dtype = None
    if "dtype" in names:
        dtype = argument_of(names, names.index("dtype"), args, kwargs)
    if dtype is None:
        # Of `full`, the value itself has the dtype.
        return -1 if names[0] == "shape" else dtype_of(
            argument_of(names, 0, args, kwargs))
    try:
        return dtype_of(np.dtype(dtype))
    except TypeError:
        return -1


cdef object checked(object value, int dtype):
    """Return a value in the form in which NumPy stores it as it stores its scalars."""
    cdef char[16] stored
    if value is np.ma.masked or isinstance(value, np.longdouble):
        return stored_by_numpy(value, dtype)
    if type(value) is list or type(value) is tuple:
        return integers_of(value, dtype) if is_integer(dtype) else value
    number = number_of(value)
    if number is None:
        return value
    if dtype != BOOL:
        store_value(number, dtype, stored)
    if is_array(value):
        return numpy_scalar(<BaseArray>value)
    return value[()] if isinstance(value, np.ndarray) else value


cdef tuple checked_arguments(object function, tuple args, dict kwargs):
    """Return the arguments of a function of NumPy, of which a single value must fit."""
    cdef tuple names
    cdef Py_ssize_t place
    cdef int dtype
    row = STORING.get(function)
    if row is None:
        return args, kwargs
    names, place = row
    if names is CHOICES:
        check_choices(args[1:])
        return args, kwargs
    if names is ITEMS or names is LIST:
        if args and not is_array(args[0]) and not isinstance(args[0], np.ndarray):
            dtype = -1
            if argument_of(names, 1, args, kwargs) is not None:
                dtype = dtype_stored(names, args, kwargs)
            exactly = is_integer(dtype)
            if names is ITEMS:
                args = (scalars_in(args[0], exactly), *args[1:])
            elif exactly:
                args = (with_scalars(args[0], True), *args[1:])
        return args, kwargs
    dtype = dtype_stored(names, args, kwargs)
    value = argument_of(names, place, args, kwargs)
    if dtype < 0 or function is np.copyto and not isinstance(number_of(value), int) \
            and argument_of(names, 2, args, kwargs) != "unsafe":
        # NumPy refuses other casts by `copyto` itself.
        return args, kwargs
    taken = checked(value, dtype)
    if taken is value:
        return args, kwargs
    value = taken
    if place < len(args):
        args = (*args[:place], value, *args[place + 1:])
    elif names[place] in kwargs:
        kwargs = {**kwargs, names[place]: value}
    return args, kwargs


cdef bint stores_objects(object function, tuple args, dict kwargs) except -1:
    """Whether a list becomes an array of objects."""
    row = STORING.get(function)
    if row is None or row[0] is not LIST or not args \
            or not isinstance(args[0], (list, tuple)):
        return False
    dtype = argument_of(LIST, 1, args, kwargs)
    return dtype is object or isinstance(dtype, np.dtype) and dtype.type is np.object_ \
        or type(dtype) is str and dtype in ("O", "object")


def scalars_in(items, bint as_numbers):
    """Yield items, with scalars in place of arrays without axes."""
    for item in items:
        yield with_scalars(item, as_numbers)


cdef int check_choices(object choices) except -1:
    """Raise OverflowError for a Python integer that the dtype of the arrays lacks.

    The integer takes that dtype. NumPy's `where`, `select` and `choose` cut it.
    """
    cdef char[16] stored
    cdef list codes = [], numbers = []
    cdef bint some = False
    for each in choices:
        kind = type(each)
        some |= kind is int or kind is list or kind is tuple
    if not some:
        return 0
    for each in choices:
        items = each if type(each) is list or type(each) is tuple else (each,)
        for item in items:
            if type(item) is int:
                numbers.append(item)
            elif type(item) is not bool:
                codes.append(dtype_of(item))
    if not numbers or not codes or min(codes) < 0:
        return 0
    dtype = promote_all(codes)
    if is_integer(dtype):
        for number in numbers:
            store_scalar(number, dtype, stored)
    return 0


cdef int check_operand(object x, object value) except -1:
    """Raise for a number without a meaning in the dtype of `x`, as NaN for integers.

    Integers out of range are computed with as the dtype does: modulo 2**n.
    """
    cdef char[16] stored
    cdef int dtype = dtype_of(x)
    number = number_of(value)
    if dtype >= 0 and isinstance(number, (float, complex)):
        store_value(number, dtype, stored)
    return 0
