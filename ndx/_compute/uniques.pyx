"""The distinct elements of an array: sorted, with runs of equal ones as one."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, locate, put, put_constant
from ndx._array.storage cimport BaseArray, new_empty, new_view, set_layout
from ndx._compute.copies cimport LARGE, in_c_order
from ndx._compute.packed_argsort cimport ranked
from ndx._compute.sorting cimport sort_in_place, sorting_indices
from ndx._files.mapping cimport find_mapping
from ndx._lib.dtypes cimport (
    BOOL, FLOAT32, FLOAT64, INT64, KIND_COMPLEX, UINT8, itemsize_of, kind_of,
)
from ndx._lib.layout cimport Walk

__all__ = ["unique_parts"]

# Integers are equal if their bits are.
ctypedef fused Item:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double


cdef struct Distinct:
    Py_ssize_t count             # elements
    Py_ssize_t found             # different ones
    int dtype


cdef inline Py_ssize_t count_runs(const Item *x, const int64_t *order,
                                  Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i, found = 1 if count else 0
    if order == NULL:
        for i in range(1, count):
            found += x[i] != x[i - 1]
    else:
        for i in range(1, count):
            found += x[order[i]] != x[order[i - 1]]
    return found


cdef inline void write_runs(const Item *x, Item *values, char **data,
                            Py_ssize_t count) noexcept nogil:
    cdef const int64_t *order = <const int64_t *>data[1]
    cdef int64_t *indices = <int64_t *>data[3]
    cdef int64_t *inverse = <int64_t *>data[4]
    cdef int64_t *counts = <int64_t *>data[5]
    cdef Py_ssize_t i, k = -1, at, first = 0
    for i in range(count):
        at = i if order == NULL else order[i]
        if i == 0 or x[at] != values[k]:
            if counts != NULL and k >= 0:
                counts[k] = i - first
            k += 1
            first = i
            values[k] = x[at]
            if indices != NULL:
                indices[k] = at
        if inverse != NULL:
            inverse[at] = k
    if counts != NULL and k >= 0:
        counts[k] = count - first


cdef void run_count(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Count the runs of operand 0, in the order of operand 1 if that is there."""
    cdef Distinct *job = <Distinct *>arg
    cdef const int64_t *order = <const int64_t *>data[1]
    cdef Py_ssize_t itemsize = itemsize_of[job.dtype]
    if job.dtype == FLOAT64:
        job.found = count_runs(<double *>data[0], order, job.count)
    elif job.dtype == FLOAT32:
        job.found = count_runs(<float *>data[0], order, job.count)
    elif itemsize == 8:
        job.found = count_runs(<uint64_t *>data[0], order, job.count)
    elif itemsize == 4:
        job.found = count_runs(<uint32_t *>data[0], order, job.count)
    elif itemsize == 2:
        job.found = count_runs(<uint16_t *>data[0], order, job.count)
    else:
        job.found = count_runs(<uint8_t *>data[0], order, job.count)


cdef void run_write(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write the values, and what else is wanted, to operands 2 to 5."""
    cdef const Distinct *job = <const Distinct *>arg
    cdef Py_ssize_t itemsize = itemsize_of[job.dtype]
    if job.dtype == FLOAT64:
        write_runs(<double *>data[0], <double *>data[2], data, job.count)
    elif job.dtype == FLOAT32:
        write_runs(<float *>data[0], <float *>data[2], data, job.count)
    elif itemsize == 8:
        write_runs(<uint64_t *>data[0], <uint64_t *>data[2], data, job.count)
    elif itemsize == 4:
        write_runs(<uint32_t *>data[0], <uint32_t *>data[2], data, job.count)
    elif itemsize == 2:
        write_runs(<uint16_t *>data[0], <uint16_t *>data[2], data, job.count)
    else:
        write_runs(<uint8_t *>data[0], <uint8_t *>data[2], data, job.count)


cdef void put_or_not(Operands *operands, BaseArray x) noexcept:
    if x is None:
        put_constant(operands, NULL)
    else:
        put(operands, x)


cdef BaseArray flat_copy(BaseArray x):
    """Return a copy, which nobody else sees, with one axis."""
    cdef BaseArray view = x
    if x.dtype == BOOL:
        # In memory of others any byte may stand for True. The cast to bool makes it 1.
        view = new_view(x, x.ndim)
        memcpy(view.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
        memcpy(view.strides, x.strides, x.ndim * sizeof(Py_ssize_t))
        view.dtype = UINT8
        set_layout(view)
    view = new_view(in_c_order(view, x.dtype), 1)
    view.shape[0] = x.size
    view.strides[0] = itemsize_of[x.dtype]
    set_layout(view)
    return view


def unique_parts(BaseArray x not None, bint with_indices, bint with_inverse,
                 bint with_counts):
    """Return the distinct values, their indices, the inverse, and the counts.

    Parts that are not asked for are None. All is None for an array that is left to
    NumPy: of complex numbers, on a device, or large and in a file.
    """
    cdef BaseArray flat, values, order = None, indices = None, inverse = None
    cdef BaseArray counts = None
    cdef Operands operands
    cdef Distinct job
    cdef bint large = x.size >= LARGE
    if x.block.device or kind_of[x.dtype] == KIND_COMPLEX or x.size == 0:
        return None
    if large:
        operands.count = 0
        put(&operands, x)
        locate(&operands)
        if find_mapping(operands.data[0], NULL):
            return None
    flat = flat_copy(x)
    if with_indices or with_inverse:
        order = ranked(flat, 0)
        if order is None:
            if large:
                return None
            order = sorting_indices(flat, 0, True)
    else:
        sort_in_place(flat, 0, True)
    job.count = x.size
    job.dtype = x.dtype
    operands.count = 0
    put(&operands, flat)
    put_or_not(&operands, order)
    compute_on(&operands, NULL, run_count, &job, large)
    values = new_empty(x.dtype, 1, &job.found)
    if with_indices:
        indices = new_empty(INT64, 1, &job.found)
    if with_inverse:
        inverse = new_empty(INT64, x.ndim, x.shape)
    if with_counts:
        counts = new_empty(INT64, 1, &job.found)
    put(&operands, values)
    put_or_not(&operands, indices)
    put_or_not(&operands, inverse)
    put_or_not(&operands, counts)
    compute_on(&operands, NULL, run_write, &job, large)
    return values, indices, inverse, counts
