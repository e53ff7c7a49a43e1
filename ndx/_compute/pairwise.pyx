"""Sums of floats by vectors, in the order of NumPy's pairwise summation.

NumPy's own loop adds with the vectors of the oldest CPUs. The sums here take a fraction
of its time, and are equal to the last bit.
"""

from libc.string cimport memcpy

import numpy as np

from ndx._lib.dtypes cimport FLOAT32, FLOAT64, dtype_object

cdef extern from "ndx/internal/pairwise.h" nogil:
    SumFunction ndx_find_sum(bint wide) noexcept

# Around the lengths at which a stretch is halved, once and more often.
cdef list LENGTHS = [
    1, 7, 8, 9, 100, 128, 129, 143, 256, 257, 271, 488, 505, 512, 513, 1003, 2053, 4999]


cdef SumFunction find_sum(str name, int dtype):
    """Return a vector sum for the operation of a name; NULL: NumPy's loop is used.

    Each sum is compared with NumPy's first, whose order might change.
    """
    cdef SumFunction function = NULL
    cdef double total
    cdef float single = 0
    cdef const unsigned char[::1] x
    if name == "add" and (dtype == FLOAT32 or dtype == FLOAT64):
        function = ndx_find_sum(dtype == FLOAT64)
    if function == NULL:
        return NULL
    for n in LENGTHS:
        # Products of no simple pattern, of both signs, whose sums are rounded.
        values = np.sin(np.arange(n) ** 2.0).astype(dtype_object(dtype))
        x = values.view(np.uint8)
        total = 0.0
        function(<char *>&total, <const char *>&x[0], n)
        memcpy(&single, &total, sizeof(float))
        if (total if dtype == FLOAT64 else single) != np.add.reduce(values):
            return NULL
    return function
