"""`searchsorted` in a vector, on threads if there are many values."""

from libc.stdint cimport int64_t

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.copies cimport in_c_order
from ndx._compute.threads cimport parallel_for
from ndx._compute.transfers cimport LARGE
from ndx._lib.dtypes cimport COMPLEX64, INT64, itemsize_of
from ndx._lib.layout cimport Walk

cdef extern from "ndx/internal/search.h" nogil:
    Py_ssize_t ndx_ordered(const char *x, Py_ssize_t step, Py_ssize_t n, int dtype)
    void ndx_places(int64_t *out, const char *x, Py_ssize_t step, Py_ssize_t n,
                    Py_ssize_t ordered, const char *values, Py_ssize_t count,
                    bint right, int dtype)

cdef enum:
    PART = 4096                  # values that a thread takes at a time
    WORTHWHILE = 1 << 19         # steps of all searches from which threads pay

# A search; `data` is the vector, the values and the result.
cdef struct Search:
    int dtype
    bint right
    bint threads
    Py_ssize_t step
    Py_ssize_t n
    Py_ssize_t ordered
    Py_ssize_t count
    char **data


cdef void search_part(void *arg, Py_ssize_t index) noexcept nogil:
    cdef const Search *job = <const Search *>arg
    cdef Py_ssize_t start = index * PART
    ndx_places(<int64_t *>job.data[2] + start, job.data[0], job.step, job.n,
               job.ordered, job.data[1] + start * itemsize_of[job.dtype],
               min(PART, job.count - start), job.right, job.dtype)


cdef void run_search(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Search *job = <Search *>arg
    job.data = data
    job.ordered = ndx_ordered(data[0], job.step, job.n, job.dtype)
    if job.threads:
        parallel_for((job.count + PART - 1) // PART, search_part, job)
    else:
        ndx_places(<int64_t *>data[2], data[0], job.step, job.n, job.ordered, data[1],
                   job.count, job.right, job.dtype)


cdef BaseArray search(BaseArray x, BaseArray values, bint right):
    """Return where values belong in a sorted vector; None: left to NumPy."""
    cdef BaseArray result
    cdef Operands operands
    cdef Search job
    cdef Py_ssize_t steps = 1
    if x.dtype != values.dtype or x.dtype >= COMPLEX64 or x.ndim != 1:
        return None
    if not values.c_contiguous:
        values = in_c_order(values, values.dtype)
    result = new_empty(INT64, values.ndim, values.shape)
    job.dtype = x.dtype
    job.right = right
    job.step = x.strides[0]
    job.n = x.size
    job.count = values.size
    while x.size >> steps:
        steps += 1
    job.threads = job.count > PART and job.count * steps >= WORTHWHILE
    operands.count = 0
    put(&operands, x)
    put(&operands, values)
    put(&operands, result)
    compute_on(&operands, NULL, run_search, &job, job.count >= LARGE // 16)
    return result
