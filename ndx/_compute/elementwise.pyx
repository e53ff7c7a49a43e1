"""Computing on arrays: promotion, broadcasting and results around the C loops.

Allocations and casts may run Python, which may end scopes. Therefore pointers are
taken after all arrays exist. Where the GIL is released, the operands are held
(`_array.pinning`).
"""

cimport numpy as cnp
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

import numpy as np

from ndx._array.dispatch cimport answer, engine_for, is_on_device
from ndx._array.pinning cimport (
    Operands, begin_all, compute_on, end_all, hold, let_go, put, put_constant, view_of,
)
from ndx._array.storage cimport (
    BaseArray, as_number, data_of, from_numpy, has_shape, holds_number, is_array,
    new_array, new_like, new_number, require_intact_file, require_live, require_usable,
    require_writeable, same_view, set_layout, strided,
)
from ndx._blocks.block cimport block_is_live
from ndx._compute.aliasing cimport overlaps
from ndx._compute.copies cimport can_store, cast, copy, copy_into, store_constant
from ndx._compute.costs cimport LARGE
from ndx._compute.executor cimport run
from ndx._compute.loops cimport (
    Loop, Ufunc, any_loop, find_ufunc, loop_of, mixed_loop, run_elementwise, run_short,
)
from ndx._compute.tiles cimport Job, begin_job
from ndx._compute.walking cimport start_walk, step_walk
from ndx._files.mapping cimport any_lost
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX64, FLOAT32, FLOAT64, INT8, KIND_COMPLEX, KIND_FLOAT, KIND_INT,
    KIND_UINT, code_or_none, dtype_code, dtype_object, has_arithmetic, is_numpy_scalar,
    itemsize_of, kind_of, promote_table, scalar_dtype, store_scalar, typenum_of,
)
from ndx._lib.free_threading cimport NDX_FREE_THREADED
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, order_axes,
    shape_tuple, walk_merge, walk_order,
)
from ndx._lib.numpy_private cimport may_report, reports, restore, silence


# ---- Parts of complex numbers --------------------------------------------------------

cdef BaseArray part(BaseArray x, Py_ssize_t offset):
    """Return the real (0) or imaginary (1) parts of a complex array."""
    cdef BaseArray view = same_view(x)
    view.dtype = FLOAT32 if x.dtype == COMPLEX64 else FLOAT64
    view.offset += offset * itemsize_of[view.dtype]
    set_layout(view)
    return view


# ---- Operations ----------------------------------------------------------------------

cnp.import_array()

cdef extern from "Python.h":
    PyObject *PyErr_Occurred() noexcept

cdef extern from "numpy/arrayobject.h":
    object make_scalar_view "PyArray_SimpleNewFromData" (
        int ndim, const Py_ssize_t *shape, int typenum, void *data)

cdef object ndarray = np.ndarray
cdef object memmap = np.memmap
cdef object generic = np.generic

# Operands that never compute themselves; NumPy doesn't ask their classes either.
cdef frozenset VALUES = frozenset((
    bool, int, float, complex, ndarray, np.memmap, *np.sctypeDict.values()))
# What NumPy's arrays have, and the subclasses that leave ufuncs to them.
cdef object PLAIN = ndarray.__array_ufunc__
cdef double ARRAY_PRIORITY = np.empty(0).__array_priority__

cdef Ufunc GREATER = find_ufunc("greater")
cdef Ufunc LESS_EQUAL = find_ufunc("less_equal")
cdef Ufunc SQUARE = find_ufunc("square")
cdef Ufunc SQUARE_ROOT = find_ufunc("sqrt")
cdef Ufunc RECIPROCAL = find_ufunc("reciprocal")


# ---------------------------------------------------------------- operands

cdef bint is_scalar(object x) noexcept:
    """Whether `x` is a Python scalar, which takes the array's dtype."""
    cls = type(x)
    if cls is float or cls is int or cls is bool or cls is complex:
        return True
    return isinstance(x, (int, float, complex)) and not is_numpy_scalar(x) \
        and not is_array(x)


