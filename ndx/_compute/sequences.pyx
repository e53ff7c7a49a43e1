"""Arrays of numbers, read directly from nested lists and tuples.

Only objects of Python's own types, NumPy's scalars and elements of arrays are read,
which runs no Python code: nothing can change a list meanwhile. What NumPy has further
rules for is left to NumPy.
"""

import numpy as np

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from ndx._array.pinning cimport Operands, begin_all, end_all, put
from ndx._array.storage cimport BaseArray, holds_number, is_array, new_empty
from ndx._compute.manipulation cimport join, same_lengths
from ndx._lib.dtypes cimport BOOL, COMPLEX128, FLOAT32, FLOAT64, INT32, INT64
from ndx._lib.integers cimport int_value
from ndx._lib.layout cimport MAXDIMS
from ndx._lib.numpy_private cimport may_report, reports

cdef extern from "Python.h":
    # Borrowed items; of a list or a tuple.
    PyObject **items_of "PySequence_Fast_ITEMS" (PyObject *sequence) noexcept nogil
    Py_ssize_t length_of "PySequence_Fast_GET_SIZE" (PyObject *sequence) noexcept nogil
    PyObject *type_of "(PyObject *)Py_TYPE" (PyObject *x) noexcept nogil

cdef extern from *:
    """
    /* Python's float and complex, NumPy's scalars and elements of arrays have their
     * value behind the head of the object. */
    #define NDX_VALUE(x) ((char *)(x) + sizeof(PyObject))
    """
    char *NDX_VALUE(PyObject *x) noexcept nogil

cdef PyObject *LIST = <PyObject *>list
cdef PyObject *TUPLE = <PyObject *>tuple
cdef PyObject *FLOAT = <PyObject *>float
cdef PyObject *INT = <PyObject *>int
cdef PyObject *TRUTH = <PyObject *>bool
cdef PyObject *COMPLEX = <PyObject *>complex
cdef PyObject *TRUE = <PyObject *><object>True

# The types of the numbers in a sequence, as bits.
cdef enum:
    HAS_BOOL = 1
    HAS_INT = 2
    HAS_FLOAT = 4
    HAS_COMPLEX = 8
    HAS_FLOAT32 = 16             # which no other number may be beside
    HAS_OTHERS = 32

    SCALAR_TYPES = 5

# NumPy's types of scalars, and the bit that each has.
cdef PyObject *scalar_types[SCALAR_TYPES]
cdef int[SCALAR_TYPES] scalar_bits = [
    HAS_FLOAT, HAS_INT, HAS_FLOAT32, HAS_BOOL, HAS_COMPLEX]
scalar_types[0] = <PyObject *>np.float64
scalar_types[1] = <PyObject *>np.int64
scalar_types[2] = <PyObject *>np.float32
scalar_types[3] = <PyObject *>np.bool_
scalar_types[4] = <PyObject *>np.complex128


cdef int bit_of(PyObject *x) noexcept:
    """Return the bit of a number's type; `HAS_OTHERS`: it is none of those."""
    cdef PyObject *kind = type_of(x)
    cdef int i
    if kind == FLOAT:
        return HAS_FLOAT
    if kind == INT:
        return HAS_INT
    if kind == TRUTH:
        return HAS_BOOL
    if kind == COMPLEX:
        return HAS_COMPLEX
    for i in range(SCALAR_TYPES):
        if kind == scalar_types[i]:
            return scalar_bits[i]
    if is_array(<object>x) and holds_number(<BaseArray>x):
        i = (<BaseArray>x).dtype
        return HAS_FLOAT if i == FLOAT64 else HAS_INT if i == INT64 else \
            HAS_FLOAT32 if i == FLOAT32 else HAS_BOOL if i == BOOL else \
            HAS_COMPLEX if i == COMPLEX128 else HAS_OTHERS
    return HAS_OTHERS


cdef inline bint is_sequence(PyObject *x) noexcept nogil:
    return type_of(x) == LIST or type_of(x) == TUPLE


