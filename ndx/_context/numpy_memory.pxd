from ndx._lib.refusals cimport Refusals
from ndx.backends.base cimport Backend

# Allocates NumPy's arrays within a scope of ``use(numpy=True)``.
cdef class PlainNumpy:
    cdef Backend backend
    cdef Refusals refusals           # of allocations for NumPy