cdef BaseArray as_operand(object x):
    """Return `x`, or an array over a NumPy array or scalar; None for all else.

    Subclasses of NumPy's array lose what they have besides elements.
    """
    cdef BaseArray result
    if is_array(x):
        return x
    if isinstance(x, ndarray):
        result = from_numpy(x)
        if result is None:
            # The array is misaligned or byte-swapped. TypeError if ndx lacks its dtype.
            dtype = x.dtype if x.dtype.isnative else x.dtype.newbyteorder("=")
            dtype = dtype_object(dtype_code(dtype))
            result = from_numpy(np.array(x, dtype=dtype, order="K", copy=True))
        return result
    if isinstance(x, generic):
        result = new_number(dtype_code(x.dtype))
        cnp.PyArray_ScalarAsCtype(x, result.dims)
        return result
    return None


cdef bint is_subclass(object x) noexcept:
    """Whether `x` is of a subclass of NumPy's array.

    Masks, matrices and units would be dropped without a word.
    """
    kind = type(x)
    return isinstance(x, cnp.ndarray) and kind is not ndarray and kind is not memmap


cdef bint overrides_ufuncs(object x) except -1:
    """Whether the class of an operand, which is no NDArray, sets `__array_ufunc__`.

    The attribute may be None: the class refuses ufuncs, and has operators.
    """
    kind = type(x)
    return kind not in VALUES \
        and getattr(kind, "__array_ufunc__", PLAIN) is not PLAIN


cdef bint has_priority(object x) except -1:
    """Whether `x`, which does not override ufuncs, has operators for NumPy's arrays."""
    if type(x) in VALUES:
        return False
    try:
        return float(getattr(x, "__array_priority__", 0)) > ARRAY_PRIORITY
    except Exception:
        # The same rule as NumPy's.
        return False


cdef bint computes_itself(object x) except -1:
    """Whether operations leave the computation to an operand."""
    return not is_array(x) and type(x) not in VALUES and (
        isinstance(x, cnp.ndarray) or overrides_ufuncs(x) or has_priority(x))


cdef bint is_number(object x) except -1:
    """Whether `x` is a Python scalar that does not compute itself."""
    cls = type(x)
    if cls is float or cls is int or cls is bool or cls is complex:
        return True
    return is_scalar(x) and not computes_itself(x)


cdef bint is_lacking(object dtype) except -1:
    """Whether no NDArray has a dtype of NumPy, in either order of bytes."""
    return code_or_none(dtype) < 0 and (
        dtype.isnative or code_or_none(dtype.newbyteorder("=")) < 0)


cdef BaseArray operand_of(object x):
    """Return `as_operand(x)`; None also for what computes itself, or lacks a dtype."""
    cdef BaseArray result
    if is_array(x):
        return x
    if type(x) is ndarray:
        result = from_numpy(x)
        if result is not None:
            return result
    elif computes_itself(x):
        return None
    if (isinstance(x, cnp.ndarray) or is_numpy_scalar(x)) and is_lacking(x.dtype):
        return None
    return as_operand(x)


cdef object operand_error(Ufunc ufunc, object x1, object x2):
    """Return the error for two operands, one of which can't be one."""
    first = is_number(x1) or operand_of(x1) is not None
    return unfit(ufunc.name, x2 if first else x1, False)


def unfit(str name, bad, bint alone):
    """Return the TypeError for an object that is no operand; `alone`: the only one."""
    if (isinstance(bad, cnp.ndarray) or is_numpy_scalar(bad)) \
            and not computes_itself(bad) and is_lacking(bad.dtype):
        dtype_code(bad.dtype)        # the error that lists dtypes
    valid = "convert it with ndx.asarray" if alone else (
        "valid are arrays (convert with ndx.asarray) and Python scalars next to an "
        "array")
    return TypeError(f"{name} does not take a {type(bad).__name__}; {valid}")


cdef object shape_error(str name, BaseArray a, BaseArray b):
    return ValueError(
        f"{name}: shapes {shape_tuple(a.ndim, a.shape)} and "
        f"{shape_tuple(b.ndim, b.shape)} can't be broadcast together; counted from "
        "the last, axes must be equal or 1")


# ---------------------------------------------------------------- elementwise

cdef object unary(Ufunc ufunc, BaseArray x, BaseArray out):
    return compute(ufunc, x, None, NULL, x.dtype, out)


