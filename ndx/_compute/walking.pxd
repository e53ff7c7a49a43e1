"""Steps of a walk, for functions that compute on one row after the other."""

from ndx._lib.layout cimport Walk

cdef inline void start_walk(int count, Py_ssize_t *index) noexcept nogil:
    """Start a walk over the first `count` axes."""
    cdef int axis
    for axis in range(count):
        index[axis] = 0

cdef inline bint step_walk(const Walk *walk, int count, Py_ssize_t *index, int nops,
                           char **data) noexcept nogil:
    """Move `data` one step on along the first `count` axes; False at the end."""
    cdef int op, axis = count - 1
    while axis >= 0:
        index[axis] += 1
        for op in range(nops):
            data[op] += walk.strides[op][axis]
        if index[axis] < walk.shape[axis]:
            return True
        index[axis] = 0
        for op in range(nops):
            data[op] -= walk.strides[op][axis] * walk.shape[axis]
        axis -= 1
    return False