cdef bint is_plain(object obj) noexcept:
    """Whether an object is a list, a tuple or a number of Python's own types."""
    cdef PyObject *kind = type_of(<PyObject *>obj)
    return kind == LIST or kind == TUPLE or kind == FLOAT or kind == INT \
        or kind == TRUTH or kind == COMPLEX


cdef int find_shape(PyObject *x, Py_ssize_t *shape) noexcept nogil:
    """Find the lengths of nested sequences by their first items; -1: too deep."""
    cdef int ndim = 0
    while is_sequence(x):
        if ndim == MAXDIMS:
            return -1
        shape[ndim] = length_of(x)
        ndim += 1
        if length_of(x) == 0:
            break
        x = items_of(x)[0]
    return ndim


cdef int types_in(PyObject *x, int ndim, const Py_ssize_t *shape) noexcept:
    """Return the types of the numbers; `HAS_OTHERS` also if the lengths differ."""
    cdef PyObject **items
    cdef PyObject *last = NULL
    cdef PyObject *kind
    cdef Py_ssize_t i
    cdef int found = 0
    if not is_sequence(x) or length_of(x) != shape[0]:
        return HAS_OTHERS
    items = items_of(x)
    for i in range(shape[0]):
        if ndim > 1:
            found |= types_in(items[i], ndim - 1, shape + 1)
        else:
            kind = type_of(items[i])
            if kind == last:
                continue
            last = kind
            found |= bit_of(items[i])
        if found & HAS_OTHERS:
            return HAS_OTHERS
    return found


cdef int dtype_for(int found, int dtype) noexcept:
    """Return the dtype of an array of the types that were found; -1: left to NumPy."""
    if found & HAS_OTHERS:
        return -1
    if found & HAS_FLOAT32:
        return FLOAT32 if found == HAS_FLOAT32 and dtype in (-1, FLOAT32) else -1
    if dtype < 0:
        return COMPLEX128 if found & HAS_COMPLEX else FLOAT64 \
            if found & HAS_FLOAT or not found else INT64 if found & HAS_INT else BOOL
    if dtype == FLOAT32 and may_report() and reports():
        # NumPy reports numbers that are too large.
        return -1
    if dtype == COMPLEX128 or dtype == FLOAT64 or dtype == FLOAT32:
        return dtype if dtype == COMPLEX128 or not found & HAS_COMPLEX else -1
    if dtype == INT64 or dtype == INT32:
        # NumPy truncates floats, but not all of them.
        return dtype if not found & (HAS_COMPLEX | HAS_FLOAT) else -1
    return dtype if dtype == BOOL and found in (0, HAS_BOOL) else -1


cdef bint read_real(PyObject *x, double *out) noexcept:
    """Read a number as a double; return False for an int that does not fit int64."""
    cdef PyObject *kind = type_of(x)
    cdef int overflow = 0, bit
    if kind == FLOAT:
        out[0] = (<double *>NDX_VALUE(x))[0]
    elif kind == INT or kind == TRUTH:
        out[0] = <double>int_value(<object>x, &overflow)
    else:
        bit = bit_of(x)
        out[0] = (<double *>NDX_VALUE(x))[0] if bit == HAS_FLOAT else \
            (<float *>NDX_VALUE(x))[0] if bit == HAS_FLOAT32 else \
            <double>(<int64_t *>NDX_VALUE(x))[0] if bit == HAS_INT else \
            <double>(<uint8_t *>NDX_VALUE(x))[0]
    return overflow == 0


cdef long long read_whole(PyObject *x, int *overflow) noexcept:
    """Read an int or a bool."""
    cdef PyObject *kind = type_of(x)
    if kind == INT or kind == TRUTH:
        return int_value(<object>x, overflow)
    if bit_of(x) == HAS_INT:
        return (<int64_t *>NDX_VALUE(x))[0]
    return (<uint8_t *>NDX_VALUE(x))[0]