cdef Ufunc known_power(int dtype, object exponent):
    """Return the operation that computes ``x ** exponent`` as NumPy does; None: `pow`.

    A square is the same to the last bit. The others differ from `pow` in the special
    values of complex numbers: NumPy takes them for the operator only.
    """
    cdef int kind = kind_of[dtype]
    if type(exponent) is int:
        if exponent == 2:
            return SQUARE
        if exponent == -1 and kind >= KIND_FLOAT:
            return RECIPROCAL
    elif type(exponent) is float and kind >= KIND_FLOAT:
        if exponent == 2:
            return SQUARE
        # The standard says what the powers of infinities and of -0.0 are.
        if exponent == 0.5 and kind == KIND_COMPLEX:
            return SQUARE_ROOT
    return None


cdef object power(BaseArray x, object exponent, BaseArray out):
    """Compute ``x ** exponent`` by `known_power`; NotImplemented: by `pow`."""
    cdef Ufunc known = known_power(x.dtype, exponent)
    if known is None:
        return NotImplemented
    if x.dtype != BOOL:
        return unary(known, x, out)
    # NumPy squares bools as the smallest integers. They do not fit an array of bools.
    return NotImplemented if out is not None else cast(x, INT8)


cdef object binary(Ufunc ufunc, object x1, object x2, BaseArray out):
    """Compute a binary operation; NotImplemented if an operand is not supported."""
    cdef BaseArray a, b
    cdef char[16] value
    cdef int dtype
    if is_array(x1):
        a = <BaseArray>x1
        if is_array(x2):
            b = <BaseArray>x2
            return compute(ufunc, a, b, NULL, promote_table[a.dtype][b.dtype], out)
        if is_number(x2):
            if ufunc.may_set_error and a.dtype != BOOL \
                    and known_power(a.dtype, x2) is SQUARE:
                return unary(SQUARE, a, out)
            dtype = scalar_dtype(a.dtype, x2)
            if compares_integers(ufunc, dtype):
                return compare(ufunc, a, x2, False, dtype, out)
            store_constant(x2, loop_of(ufunc, dtype).in_dtype, value)
            return compute(ufunc, a, None, value, dtype, out)
    elif is_array(x2) and is_number(x1):
        b = <BaseArray>x2
        dtype = scalar_dtype(b.dtype, x1)
        if compares_integers(ufunc, dtype):
            return compare(ufunc, b, x1, True, dtype, out)
        store_constant(x1, loop_of(ufunc, dtype).in_dtype, value)
        return compute(ufunc, None, b, value, dtype, out)
    a = operand_of(x1)
    b = operand_of(x2)
    if (a is None and not is_number(x1)) or (b is None and not is_number(x2)) \
            or (a is None and b is None):
        return NotImplemented
    if a is not None and b is not None and either_on_device(a, b) \
            and mixed_loop(ufunc, a.dtype, b.dtype) != NULL:
        # An exact comparison with one of Python's integers.
        if isinstance(x2, generic):
            return binary(ufunc, a, x2.item(), out)
        if isinstance(x1, generic):
            return binary(ufunc, x1.item(), b, out)
    if is_on_device(a) and isinstance(x2, np.generic):
        dtype = promote_table[a.dtype][b.dtype]
        store_scalar(x2.item(), loop_of(ufunc, dtype).in_dtype, value)
        return compute(ufunc, a, None, value, dtype, out)
    if is_on_device(b) and isinstance(x1, np.generic):
        dtype = promote_table[a.dtype][b.dtype]
        store_scalar(x1.item(), loop_of(ufunc, dtype).in_dtype, value)
        return compute(ufunc, None, b, value, dtype, out)
    return binary(ufunc, x1 if a is None else a, x2 if b is None else b, out)


cdef inline bint compares_integers(Ufunc ufunc, int dtype) except -1:
    """Whether an operation is a comparison of integers, or a logical one."""
    return kind_of[dtype] in (KIND_INT, KIND_UINT) \
        and loop_of(ufunc, dtype).out_dtype == BOOL


