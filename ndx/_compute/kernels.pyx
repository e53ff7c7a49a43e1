"""Inner loops that NumPy has no ufunc for: copies, casts, and the choice of `where`.

They have the signature of NumPy's inner loops. Steps may be any number of bytes, also 0
for one value that is repeated. Inputs and output are the same elements, or disjoint.
"""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t,
)
from libc.string cimport memmove

from ndx._lib.dtypes cimport (
    BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64,
    KIND_COMPLEX, KIND_FLOAT, UINT8, UINT16, UINT32, UINT64, itemsize_of, kind_of,
)

cdef struct Pair:
    uint64_t first
    uint64_t second

ctypedef fused Bits:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    Pair

ctypedef fused From:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double

# Integers of one size are the same bits modulo their range.
ctypedef fused Whole:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused Real:
    float
    double

# What a bool can be cast to.
ctypedef fused Number:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double


# ---------------------------------------------------------------- copies

cdef inline void copy_elements(Bits *out, char *x, Py_ssize_t count, Py_ssize_t step,
                               Py_ssize_t out_step) noexcept nogil:
    cdef Bits value
    cdef char *target = <char *>out
    cdef Py_ssize_t i
    if out_step == sizeof(Bits):
        if step == 0:
            value = (<Bits *>x)[0]
            for i in range(count):
                out[i] = value
            return
        for i in range(count):
            out[i] = (<Bits *>(x + i * step))[0]
        return
    for i in range(count):
        (<Bits *>(target + i * out_step))[0] = (<Bits *>(x + i * step))[0]