cdef bint write_number(PyObject *x, int dtype, char *out) noexcept:
    """Write a number as an element; return False if it does not fit."""
    cdef double real = 0
    cdef long long whole
    cdef int overflow = 0
    if dtype == FLOAT64:
        return read_real(x, <double *>out)
    if dtype == FLOAT32:
        if not read_real(x, &real):
            return False
        (<float *>out)[0] = <float>real
    elif dtype == COMPLEX128:
        if bit_of(x) == HAS_COMPLEX:
            (<double *>out)[0] = (<double *>NDX_VALUE(x))[0]
            (<double *>out)[1] = (<double *>NDX_VALUE(x))[1]
        else:
            (<double *>out)[1] = 0
            return read_real(x, <double *>out)
    elif dtype == BOOL:
        (<uint8_t *>out)[0] = x == TRUE if type_of(x) == TRUTH \
            else (<uint8_t *>NDX_VALUE(x))[0]
    else:
        whole = read_whole(x, &overflow)
        if overflow or dtype == INT32 and whole != <int>whole:
            return False
        if dtype == INT64:
            (<int64_t *>out)[0] = whole
        else:
            (<int *>out)[0] = <int>whole
    return True


cdef bint write_all(PyObject *x, int ndim, const Py_ssize_t *shape, int dtype,
                    Py_ssize_t itemsize, char **out) noexcept:
    """Write nested sequences as elements at `out`, and advance it."""
    cdef PyObject **items = items_of(x)
    cdef Py_ssize_t i
    for i in range(shape[0]):
        if ndim > 1:
            if not write_all(items[i], ndim - 1, shape + 1, dtype, itemsize, out):
                return False
            continue
        if dtype == FLOAT64 and type_of(items[i]) == FLOAT:
            (<double *>out[0])[0] = (<double *>NDX_VALUE(items[i]))[0]
        elif not write_number(items[i], dtype, out[0]):
            return False
        out[0] += itemsize
    return True


cdef BaseArray from_sequence(object obj, int dtype):
    """Return a new array of the numbers in nested lists and tuples.

    Return None for what is left to NumPy: other objects, lengths that differ, numbers
    that do not fit. `dtype` -1: the default dtype of the numbers.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef PyObject *source = <PyObject *>obj
    cdef Operands operands
    cdef BaseArray x
    cdef char *out
    cdef int found, ndim = find_shape(source, shape)
    if ndim < 1:
        return None
    found = types_in(source, ndim, shape)
    dtype = dtype_for(found, dtype)
    if dtype < 0:
        return None
    x = new_empty(dtype, ndim, shape)
    operands.count = 0
    put(&operands, x)
    begin_all(&operands)
    try:
        # The allocation may have run Python, which may have changed a list.
        if types_in(source, ndim, shape) != found:
            return None
        out = operands.data[0]
        if not write_all(source, ndim, shape, dtype, x.strides[ndim - 1], &out):
            return None
    finally:
        end_all(&operands)
    return x


cdef BaseArray array_of(object sequence, int dtype):
    """Return a new array of a list or tuple of numbers, or of arrays alike.

    Return None for what is left to NumPy; see `from_sequence`.
    """
    cdef BaseArray found = from_sequence(sequence, dtype)
    if found is None and dtype < 0:
        found = of_equal_arrays(sequence)
    return found


cdef BaseArray of_equal_arrays(object sequence):
    """Return arrays of one shape and dtype, stacked; None for all else."""
    cdef BaseArray first = None, x
    for item in sequence:
        if not is_array(item):
            return None
        x = item
        if x.block.device or x.ndim == 0 or x.ndim == MAXDIMS \
                or x.ndim != 1 and not x.c_contiguous:
            return None
        if first is None:
            first = x
        if x.dtype != first.dtype or not same_lengths(first, x, -1):
            return None
    return None if first is None else join(list(sequence), 0, True)