cdef object compare(Ufunc ufunc, BaseArray x, object scalar, bint scalar_first,
                    int dtype, BaseArray out):
    """Compare integers with one of Python's, which their dtype may not have."""
    cdef char[16] value
    cdef bint result
    try:
        store_scalar(scalar, dtype, value)
    except OverflowError:
        if ufunc.name.startswith("logical"):
            return compare(ufunc, x, 1, scalar_first, dtype, out)
        # All results are alike: those of a comparison with the largest value.
        result = ufunc.name == "not_equal" or ufunc.name != "equal" and (
            ufunc.name.startswith("less") == ((scalar > 0) != scalar_first))
        store_scalar(np.iinfo(dtype_object(dtype)).max, dtype, value)
        return compute(LESS_EQUAL if result else GREATER, x, None, value, dtype, out)
    if scalar_first:
        return compute(ufunc, None, x, value, dtype, out)
    return compute(ufunc, x, None, value, dtype, out)


cdef object inplace(Ufunc ufunc, BaseArray x, object other):
    """Compute ``x = x op other`` in the memory of `x`; x, or NotImplemented."""
    cdef BaseArray b = None
    cdef int dtype, result
    require_usable(x)
    if not is_array(other) and is_number(other):
        dtype = scalar_dtype(x.dtype, other)
    else:
        b = operand_of(other)
        if b is None:
            return NotImplemented
        require_usable(b)
        dtype = promote_table[x.dtype][b.dtype]
        if not x.block.device or not isinstance(other, np.generic):
            other = b
    result = loop_of(ufunc, dtype).out_dtype
    if result != x.dtype:
        if not can_store(result, x.dtype) or (
                kind_of[result] == KIND_INT and kind_of[x.dtype] == KIND_UINT):
            raise TypeError(
                f"{ufunc.name} of {dtype_object(x.dtype)} and "
                f"{dtype_object(b.dtype) if b is not None else type(other).__name__} "
                f"is {dtype_object(result)}, which can't be cast to the dtype of the "
                f"array in place, {dtype_object(x.dtype)}; use x = x op y (for an "
                "element x[k] = x[k] op y), or ndx.astype")
        # The operand does not fit the array's dtype: compute a new array, then cast
        # it into `x`.
        return store_inplace(ufunc, x, binary(ufunc, x, other, None))
    if binary(ufunc, x, other, x) is NotImplemented:
        return NotImplemented
    return x


cdef object store_inplace(Ufunc ufunc, BaseArray x, object result):
    if result is NotImplemented:
        return result
    if not has_shape(x, (<BaseArray>result).ndim, (<BaseArray>result).shape):
        raise output_shape_error(ufunc, x, (<object>result).shape)
    copy_into(x, <BaseArray>result)
    return x


cdef object output_shape_error(Ufunc ufunc, BaseArray out, tuple shape):
    return ValueError(
        f"{ufunc.name}: the output has shape {shape_tuple(out.ndim, out.shape)}, but "
        f"the operands broadcast to {shape}")


cdef bint either_on_device(BaseArray a, BaseArray b) noexcept:
    """Whether an operand, where there is one, is on a device."""
    return (a is not None and a.block.device != 0) or \
        (b is not None and b.block.device != 0)


cdef inline bint are_numbers(BaseArray a, BaseArray b) noexcept:
    """Whether the operands are numbers; None stands for a Python scalar or for none."""
    return (a is None or holds_number(a)) and (b is None or holds_number(b))


