"""The example of docs/c_api.md."""

cimport ndx as cndx

cndx.import_ndx()            # optional: an incompatible ndx fails at import

def total(x):
    cdef cndx.ArrayView view
    cdef double result = 0
    cdef Py_ssize_t i
    cndx.acquire(x, &view, cndx.C_CONTIGUOUS)
    try:
        if view.dtype != cndx.FLOAT64:
            raise TypeError("total takes float64")
        with nogil:
            for i in range(view.size):
                result += (<const double *>view.data)[i]
    finally:
        cndx.release(&view)
    return result