cdef void run_copy(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil:
    """Copy elements; `data` is the item size."""
    cdef Py_ssize_t itemsize = <Py_ssize_t>data, n = counts[0]
    if steps[0] == itemsize and steps[1] == itemsize:
        memmove(args[1], args[0], n * itemsize)
    elif itemsize == 8:
        copy_elements(<uint64_t *>args[1], args[0], n, steps[0], steps[1])
    elif itemsize == 4:
        copy_elements(<uint32_t *>args[1], args[0], n, steps[0], steps[1])
    elif itemsize == 1:
        copy_elements(<uint8_t *>args[1], args[0], n, steps[0], steps[1])
    elif itemsize == 2:
        copy_elements(<uint16_t *>args[1], args[0], n, steps[0], steps[1])
    else:
        copy_elements(<Pair *>args[1], args[0], n, steps[0], steps[1])


# ---------------------------------------------------------------- where

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


# ---------------------------------------------------------------- casts

cdef bint can_convert(int dtype, int into) noexcept nogil:
    """Whether `run_cast` may convert between two dtypes: as NumPy, on every machine.

    Floats are not cast to integers: C leaves open what becomes of those out of range.
    """
    if dtype == into:
        return False
    if kind_of[dtype] == KIND_COMPLEX:
        return dtype == COMPLEX64 and into == COMPLEX128 or (
            dtype == COMPLEX128 and into == COMPLEX64)
    if kind_of[into] == KIND_COMPLEX:
        return True
    return into != BOOL and (
        kind_of[dtype] < KIND_FLOAT or kind_of[into] == KIND_FLOAT)


cdef bint can_cast(int dtype, int into) noexcept nogil:
    """Whether `run_cast` may convert between two dtypes; also real numbers to bools."""
    return can_convert(dtype, into) or (
        into == BOOL and dtype != BOOL and kind_of[dtype] <= KIND_FLOAT)


cdef void *cast_data(int dtype, int into) noexcept nogil:
    return <void *><uintptr_t>(dtype * 256 + into)


cdef inline void convert(From *x, Real *out, Py_ssize_t count, Py_ssize_t step,
                         Py_ssize_t out_step) noexcept nogil:
    cdef Py_ssize_t i
    if step == sizeof(From) and out_step == sizeof(Real):
        for i in range(count):
            out[i] = <Real>x[i]
        return
    for i in range(count):
        (<Real *>(<char *>out + i * out_step))[0] = \
            <Real>(<From *>(<char *>x + i * step))[0]


cdef inline void cut(From *x, Whole *out, Py_ssize_t count, Py_ssize_t step,
                     Py_ssize_t out_step) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        (<Whole *>(<char *>out + i * out_step))[0] = \
            <Whole>(<From *>(<char *>x + i * step))[0]


cdef inline void test(From *x, uint8_t *out, Py_ssize_t count, Py_ssize_t step,
                      Py_ssize_t out_step) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        out[i * out_step] = (<From *>(<char *>x + i * step))[0] != 0


cdef inline void read_bools(Number *out, char *x, Py_ssize_t count, Py_ssize_t step,
                            Py_ssize_t out_step) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        # Any byte but 0 is true.
        (<Number *>(<char *>out + i * out_step))[0] = (<uint8_t *>x)[i * step] != 0


cdef void convert_bools(char *x, char *out, int into, Py_ssize_t n, Py_ssize_t step,
                        Py_ssize_t out_step) noexcept nogil:
    if into == FLOAT64 or into == COMPLEX128:
        read_bools(<double *>out, x, n, step, out_step)
    elif into == FLOAT32 or into == COMPLEX64:
        read_bools(<float *>out, x, n, step, out_step)
    elif itemsize_of[into] == 8:
        read_bools(<uint64_t *>out, x, n, step, out_step)
    elif itemsize_of[into] == 4:
        read_bools(<uint32_t *>out, x, n, step, out_step)
    elif itemsize_of[into] == 2:
        read_bools(<uint16_t *>out, x, n, step, out_step)
    else:
        read_bools(<uint8_t *>out, x, n, step, out_step)
    if into == COMPLEX128:
        zero(<double *>out + 1, n, out_step)
    elif into == COMPLEX64:
        zero(<float *>out + 1, n, out_step)


cdef inline void zero(Real *out, Py_ssize_t count, Py_ssize_t step) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        (<Real *>(<char *>out + i * step))[0] = 0


cdef void convert_from(From *x, char *out, int into, Py_ssize_t n, Py_ssize_t step,
                       Py_ssize_t out_step) noexcept nogil:
    if into == BOOL:
        test(x, <uint8_t *>out, n, step, out_step)
    elif into == FLOAT64:
        convert(x, <double *>out, n, step, out_step)
    elif into == FLOAT32:
        convert(x, <float *>out, n, step, out_step)
    elif into == COMPLEX128:
        convert(x, <double *>out, n, step, out_step)
        zero(<double *>out + 1, n, out_step)
    elif into == COMPLEX64:
        convert(x, <float *>out, n, step, out_step)
        zero(<float *>out + 1, n, out_step)
    elif From is float or From is double:
        return
    elif itemsize_of[into] == 8:
        cut(x, <uint64_t *>out, n, step, out_step)
    elif itemsize_of[into] == 4:
        cut(x, <uint32_t *>out, n, step, out_step)
    elif itemsize_of[into] == 2:
        cut(x, <uint16_t *>out, n, step, out_step)
    else:
        cut(x, <uint8_t *>out, n, step, out_step)


cdef void run_cast(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil:
    """Convert elements between the dtypes in `data`."""
    cdef int dtype = <int>(<uintptr_t>data // 256), into = <int>(<uintptr_t>data % 256)
    cdef char *x = args[0]
    cdef char *out = args[1]
    cdef Py_ssize_t n = counts[0], step = steps[0], out_step = steps[1]
    if dtype == COMPLEX128:
        convert(<double *>x, <float *>out, n, step, out_step)
        convert(<double *>x + 1, <float *>out + 1, n, step, out_step)
    elif dtype == COMPLEX64:
        convert(<float *>x, <double *>out, n, step, out_step)
        convert(<float *>x + 1, <double *>out + 1, n, step, out_step)
    elif dtype == FLOAT64:
        convert_from(<double *>x, out, into, n, step, out_step)
    elif dtype == FLOAT32:
        convert_from(<float *>x, out, into, n, step, out_step)
    elif dtype == INT64:
        convert_from(<int64_t *>x, out, into, n, step, out_step)
    elif dtype == INT32:
        convert_from(<int32_t *>x, out, into, n, step, out_step)
    elif dtype == INT16:
        convert_from(<int16_t *>x, out, into, n, step, out_step)
    elif dtype == INT8:
        convert_from(<int8_t *>x, out, into, n, step, out_step)
    elif dtype == UINT64:
        convert_from(<uint64_t *>x, out, into, n, step, out_step)
    elif dtype == UINT32:
        convert_from(<uint32_t *>x, out, into, n, step, out_step)
    elif dtype == UINT16:
        convert_from(<uint16_t *>x, out, into, n, step, out_step)
    elif dtype == UINT8:
        convert_from(<uint8_t *>x, out, into, n, step, out_step)
    elif dtype == BOOL:
        convert_bools(x, out, into, n, step, out_step)