cdef object compute(Ufunc ufunc, BaseArray a, BaseArray b, char *scalar, int dtype,
                    BaseArray out):
    """Run a ufunc's loop; `scalar` replaces the operand that is None.

    For unary operations `b` is None and `scalar` is NULL.
    """
    cdef const Loop *loop = loop_of(ufunc, dtype)
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef BaseArray first = a if a is not None else b
    cdef BaseArray result
    cdef Py_ssize_t size
    # The common case: contiguous operands of one shape, or with a scalar.
    if out is None and first.c_contiguous and first.dtype == loop.in_dtype \
            and loop.function != NULL and not may_report() \
            and (a is None or b is None or (
                b.dtype == loop.in_dtype and b.c_contiguous
                and has_shape(a, b.ndim, b.shape))):
        # An array of a device is never live here.
        if not block_is_live(first.block) or (
                b is not None and not block_is_live(b.block)):
            if either_on_device(a, b):
                return compute_on_device(ufunc, a, b, scalar, loop, out)
            require_live(first)
            if b is not None:
                require_live(b)
        if are_numbers(a, b):
            result = new_number(loop.out_dtype)
        else:
            result = new_like(first, loop.out_dtype)
        size = result.size
        steps[0] = steps[1] = itemsize_of[loop.in_dtype]
        if a is None:
            steps[0] = 0
        if ufunc.nin == 1:
            steps[1] = itemsize_of[loop.out_dtype]
        else:
            if b is None:
                steps[1] = 0
            steps[2] = itemsize_of[loop.out_dtype]
        if size >= LARGE or NDX_FREE_THREADED and size:
            run_flat(ufunc, loop, a, b, scalar, result, steps)
        elif size:
            # The allocation may have run Python. From here on, no Python runs.
            while not (block_is_live(first.block) and block_is_live(result.block)
                       and (b is None or block_is_live(b.block))):
                require_live(first)
                require_live(result)
                if b is not None:
                    require_live(b)
            args[0] = data_of(a) if a is not None else scalar
            args[1] = data_of(b) if b is not None else scalar
            args[ufunc.nin] = data_of(result)
            loop.function(args, &size, steps, loop.data)
        if ufunc.may_set_error and PyErr_Occurred() != NULL:
            raise_current()
        if any_lost():
            require_intact_file(first)
            if b is not None:
                require_intact_file(b)
            require_intact_file(result)
        return result
    return compute_general(ufunc, a, b, scalar, loop, out)


cdef object pair(Ufunc ufunc, object x1, object x2):
    """Compute an operation of two results, such as `divmod`; NotImplemented: by NumPy.

    The operands are arrays in C order of one shape and dtype, or one and a number;
    `x2` of unary operations is None.
    """
    cdef BaseArray a = <BaseArray>x1 if is_array(x1) else None
    cdef BaseArray b = <BaseArray>x2 if is_array(x2) else None
    cdef BaseArray first = a if a is not None else b
    cdef BaseArray result, second
    cdef const Loop *loop
    cdef Operands operands
    cdef char[16] value
    cdef char *args[4]
    cdef Py_ssize_t steps[4]
    cdef Py_ssize_t size
    cdef int op
    if first is None or first.block.device or not first.c_contiguous \
            or first.size >= LARGE or are_numbers(a, b) or may_report():
        return NotImplemented
    loop = any_loop(ufunc, first.dtype)
    if loop.function == NULL or loop.in_dtype != first.dtype:
        return NotImplemented
    if a is None or b is None and ufunc.nin == 2:
        number = x1 if a is None else x2
        if not is_number(number) or scalar_dtype(first.dtype, number) != first.dtype:
            return NotImplemented
        store_constant(number, first.dtype, value)
    elif b is not None and not (b.dtype == a.dtype and b.c_contiguous
                                and has_shape(a, b.ndim, b.shape)):
        return NotImplemented
    result, second = new_like(first, loop.out_dtype), new_like(first, loop.out_dtype)
    put_inputs(&operands, ufunc, a, b, value)
    put(&operands, result)
    put(&operands, second)
    begin_all(&operands)
    size = result.size
    if first.size != size or b is not None and b.size != size:
        end_all(&operands)
        return NotImplemented
    for op in range(operands.count):
        args[op] = operands.data[op]
        steps[op] = 0 if operands.arrays[op] == NULL \
            else itemsize_of[(<BaseArray>operands.arrays[op]).dtype]
    if size:
        loop.function(args, &size, steps, loop.data)
    end_all(&operands)
    return result, second


cdef int run_flat(Ufunc ufunc, const Loop *loop, BaseArray a, BaseArray b,
                  char *scalar, BaseArray result, const Py_ssize_t *steps) except -1:
    """Compute many elements of contiguous operands; without a GIL, few of them, too."""
    cdef Operands operands
    cdef Walk walk
    cdef int op
    put_inputs(&operands, ufunc, a, b, scalar)
    put(&operands, result)
    walk.ndim = 1
    walk.nops = operands.count
    walk.shape[0] = result.size
    for op in range(walk.nops):
        walk.strides[op][0] = steps[op]
    if result.size < LARGE:
        return compute_on(&operands, &walk, compute_loop, <void *>loop, False)
    return run_loop(ufunc, loop, &operands, &walk)


