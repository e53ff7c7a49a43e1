"""What an operation does to dtypes: the rules of the array's own operators.

Recorded functions ask here, so that what is replayed is what would have been computed.
All dtypes are codes (`_lib.dtypes`).
"""

cimport cython
from libc.stdlib cimport free, malloc

from ndx._api cimport creation
from ndx._array.storage cimport BaseArray
from ndx._compute cimport aliasing, elementwise
from ndx._compute.copies cimport can_store, can_transfer
from ndx._compute.elementwise cimport known_power
from ndx._compute.loops cimport Loop, Ufunc, find_ufunc, loop_of, mixed_loop
from ndx._lib cimport layout
from ndx._lib.dtypes cimport (
    BOOL, KIND_FLOAT, dtype_code, dtype_object, has_arithmetic, itemsize_of, kind_of,
    promote_table, scalar_dtype, store_scalar,
)
from ndx._lib.layout cimport (
    MAXDIMS, StrideRow, merge_axes, order_axes, shape_tuple, sort_axes,
)

import sys

__all__ = [
    "adds_up", "casts", "check_fill", "code_of", "computes_itself", "dtype_of",
    "is_contiguous", "is_distinct", "is_mixed", "is_narrow", "is_readonly", "itemsize",
    "kind", "layout_of", "merged_axes", "most_axes", "nin_of", "operation", "power",
    "promoted", "public_ufunc", "scalar_bytes", "stepped", "stores", "with_scalar",
]


def most_axes():
    """Return how many axes an array may have."""
    return MAXDIMS


def code_of(dtype):
    """Return the code of a dtype-like object; TypeError if ndx lacks it."""
    return dtype_code(dtype)


def dtype_of(int code):
    """Return the ``np.dtype`` of a code."""
    return dtype_object(code)


def itemsize(int code):
    """Return the bytes of an element."""
    return itemsize_of[code]


def kind(int code):
    """Return the place of a dtype's kind in the order of promotion."""
    return kind_of[code]


def is_contiguous(BaseArray x not None):
    """Whether an array is in C order; it may be stale."""
    return x.c_contiguous


def is_readonly(BaseArray x not None):
    """Whether an array refuses writes; it may be stale."""
    return x.readonly


def is_narrow(int code):
    """Whether NumPy may compute a function of these integers in float16."""
    return kind_of[code] < KIND_FLOAT and itemsize_of[code] <= 2


def adds_up(int code):
    """Whether parts of a sum of elements are kept as exactly as the elements."""
    return has_arithmetic(code)


def is_mixed(str name, int a, int b):
    """Whether an operation takes operands of two dtypes as they are."""
    return mixed_loop(find_ufunc(name), a, b) != NULL


def promoted(int a, int b):
    """Return the common dtype of two arrays."""
    return promote_table[a][b]


def with_scalar(int code, scalar):
    """Return the dtype of an operation on an array and a Python scalar."""
    return scalar_dtype(code, scalar)


def scalar_bytes(scalar, int code):
    """Return a Python scalar as an element; OverflowError if it does not fit."""
    cdef char[16] value
    store_scalar(scalar, code, value)
    return value[:itemsize_of[code]]


def computes_itself(x):
    """Whether operations leave the computation to an operand."""
    return elementwise.computes_itself(x)


def power(int code, exponent, bint is_operator):
    """Return the operation for a power of all elements; None: `pow` itself."""
    cdef Ufunc found = known_power(code, exponent)
    if found is None or not is_operator and (found.name != "square" or code == BOOL):
        return None
    return found.name


def operation(str name, int code):
    """Return (dtype of the inputs, dtype of the result); TypeError if not taken.

    None if no loop can be replayed.
    """
    cdef Ufunc ufunc = find_ufunc(name)
    cdef const Loop *loop = loop_of(ufunc, code)
    if loop.function == NULL or (
            ufunc.may_set_error and kind_of[loop.in_dtype] < KIND_FLOAT):
        return None
    return loop.in_dtype, loop.out_dtype


def nin_of(str name):
    """Return the number of operands of an operation."""
    return find_ufunc(name).nin


def public_ufunc(str name):
    """Return NumPy's ufunc of an operation."""
    return find_ufunc(name).public


def casts(int code, int into):
    """Whether a cast can be replayed."""
    return code != into and can_transfer(code, into)


def stores(int code, int into):
    """Whether values keep their kind when stored in an array of another dtype."""
    return can_store(code, into)


def check_fill(int code, value):
    """Raise TypeError for a value that `full_like` refuses."""
    creation.check_fill(code, value)


def stepped(Py_ssize_t stride, step):
    """Return the stride of every `step`-th element; `step` is any integer."""
    return layout.stepped(stride, max(-sys.maxsize, min(step, sys.maxsize)))


def is_distinct(tuple shape, tuple strides, Py_ssize_t itemsize):
    """Whether no two elements share memory; False if that is not clear."""
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef Py_ssize_t steps[MAXDIMS]
    cdef int axis, ndim = len(shape)
    for axis in range(ndim):
        lengths[axis] = shape[axis]
        steps[axis] = strides[axis]
    return aliasing.is_distinct(ndim, lengths, steps, itemsize)


def layout_of(tuple shape, list operands, Py_ssize_t itemsize):
    """Return (order of the axes, strides) of the result of operands of one shape."""
    cdef Axes axes = Axes(shape, operands)
    cdef int order[MAXDIMS]
    cdef int axis
    cdef Py_ssize_t step = itemsize
    order_axes(axes.ndim, axes.shape, axes.nops, axes.strides, True, order)
    found = [0] * axes.ndim
    for axis in reversed(range(axes.ndim)):
        found[order[axis]] = step
        step *= max(axes.shape[order[axis]], 1)
    return tuple([order[axis] for axis in range(axes.ndim)]), tuple(found)


def merged_axes(tuple shape, list operands):
    """Return (shape, strides of each operand) of a walk over operands of one shape.

    Axes are in the order of memory, and merged where possible. The last operand decides
    first.
    """
    cdef Axes axes = Axes(shape, operands)
    sort_axes(axes.ndim, axes.shape, axes.nops, axes.strides)
    axes.ndim = merge_axes(axes.ndim, axes.shape, axes.nops, axes.strides)
    return (shape_tuple(axes.ndim, axes.shape),
            [shape_tuple(axes.ndim, axes.strides[op]) for op in range(axes.nops)])


# A shape, and the strides of any number of operands.
@cython.final
cdef class Axes:
    cdef int ndim
    cdef int nops
    cdef Py_ssize_t shape[MAXDIMS]
    cdef StrideRow *strides

    def __cinit__(self, tuple shape, list operands):
        cdef int axis, op
        if len(shape) > MAXDIMS:
            raise ValueError(f"{len(shape)} axes: an array has at most {MAXDIMS}")
        self.ndim = len(shape)
        self.nops = len(operands)
        self.strides = <StrideRow *>malloc(
            max(self.nops, 1) * sizeof(StrideRow))
        if self.strides == NULL:
            raise MemoryError("no memory for the strides of a program's operands")
        for axis in range(self.ndim):
            self.shape[axis] = shape[axis]
            for op in range(self.nops):
                self.strides[op][axis] = operands[op][axis]

    def __dealloc__(self):
        free(self.strides)
