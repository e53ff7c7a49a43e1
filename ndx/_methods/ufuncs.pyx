"""NumPy's ufuncs on NDArrays: the implementation of ``NDArray.__array_ufunc__``.

References
----------
NEP 13, a mechanism for overriding ufuncs: https://numpy.org/neps/nep-0013
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from ndx._array.pinning cimport Operands, begin_all, end_all, put, put_constant
from ndx._array.storage cimport BaseArray, is_array, new_empty, require_writeable
from ndx._compute.aliasing cimport touches
from ndx._compute.copies cimport store_constant
from ndx._compute.costs cimport LARGE
from ndx._compute.elementwise cimport (
    binary, is_subclass, operand_of, overrides_ufuncs, pair, unary,
)
from ndx._compute.loops cimport Loop, Ufunc, any_loop, find_numpy_ufunc, find_ufunc
from ndx._compute.matmul cimport matmul, outer, vecdot
from ndx._lib.dtypes cimport (
    FLOAT64, INT64, KIND_FLOAT, code_or_none, itemsize_of, kind_of, known_code,
)
from ndx._lib.free_threading cimport ndx_keep_for_ever
from ndx._lib.layout cimport MAXDIMS
from ndx._lib.numpy_private cimport may_report, reports
from ndx._methods.numpy_dispatch cimport call_function, compute_function
from ndx._methods.numpy_function_table cimport row_of
from ndx._methods.values cimport (
    MOST_INT, check_operand, fits_weakly, number_with,
)

# So many elements are computed one by one, where NumPy's crossing takes longer.
cdef enum:
    FEW = 1024


cdef Ufunc ADD = find_ufunc("add")


cdef class KnownUfunc:
    """An operation of ndx that is one of NumPy's ufuncs."""


cdef object compute_ufunc(object ufunc, str method, tuple inputs, dict kwargs):
    """Compute a ufunc, or one of its methods, on NDArrays."""
    cdef KnownUfunc known = known_ufunc(ufunc)
    cdef tuple out
    if not kwargs and method == "__call__" and override_nothing(inputs):
        result = compute_known(known, inputs)
        if result is not NotImplemented:
            return result
    out = outputs(kwargs.get("out"))
    if others_override(inputs) or (out is not None and others_override(out)):
        return NotImplemented
    if method == "outer" and not kwargs:
        result = compute_outer(known, inputs)
        if result is not NotImplemented:
            return result
    if method == "reduce" or method == "accumulate":
        result = NotImplemented
        if len(inputs) == 1 and (not kwargs or len(kwargs) == 1 and "axis" in kwargs):
            result = compute_over(ufunc, method, inputs[0], kwargs.get("axis", 0))
        if result is not NotImplemented:
            return result
    if method != "__call__":
        return compute_method(ufunc, method, inputs, out, kwargs)
    if kwargs.get("out") is ...:
        # New arrays, also without axes.
        return call_function(ufunc, inputs, kwargs)
    if len(inputs) != ufunc.nin or (out is not None and len(out) != ufunc.nout):
        # NumPy checks this before it calls an array, but other callers may not.
        raise TypeError(
            f"np.{ufunc.__name__} takes {ufunc.nin} inputs and, if any, {ufunc.nout} "
            f"outputs, not {len(inputs)} and {0 if out is None else len(out)}")
    if out is not None and all([target is None for target in out]):
        out = None
        del kwargs["out"]
    if known is not None and not (kwargs.keys() - {"out"}) and (
            out is None or is_array(out[0])):
        try:
            result = compute_with(known, inputs, None if out is None else out[0])
        except TypeError:
            # NumPy takes more dtypes, bools for example; or it says why not.
            result = NotImplemented
        except ValueError:
            if out is None or is_shape_of(inputs, out[0]):
                raise
            # NumPy repeats the result in a larger output; or it says why not.
            result = NotImplemented
        if result is not NotImplemented:
            return result
    return compute_method(ufunc, "__call__", inputs, out, kwargs)


cdef bint is_shape_of(tuple inputs, object out) except -1:
    """Whether an output has the shape of the result."""
    try:
        return np.broadcast_shapes(*[np.shape(x) for x in inputs]) == out.shape
    except ValueError:
        return False