cdef void put_inputs(Operands *operands, Ufunc ufunc, BaseArray a, BaseArray b,
                     char *scalar) noexcept:
    """Start `operands` with the inputs; `scalar` replaces the one that is None."""
    cdef int op
    operands.count = 0
    for op in range(ufunc.nin):
        if (a if op == 0 else b) is None:
            put_constant(operands, scalar)
        else:
            put(operands, a if op == 0 else b)


cdef int run_loop(Ufunc ufunc, const Loop *loop, Operands *operands,
                  const Walk *walk) except -1:
    """Compute many elements."""
    cdef Job job
    begin_job(&job, operands, walk, compute_rows, <void *>loop)
    job.itemsizes[0] = job.itemsizes[1] = itemsize_of[loop.in_dtype]
    job.itemsizes[ufunc.nin] = itemsize_of[loop.out_dtype]
    job.cycles = ufunc.cycles
    # A loop that may raise runs in the calling thread, where it can take the GIL. Loops
    # of floats never do.
    job.in_order = ufunc.may_set_error and kind_of[loop.in_dtype] < KIND_FLOAT
    return run(&job, ufunc.name)


cdef void compute_loop(void *loop, char **data, const Walk *walk) noexcept nogil:
    """Run any loop, of which only the function and its data are set."""
    run_elementwise(<const Loop *>loop, walk.nops, data, walk)


