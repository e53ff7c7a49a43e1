"""The place of the largest or the smallest element of a small array."""

from libc.stdint cimport int64_t

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray
from ndx._lib.dtypes cimport FLOAT32, FLOAT64, INT64
from ndx._lib.layout cimport Walk

cdef enum:
    FEW = 256                    # elements: NumPy's loops are faster, but begin slowly

ctypedef fused Real:
    int64_t
    float
    double


cdef struct Search:
    Py_ssize_t count
    int dtype
    bint largest


cdef inline Py_ssize_t place_of(const Real *x, Py_ssize_t count,
                                bint largest) noexcept nogil:
    """Return the index of the first extreme, or of the first NaN."""
    cdef Real best = x[0]
    cdef Py_ssize_t i, place = 0
    for i in range(count):
        if x[i] != x[i]:
            return i
        if (x[i] > best) if largest else (x[i] < best):
            best = x[i]
            place = i
    return place


cdef void run_search(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Search *search = <const Search *>arg
    cdef int64_t *found = <int64_t *>data[1]
    if search.dtype == FLOAT64:
        found[0] = place_of(<double *>data[0], search.count, search.largest)
    elif search.dtype == FLOAT32:
        found[0] = place_of(<float *>data[0], search.count, search.largest)
    else:
        found[0] = place_of(<int64_t *>data[0], search.count, search.largest)


cdef bint find_small(BaseArray x, BaseArray found, bint largest) except -1:
    """Write the place of the extreme of a flattened array to an int64.

    Return False, and write nothing, for arrays that are left to NumPy.
    """
    cdef Operands operands
    cdef Search search
    if not 0 < x.size <= FEW or not x.c_contiguous \
            or x.dtype not in (INT64, FLOAT32, FLOAT64):
        return False
    search.count = x.size
    search.dtype = x.dtype
    search.largest = largest
    operands.count = 0
    put(&operands, x)
    put(&operands, found)
    compute_on(&operands, NULL, run_search, &search, False)
    return True