cdef object compute_method(object ufunc, str method, tuple inputs, tuple out,
                           dict kwargs):
    """Compute a method of a ufunc by NumPy, on views of the arrays."""
    written = inputs[:1] if method == "at" else () if out is None else out
    for target in written:
        if is_array(target):
            require_writeable(<BaseArray>target)
    if method == "at" and len(inputs) > 2:
        check_operand(inputs[0], inputs[2])
        if not kwargs and compute_at(known_ufunc(ufunc), inputs):
            return None
    if method == "__call__" and "where" in kwargs and ufunc in COMPARED:
        ufunc, inputs = with_fitting_int(ufunc, inputs)
    function = ufunc if method == "__call__" else getattr(ufunc, method)
    return call_function(function, inputs, kwargs)


cdef bint is_binary(KnownUfunc known) noexcept:
    """Whether ndx computes a ufunc of two numbers, with one result."""
    return known is not None and known.ufunc.nin == 2 and known.ufunc.nout == 1 \
        and not known.is_matmul and not known.is_vecdot


cdef bint compute_at(KnownUfunc known, tuple inputs) except -1:
    """Compute `at` for a few indices of arrays with one axis; False: left to NumPy."""
    cdef BaseArray x, places, values = None
    cdef const Loop *loop
    cdef Operands operands
    cdef char *args[3]
    cdef char[16] number
    cdef Py_ssize_t[3] steps = [0, 0, 0]
    cdef Py_ssize_t i, one = 1, value_step = 0
    cdef bint adds
    cdef int64_t index
    if not is_binary(known) or len(inputs) != 3 \
            or not is_array(inputs[0]) or not is_array(inputs[1]) or may_report():
        return False
    x, places = inputs[0], inputs[1]
    if x.ndim != 1 or places.ndim != 1 or places.dtype != INT64 or x.block.device \
            or places.block.device or places.size > FEW or touches(places, x):
        return False
    loop = any_loop(known.ufunc, x.dtype)
    if loop.function == NULL or known.ufunc.may_set_error \
            or loop.in_dtype != x.dtype or loop.out_dtype != x.dtype:
        return False
    if is_array(inputs[2]):
        values = inputs[2]
        if values.dtype != x.dtype or values.ndim != 1 or values.block.device \
                or values.size != places.size or touches(values, x):
            return False
    elif fits_weakly(inputs[2], x.dtype):
        store_constant(inputs[2], x.dtype, number)
    else:
        return False
    operands.count = 0
    put(&operands, x)
    put(&operands, places)
    if values is None:
        put_constant(&operands, number)
    else:
        put(&operands, values)
        value_step = values.strides[0]
    adds = known.ufunc is ADD and x.dtype == FLOAT64
    begin_all(&operands)
    try:
        for i in range(places.size):
            index = (<int64_t *>(operands.data[1] + i * places.strides[0]))[0]
            if not -x.size <= index < x.size:
                return False
        for i in range(places.size):
            index = (<int64_t *>(operands.data[1] + i * places.strides[0]))[0]
            if index < 0:
                index += x.size
            if not 0 <= index < x.size:
                raise IndexError("the indices were changed while they were read")
            if adds:
                (<double *>(operands.data[0] + index * x.strides[0]))[0] += (
                    <double *>(operands.data[2] + i * value_step))[0]
                continue
            args[0] = args[2] = operands.data[0] + index * x.strides[0]
            args[1] = operands.data[2] + i * value_step
            loop.function(args, &one, steps, loop.data)
    finally:
        end_all(&operands)
    return True


# What NumPy's comparisons of an integer are with a Python int above those of its dtype.
cdef dict COMPARED = {
    np.less: True, np.less_equal: True, np.not_equal: True,
    np.greater: False, np.greater_equal: False, np.equal: False,
}