cdef void compute_rows(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Run the loop of an operation; short rows are gathered."""
    cdef const Loop *loop = <const Loop *>arg
    cdef Py_ssize_t itemsizes[3]
    itemsizes[0] = itemsizes[1] = itemsize_of[loop.in_dtype]
    itemsizes[walk.nops - 1] = itemsize_of[loop.out_dtype]
    run_short(loop, walk.nops, data, walk, itemsizes)


cdef int raise_current() except -1:
    """Raise the Python error that a loop has set."""
    return -1


cdef object compute_general(Ufunc ufunc, BaseArray a, BaseArray b, char *scalar,
                            const Loop *loop, BaseArray out):
    """Like `compute`, for any layout, with casts, broadcasting and `out`."""
    cdef const Loop *mixed
    cdef bint numbers = out is None and are_numbers(a, b)
    if a is not None and b is not None:
        mixed = mixed_loop(ufunc, a.dtype, b.dtype)
        if mixed != NULL:
            loop = mixed
    if either_on_device(a, b) or (out is not None and out.block.device):
        return compute_on_device(ufunc, a, b, scalar, loop, out)
    if a is not None:
        require_live(a)
        if a.dtype != loop.in_dtype:
            a = cast(a, loop.in_dtype)
    if b is not None:
        require_live(b)
        if b.dtype != loop.second_dtype:
            b = cast(b, loop.second_dtype)
    if out is not None:
        check_output(ufunc.name, out, loop.out_dtype)
        if a is not None and overlaps(out, a):
            a = copy(a)
        if b is not None and overlaps(out, b):
            b = copy(b)
    if not numbers:
        return compute_walk(ufunc, a, b, scalar, loop, out)
    out = new_number(loop.out_dtype)
    out.readonly = False             # NumPy may write it
    compute_walk(ufunc, a, b, scalar, loop, out)
    out.readonly = True
    return out


cdef int check_output(str name, BaseArray out, int dtype) except -1:
    """Raise if a result of a dtype cannot be written into `out`."""
    require_writeable(out)
    if out.dtype != dtype:
        raise TypeError(
            f"out has dtype {dtype_object(out.dtype)}, but the result of {name} has "
            f"dtype {dtype_object(dtype)}")
    return 0


cdef object compute_on_device(Ufunc ufunc, BaseArray a, BaseArray b, char *scalar,
                              const Loop *loop, BaseArray out):
    """Like `compute`, for operands on a device: the engine computes."""
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray first = a if a is not None else b
    cdef int ndim = first.ndim
    cdef list operands = []
    cdef int[2] dtypes = [loop.in_dtype, loop.second_dtype]
    memcpy(shape, first.shape, ndim * sizeof(Py_ssize_t))
    if a is not None and b is not None:
        ndim = broadcast_into(ndim, shape, b.ndim, b.shape)
        if ndim < 0:
            raise shape_error(ufunc.name, a, b)
    if out is not None:
        check_output(ufunc.name, out, loop.out_dtype)
        if not has_shape(out, ndim, shape):
            raise output_shape_error(ufunc, out, shape_tuple(ndim, shape))
    for i, x in enumerate((a, b)[:ufunc.nin]):
        if x is None:
            operands.append(
                make_scalar_view(0, NULL, typenum_of[loop.in_dtype], scalar)[()])
        else:
            operands.append(
                x if (<BaseArray>x).dtype == dtypes[i] else cast(x, dtypes[i]))
    engine = engine_for(ufunc.name, (*operands, out))
    return answer(engine, ufunc.name, engine.elementwise(
        ufunc.name, tuple(operands), dtype_object(loop.out_dtype), out))


cdef object compute_walk(Ufunc ufunc, BaseArray a, BaseArray b, char *scalar,
                         const Loop *loop, BaseArray out):
    cdef Strided layout
    cdef Operands operands
    cdef Walk walk
    cdef int order[MAXDIMS]
    cdef int nin = ufunc.nin, op
    cdef BaseArray operand, first = a if a is not None else b
    walk.ndim = first.ndim
    memcpy(walk.shape, first.shape, first.ndim * sizeof(Py_ssize_t))
    if a is not None and b is not None:
        walk.ndim = broadcast_into(walk.ndim, walk.shape, b.ndim, b.shape)
        if walk.ndim < 0:
            raise shape_error(ufunc.name, a, b)
    for op in range(nin):
        operand = a if op == 0 else b
        if operand is None:
            memset(walk.strides[op], 0, walk.ndim * sizeof(Py_ssize_t))
            continue
        strided(operand, &layout)
        broadcast_strides(&layout, walk.ndim, walk.shape, walk.strides[op])
    if out is None:
        order_axes(walk.ndim, walk.shape, nin, walk.strides, True, order)
        out = new_array(0, loop.out_dtype, walk.ndim, walk.shape, order, False)
    elif not has_shape(out, walk.ndim, walk.shape):
        raise output_shape_error(ufunc, out, shape_tuple(walk.ndim, walk.shape))
    if out.size == 0:
        return out
    put_inputs(&operands, ufunc, a, b, scalar)
    put(&operands, out)
    if loop.function == NULL or may_report() and reports():
        call_public(ufunc, &operands, loop)
        return out
    memcpy(walk.strides[nin], out.strides, walk.ndim * sizeof(Py_ssize_t))
    walk.nops = nin + 1
    walk_order(&walk)
    walk_merge(&walk)
    if out.size >= LARGE:
        run_loop(ufunc, loop, &operands, &walk)
    else:
        compute_on(&operands, &walk, compute_rows, <void *>loop, False)
    if ufunc.may_set_error and PyErr_Occurred() != NULL:
        raise_current()
    return out


cdef int call_public(Ufunc ufunc, Operands *operands, const Loop *loop) except -1:
    """Compute with NumPy's public function, into our memory."""
    token = silence()
    try:
        hold(operands)
        try:
            views = views_of(operands, typenum_of[loop.in_dtype])
            out = views.pop()
            ufunc.public(*views, out=out)
        finally:
            let_go(operands)
    finally:
        restore(token)
    return 0


cdef list views_of(const Operands *held, int typenum):
    """Return NumPy arrays over the operands; constants have NumPy's type `typenum`."""
    return [
        make_scalar_view(0, NULL, typenum, held.data[i]) if held.arrays[i] == NULL
        else view_of(held, i)
        for i in range(held.count)]


# ---- Elements limited to an interval -------------------------------------------------

cdef extern from "ndx/internal/choose.h" nogil:
    void ndx_clip(char **args, Py_ssize_t rows, const Py_ssize_t *row_steps,
                  Py_ssize_t n, const Py_ssize_t *steps, const char *low,
                  const char *high, int dtype)


# Elements of the dtype.
cdef struct Bounds:
    double[2] low                    # the bytes of an element, aligned for any dtype
    double[2] high
    int dtype


cdef void run_clip(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Clip operand 0 into operand 1. Rows may be short: two axes are one call."""
    cdef const Bounds *bounds = <const Bounds *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t row_steps[2]
    cdef Py_ssize_t steps[2]
    cdef Py_ssize_t rows = 1, n = 1
    cdef int op, last = walk.ndim - 1
    cdef char *at[2]
    for op in range(2):
        at[op] = data[op]
        steps[op] = walk.strides[op][last] if last >= 0 else 0
        row_steps[op] = walk.strides[op][last - 1] if last >= 1 else 0
    if last >= 0:
        n = walk.shape[last]
    if last >= 1:
        rows = walk.shape[last - 1]
    start_walk(last - 1, index)
    while True:
        ndx_clip(at, rows, row_steps, n, steps, <const char *>bounds.low,
                 <const char *>bounds.high, bounds.dtype)
        if not step_walk(walk, last - 1, index, 2, at):
            return


cdef int store_bound(object value, int dtype, bint is_low, char *bound) except -1:
    """Store a bound as an element; an integer beyond the dtype becomes its last one.

    Such an integer limits nothing. One that would limit all elements to a value which
    the dtype lacks is an OverflowError.
    """
    try:
        store_constant(value, dtype, bound)
    except OverflowError:
        if kind_of[dtype] >= KIND_FLOAT:
            raise
        limits = np.iinfo(dtype_object(dtype))
        value = max(value, limits.min) if is_low else min(value, limits.max)
        store_constant(value, dtype, bound)
    return 0


def binding_bounds(x, low, high):
    """Return both bounds, with None for an integer that limits no element."""
    if is_array(x) and BOOL != (<BaseArray>x).dtype \
            and kind_of[(<BaseArray>x).dtype] < KIND_FLOAT:
        limits = np.iinfo(dtype_object((<BaseArray>x).dtype))
        if isinstance(low, int) and low < limits.min:
            low = None
        if isinstance(high, int) and high > limits.max:
            high = None
    return low, high


cpdef object clip_between(object x, object low, object high, object out):
    """Return an array limited to two scalars of its dtype; None for other operands.

    NaN stays. Elements become `high` where `low` is larger than `high`. The result is
    written to `out`, unless that is None.
    """
    cdef BaseArray array, result
    cdef Operands operands
    cdef Bounds bounds
    cdef Job job
    cdef Walk walk
    if not is_array(x) or not is_scalar(low) or not is_scalar(high) \
            or isinstance(low, complex) or isinstance(high, complex):
        return None
    array = x
    if array.block.device or array.dtype == BOOL \
            or kind_of[array.dtype] == KIND_COMPLEX or not has_arithmetic(array.dtype) \
            or scalar_dtype(array.dtype, low) != array.dtype \
            or scalar_dtype(array.dtype, high) != array.dtype \
            or low != low or high != high:
        return None
    bounds.dtype = array.dtype
    store_bound(low, array.dtype, True, <char *>bounds.low)
    store_bound(high, array.dtype, False, <char *>bounds.high)
    require_live(array)
    if out is not None:
        if not is_array(out):
            return None
        result = out
        if result.block.device or result.readonly or result.dtype != array.dtype \
                or not has_shape(result, array.ndim, array.shape) \
                or overlaps(result, array):
            return None
    else:
        result = new_like(array, array.dtype)
    if result.size == 0:
        return result
    walk.nops = 2
    walk.ndim = array.ndim
    memcpy(walk.shape, array.shape, walk.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[0], array.strides, walk.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], result.strides, walk.ndim * sizeof(Py_ssize_t))
    walk_order(&walk)
    walk_merge(&walk)
    operands.count = 0
    put(&operands, array)
    put(&operands, result)
    if result.size >= LARGE:
        begin_job(&job, &operands, &walk, run_clip, &bounds)
        job.itemsizes[0] = job.itemsizes[1] = itemsize_of[array.dtype]
        run(&job, "clip")
    else:
        compute_on(&operands, &walk, run_clip, &bounds, False)
    return as_number(result) if out is None and holds_number(array) else result
