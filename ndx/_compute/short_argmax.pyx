"""`argmax` and `argmin` of few elements, by NumPy's functions in C."""

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray
from ndx._compute.array_functions cimport SearchFunction, array_functions
from ndx._compute.copies cimport LARGE
from ndx._lib.dtypes cimport COMPLEX64
from ndx._lib.layout cimport Walk


cdef struct Search:
    SearchFunction function
    void *sample
    Py_ssize_t count


cdef void run_search(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Search *search = <const Search *>arg
    search.function(data[0], search.count, <Py_ssize_t *>data[1], search.sample)


cdef bint find_small(BaseArray x, BaseArray found, bint largest) except -1:
    """Write the flat index of the largest or smallest element of `x` to `found`.

    Return False, and write nothing, unless `x` is contiguous and has few elements.
    """
    cdef Operands operands
    cdef Search search
    if not 0 < x.size < LARGE or not x.c_contiguous or x.dtype >= COMPLEX64:
        return False
    search.function = array_functions[x.dtype].argmax if largest \
        else array_functions[x.dtype].argmin
    if search.function == NULL:
        return False
    search.sample = array_functions[x.dtype].sample
    search.count = x.size
    operands.count = 0
    put(&operands, x)
    put(&operands, found)
    compute_on(&operands, NULL, run_search, &search, False)
    return True
