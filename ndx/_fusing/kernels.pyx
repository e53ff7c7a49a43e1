"""Inner loops that NumPy has no ufunc for: copies, casts, sums, the choice of `where`.

They have the signature of NumPy's inner loops. Steps may be any number of bytes, also 0
for one value that is repeated. Inputs and output are the same elements, or disjoint.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memmove

from ndx._compute.loops cimport Loop
from ndx._compute.transfers cimport Cast, Transfer, transfer_block
from ndx._lib.dtypes cimport itemsize_of

cdef struct Pair:
    uint64_t first
    uint64_t second

ctypedef fused Bits:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    Pair


cdef void run_cast(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil:
    """Convert elements; `data` is `_compute.transfers.cast_between` of two dtypes."""
    (<Cast>data)(args[1], steps[1], args[0], steps[0], counts[0])


cdef void run_copy(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil:
    """Copy elements; `data` is the item size."""
    cdef Transfer how
    how.cast = NULL
    how.itemsize = <Py_ssize_t>data
    if steps[0] == how.itemsize and steps[1] == how.itemsize:
        memmove(args[1], args[0], counts[0] * how.itemsize)
    else:
        transfer_block(&how, args[1], 0, steps[1], args[0], 0, steps[0], 1, counts[0])


cdef void run_sum(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                  void *data) noexcept nogil:
    """Add elements to a total, or to several; `data` is the `Loop`, which has sums."""
    cdef const Loop *loop = <const Loop *>data
    if steps[0] == 0 and steps[1] == itemsize_of[loop.in_dtype]:
        loop.sum(args[0], args[1], counts[0])
    else:
        loop.function(args, counts, steps, loop.data)


cdef inline void select(Bits *out, uint8_t *condition, char *x1, char *x2,
                        Py_ssize_t count, const Py_ssize_t *steps) noexcept nogil:
    cdef Bits *a = <Bits *>x1
    cdef Bits *b = <Bits *>x2
    cdef Bits first, second
    cdef char *target
    cdef Py_ssize_t i, item = sizeof(Bits)
    # Without branches, so that the compiler can use vectors.
    if steps[0] == 1 and steps[3] == item:
        if steps[1] == item and steps[2] == item:
            for i in range(count):
                first, second = a[i], b[i]
                out[i] = first if condition[i] else second
            return
        if steps[1] == 0 and steps[2] == item:
            first = a[0]
            for i in range(count):
                second = b[i]
                out[i] = first if condition[i] else second
            return
        if steps[1] == item and steps[2] == 0:
            second = b[0]
            for i in range(count):
                first = a[i]
                out[i] = first if condition[i] else second
            return
    target = <char *>out
    for _ in range(count):
        (<Bits *>target)[0] = (<Bits *>x1)[0] if condition[0] else (<Bits *>x2)[0]
        condition += steps[0]
        x1 += steps[1]
        x2 += steps[2]
        target += steps[3]


cdef void run_select(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                     void *data) noexcept nogil:
    """Choose between two operands by bools, the first one; `data` is the item size."""
    cdef Py_ssize_t itemsize = <Py_ssize_t>data, n = counts[0]
    cdef uint8_t *condition = <uint8_t *>args[0]
    if itemsize == 8:
        select(<uint64_t *>args[3], condition, args[1], args[2], n, steps)
    elif itemsize == 4:
        select(<uint32_t *>args[3], condition, args[1], args[2], n, steps)
    elif itemsize == 1:
        select(<uint8_t *>args[3], condition, args[1], args[2], n, steps)
    elif itemsize == 2:
        select(<uint16_t *>args[3], condition, args[1], args[2], n, steps)
    else:
        select(<Pair *>args[3], condition, args[1], args[2], n, steps)