cdef tuple with_fitting_int(object ufunc, tuple inputs):
    """Return a comparison as one of the same result, without an int out of range.

    NumPy (2.4 and before) crashes on a Python int that does not fit the other operand's
    dtype, if there is a mask (``where=``).
    """
    cdef Py_ssize_t place
    if len(inputs) != 2:
        return ufunc, inputs
    for place in range(2):
        bound, other = inputs[place], inputs[1 - place]
        if not isinstance(bound, int) or isinstance(bound, np.generic) \
                or isinstance(other, (int, float, complex)) and not hasattr(
                    other, "dtype"):
            continue
        dtype = other.dtype if hasattr(other, "dtype") else np.asarray(other).dtype
        if dtype.kind not in "iu":
            continue
        info = np.iinfo(dtype)
        if info.min <= bound <= info.max:
            continue
        # An int below all others is one above, if the operands change sides.
        result = COMPARED[ufunc] if ufunc in (np.equal, np.not_equal) \
            else COMPARED[ufunc] == ((bound > 0) == (place == 1))
        return np.less_equal if result else np.greater, (other, info.max)
    return ufunc, inputs


cdef KnownUfunc known_ufunc(object ufunc):
    """Return the operation of ndx that computes a ufunc of NumPy, or None."""
    return row_of(ufunc).known


cdef object compute_known(KnownUfunc known, tuple inputs):
    """Compute a call without keywords; NotImplemented if no operand is an NDArray."""
    cdef Py_ssize_t count = len(inputs)
    if known is None or count != known.ufunc.nin or not (
            is_array(inputs[0]) or count == 2 and is_array(inputs[1])):
        return NotImplemented
    try:
        return compute_with(known, inputs, None)
    except TypeError:
        # NumPy takes more dtypes, bools for example; or it says why not.
        return NotImplemented


cdef object compute_outer(KnownUfunc known, tuple inputs):
    """Compute all pairs of elements; NotImplemented: left to NumPy."""
    cdef BaseArray x, y
    if not is_binary(known) or len(inputs) != 2 \
            or not all_ours(inputs) or known.narrow and any_narrow(inputs):
        return NotImplemented
    x, y = inputs
    if x.block.device or y.block.device or x.ndim + y.ndim > MAXDIMS:
        return NotImplemented
    try:
        return outer(known.ufunc, x, y)
    except TypeError:
        return NotImplemented


cdef object compute_number(KnownUfunc known, object x):
    """Return a unary function of a Python number in float64; None: left to NumPy."""
    cdef const Loop *loop
    cdef char *args[2]
    cdef Py_ssize_t[2] steps = [sizeof(double), sizeof(double)]
    cdef Py_ssize_t count = 1
    cdef double value, result = 0
    if known is None or known.ufunc.nin != 1 or known.ufunc.nout != 1 \
            or may_report() and reports():
        return None
    if type(x) is not float and not (type(x) is int and -MOST_INT < x < MOST_INT):
        return None
    loop = any_loop(known.ufunc, FLOAT64 if type(x) is float else INT64)
    if loop.function == NULL or loop.in_dtype != FLOAT64 or loop.out_dtype != FLOAT64:
        return None
    value = x
    args = [<char *>&value, <char *>&result]
    loop.function(args, &count, steps, loop.data)
    return number_with(result, FLOAT64)


# NumPy's methods of ufuncs that are functions of its own.
cdef dict REDUCTIONS = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
    np.logical_and: np.all, np.logical_or: np.any,
}
cdef dict ACCUMULATIONS = {np.add: np.cumsum, np.multiply: np.cumprod}
cdef dict NOTHING = {}


cdef object compute_over(object ufunc, str method, object x, object axis):
    """Reduce or accumulate along an axis; NotImplemented: left to NumPy."""
    cdef dict known = REDUCTIONS if method == "reduce" else ACCUMULATIONS
    if type(axis) is not int or not is_array(x) or (<BaseArray>x).ndim == 0 \
            or (<BaseArray>x).block.device:
        return NotImplemented
    function = known.get(ufunc)
    if function is not None:
        return compute_function(function, (x, axis), NOTHING)
    return NotImplemented if method == "reduce" else accumulated(
        known_ufunc(ufunc), <BaseArray>x, axis)


cdef object accumulated(KnownUfunc known, BaseArray x, Py_ssize_t axis):
    """Accumulate a few elements in one axis; NotImplemented: left to NumPy.

    As in NumPy, one call of the loop reads what it has just written.
    """
    cdef const Loop *loop
    cdef BaseArray result
    cdef Operands operands
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t count = x.size - 1
    if not is_binary(known) or known.ufunc.may_set_error \
            or not -1 <= axis <= 0 or x.ndim != 1 or not x.c_contiguous \
            or not 0 <= count < LARGE or may_report():
        return NotImplemented
    loop = any_loop(known.ufunc, x.dtype)
    if loop.function == NULL or loop.in_dtype != x.dtype or loop.out_dtype != x.dtype:
        return NotImplemented
    result = new_empty(x.dtype, 1, x.shape)
    operands.count = 0
    put(&operands, x)
    put(&operands, result)
    begin_all(&operands)
    try:
        if x.size != result.size:
            return NotImplemented
        steps[0] = steps[1] = steps[2] = itemsize_of[x.dtype]
        memcpy(operands.data[1], operands.data[0], steps[0])
        args[0] = operands.data[1]
        args[1], args[2] = operands.data[0] + steps[0], operands.data[1] + steps[0]
        if count:
            loop.function(args, &count, steps, loop.data)
    finally:
        end_all(&operands)
    return result


cdef tuple outputs(object out):
    """Return ``out=`` as a tuple; None: new arrays receive the results."""
    if out is None or type(out) is tuple:
        return out
    return (out,)


cdef bint all_ours(tuple operands) noexcept:
    for item in operands:
        if not is_array(item):
            return False
    return True


cdef bint override_nothing(tuple operands) except -1:
    """Whether operands are arrays of ndx, Python's numbers and NumPy's scalars.

    Subclasses of these may compute themselves.
    """
    for item in operands:
        if not is_array(item) and known_code(type(item)) < 0:
            return False
    return True


cdef bint others_override(tuple operands) except -1:
    """Whether an operand of another library overrides ufuncs.

    A subclass of NumPy's array overrides them for arrays of NumPy: it is asked when
    NumPy's ufunc gets views in place of NDArrays.
    """
    for item in operands:
        if not is_array(item) and not is_subclass(item) and overrides_ufuncs(item):
            return True
    return False


cdef object compute_with(KnownUfunc known, tuple inputs, BaseArray out):
    """Compute one of ndx's operations; NotImplemented if ndx can't use an operand."""
    cdef BaseArray operand
    if known.narrow and any_narrow(inputs):
        return NotImplemented
    if known.ufunc.nout == 2:
        return NotImplemented if out is not None else pair(
            known.ufunc, inputs[0], inputs[1] if len(inputs) > 1 else None)
    if known.is_vecdot:
        return vecdot(inputs[0], inputs[1], -1) if out is None else NotImplemented
    if known.is_matmul:
        return matmul(inputs[0], inputs[1], out)
    if known.ufunc.nin == 2:
        return binary(known.ufunc, inputs[0], inputs[1], out)
    operand = operand_of(inputs[0])
    if operand is None or (
            known.only_inexact and kind_of[operand.dtype] < KIND_FLOAT):
        return NotImplemented
    return unary(known.ufunc, operand, out)


cdef bint any_narrow(tuple inputs) except -1:
    """Whether an array or a scalar of NumPy has bools, or integers of 1 or 2 bytes."""
    cdef int code
    for item in inputs:
        if is_array(item):
            code = (<BaseArray>item).dtype
        elif isinstance(item, (np.ndarray, np.generic)):
            code = code_or_none(item.dtype)
        else:
            continue
        if code >= 0 and kind_of[code] < KIND_FLOAT and itemsize_of[code] <= 2:
            return True
    return False


def register_ufuncs(names):
    """Let ndx compute NumPy's ufuncs of these operations on NDArrays."""
    cdef KnownUfunc known
    for name in names:
        known = KnownUfunc()
        known.ufunc = find_numpy_ufunc(name)
        known.is_matmul = name == "matmul"
        known.is_vecdot = name == "vecdot"
        # The standard's reciprocals of integers are floats, NumPy's are integers.
        known.only_inexact = name == "reciprocal"
        known.narrow = computes_narrow(known.ufunc.public)
        row_of(known.ufunc.public).known = known
        ndx_keep_for_ever(known)


cdef bint computes_narrow(object ufunc) except -1:
    """Whether NumPy computes small integers in float16, where ndx has float64."""
    try:
        found = ufunc.resolve_dtypes((np.dtype(np.int8),) * ufunc.nin + (None,))
    except TypeError:
        return False
    return found[ufunc.nin] == np.float16
