"""Loops of our own, for operations where NumPy's results differ from the standard's.

They have the signature of NumPy's loops, and `_compute.loops` uses them instead. Each
special case quotes its rule. Ordinary numbers are computed as in NumPy.
"""

from libc.math cimport (
    INFINITY, NAN, copysign, cos, exp, expm1, fabs, floor, fma, isfinite, isinf, isnan,
    sin, sinh, sqrt, tan,
)
from libc.stdlib cimport malloc

from ndx._lib.dtypes cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64

cdef extern from "ndx/internal/roots.h" nogil:
    void ndx_roots_f64(char *out, Py_ssize_t out_step, const char *x, Py_ssize_t step,
                       Py_ssize_t n)
    void ndx_roots_f32(char *out, Py_ssize_t out_step, const char *x, Py_ssize_t step,
                       Py_ssize_t n)

ctypedef fused Real:
    float
    double


# NumPy's loop, which ours calls for all other values.
cdef struct Original:
    LoopFunction function
    void *data


# The operations that have such loops.
cdef frozenset SPECIAL = frozenset(("expm1", "floor_divide", "pow", "tan", "tanh"))


cdef int own_loop(str name, int dtype, LoopFunction *function, void **data) except -1:
    cdef LoopFunction own = NULL
    cdef Original *original
    if name not in SPECIAL:
        return 0
    if name == "floor_divide":
        if dtype == FLOAT64:
            own = floor_divide_float64
        elif dtype == FLOAT32:
            own = floor_divide_float32
    elif name == "pow" and function[0] != NULL and dtype in (FLOAT32, FLOAT64):
        original = <Original *>malloc(sizeof(Original))
        if original == NULL:
            raise MemoryError()
        original.function = function[0]
        original.data = data[0]
        data[0] = original
        own = pow_float64 if dtype == FLOAT64 else pow_float32
    elif dtype == COMPLEX128 or dtype == COMPLEX64:
        own = complex_loop_of(name, dtype == COMPLEX128)
    if own != NULL:
        function[0] = own
    return 0


cdef LoopFunction complex_loop_of(str name, bint wide) noexcept:
    if name == "expm1":
        return expm1_complex128 if wide else expm1_complex64
    if name == "tan":
        return tan_complex128 if wide else tan_complex64
    if name == "tanh":
        return tanh_complex128 if wide else tanh_complex64
    return NULL


# ---------------------------------------------------------------- floor_divide

cdef inline Real floor_quotient(Real a, Real b) noexcept nogil:
    cdef Real quotient = a / b, result = <Real>floor(quotient)
    cdef double rest, most = 2.0 ** 53
    if Real is float:
        most = 2.0 ** 24
    # "This specification prefers floor division to match floor(divide(x1, x2))",
    # which makes x // inf 0 or -0, and inf // x infinite (NumPy: -1 and NaN).
    if result != quotient or b == 0 or isinf(b):
        return result
    # A quotient may have been rounded up to an integer: 1.0 // 0.1 is 9. The remainder
    # has few enough bits to be exact, so its sign tells. (Not all larger integers are
    # floats: there the result stays the one nearest to the quotient.)
    if fabs(result) <= most:
        rest = fma(-result, b, a)
        if rest != 0 and (b < 0) != (rest < 0):
            return result - 1
    return result


cdef inline void floor_divide(Real *out, char **args, Py_ssize_t count,
                              const Py_ssize_t *steps) noexcept nogil:
    cdef char *a = args[0]
    cdef char *b = args[1]
    cdef char *target = <char *>out
    for _ in range(count):
        (<Real *>target)[0] = floor_quotient((<Real *>a)[0], (<Real *>b)[0])
        a += steps[0]
        b += steps[1]
        target += steps[2]


cdef void floor_divide_float64(char **args, const Py_ssize_t *counts,
                               const Py_ssize_t *steps, void *data) noexcept nogil:
    floor_divide(<double *>args[2], args, counts[0], steps)


cdef void floor_divide_float32(char **args, const Py_ssize_t *counts,
                               const Py_ssize_t *steps, void *data) noexcept nogil:
    floor_divide(<float *>args[2], args, counts[0], steps)


# ---------------------------------------------------------------- pow

# If all elements have one exponent, NumPy takes square roots. "If x1_i is -infinity,
# x2_i is greater than 0, and x2_i is not an odd integer value, the result is
# +infinity"; "if x1_i is -0, ... the result is +0".

cdef void pow_float64(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                      void *data) noexcept nogil:
    cdef const Original *original = <const Original *>data
    if steps[1] == 0 and (<const double *>args[1])[0] == 0.5:
        ndx_roots_f64(args[2], steps[2], args[0], steps[0], counts[0])
    else:
        original.function(args, counts, steps, original.data)


cdef void pow_float32(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                      void *data) noexcept nogil:
    cdef const Original *original = <const Original *>data
    if steps[1] == 0 and (<const float *>args[1])[0] == 0.5:
        ndx_roots_f32(args[2], steps[2], args[0], steps[0], counts[0])
    else:
        original.function(args, counts, steps, original.data)


# ---------------------------------------------------------------- expm1

cdef inline void complex_expm1(double a, double b, double *real,
                               double *imag) noexcept nogil:
    cdef double half
    if isfinite(a) and isfinite(b):
        half = sin(b / 2)
        # "If a is either +0 or -0 and b is +0, the result is 0 + 0j".
        real[0] = expm1(a) * cos(b) - 2 * half * half + 0.0
        imag[0] = exp(a) * sin(b)
    elif isnan(a):
        # "If a is NaN and b is +0, the result is NaN + 0j", else NaN + NaN j; and
        # expm1(conj(x)) is conj(expm1(x)).
        real[0] = NAN
        imag[0] = b if b == 0 else NAN
    elif isfinite(a):
        # "If a is a finite number and b is +infinity (NaN), ... NaN + NaN j".
        real[0] = NAN
        imag[0] = NAN
    elif a < 0:
        # "If a is -infinity and b is a finite number, ... +0 * cis(b) - 1.0"; for
        # other b "-1 + 0j (sign of imaginary component is unspecified)".
        real[0] = -1
        imag[0] = copysign(0, sin(b) if isfinite(b) else b)
    else:
        # "If a is +infinity and b is +0, ... +infinity + 0j"; for other finite b
        # "+infinity * cis(b) - 1.0"; for the rest "infinity + NaN j".
        real[0] = INFINITY * cos(b) if isfinite(b) else INFINITY
        imag[0] = b if b == 0 else (INFINITY * sin(b) if isfinite(b) else NAN)


# ---------------------------------------------------------------- tanh, tan

cdef inline void complex_tanh(double a, double b, double *real,
                              double *imag) noexcept nogil:
    cdef double t, s, cosine, denominator
    if isinf(a):
        # "If a is +infinity and b is a positive ... finite number, the result is
        # 1 + 0j": C99 has 0 * sin(2 b) here. tanh(conj(x)) is conj(tanh(x)), and
        # tanh(-x) is -tanh(x).
        real[0] = copysign(1, a)
        imag[0] = copysign(0, b)
    elif isnan(a):
        # "If a is NaN and b is +0, the result is NaN + 0j", else NaN + NaN j.
        real[0] = a
        imag[0] = b if b == 0 else NAN
    elif not isfinite(b):
        # "If a is +0 and b is +infinity (NaN), the result is +0 + NaN j"; for other
        # finite a, NaN + NaN j. (C99 had NaN for both, before its revision.)
        real[0] = a if a == 0 else NAN
        imag[0] = NAN
    elif fabs(a) >= 22:
        # The result is close to 1 in double precision; sinh and cosh may overflow.
        real[0] = copysign(1, a)
        imag[0] = 4 * sin(b) * cos(b) * exp(-2 * fabs(a))
    else:
        # Kahan's algorithm: exact near the imaginary axis and the poles.
        t = tan(b)
        s = sinh(a)
        cosine = sqrt(1 + s * s)
        denominator = 1 + (1 + t * t) * s * s
        real[0] = (1 + t * t) * cosine * s / denominator
        imag[0] = t / denominator


cdef inline void complex_tan(double a, double b, double *real,
                             double *imag) noexcept nogil:
    # "as if the operation is implemented as -1j * tanh(x*1j)".
    complex_tanh(-b, a, imag, real)
    imag[0] = -imag[0]


# ---------------------------------------------------------------- loops of the complex

ctypedef void (*Function)(double a, double b, double *real, double *imag) \
    noexcept nogil


cdef inline void complex_loop(Real *out, Function function, char **args,
                              Py_ssize_t count, const Py_ssize_t *steps) noexcept nogil:
    cdef double real = 0, imag = 0
    cdef char *x = args[0]
    cdef char *target = <char *>out
    for _ in range(count):
        function((<Real *>x)[0], (<Real *>x)[1], &real, &imag)
        (<Real *>target)[0] = <Real>real
        (<Real *>target)[1] = <Real>imag
        x += steps[0]
        target += steps[1]


cdef void expm1_complex128(char **args, const Py_ssize_t *counts,
                           const Py_ssize_t *steps, void *data) noexcept nogil:
    complex_loop(<double *>args[1], complex_expm1, args, counts[0], steps)


cdef void expm1_complex64(char **args, const Py_ssize_t *counts,
                          const Py_ssize_t *steps, void *data) noexcept nogil:
    complex_loop(<float *>args[1], complex_expm1, args, counts[0], steps)


cdef void tan_complex128(char **args, const Py_ssize_t *counts,
                         const Py_ssize_t *steps, void *data) noexcept nogil:
    complex_loop(<double *>args[1], complex_tan, args, counts[0], steps)


cdef void tan_complex64(char **args, const Py_ssize_t *counts,
                        const Py_ssize_t *steps, void *data) noexcept nogil:
    complex_loop(<float *>args[1], complex_tan, args, counts[0], steps)


cdef void tanh_complex128(char **args, const Py_ssize_t *counts,
                          const Py_ssize_t *steps, void *data) noexcept nogil:
    complex_loop(<double *>args[1], complex_tanh, args, counts[0], steps)


cdef void tanh_complex64(char **args, const Py_ssize_t *counts,
                         const Py_ssize_t *steps, void *data) noexcept nogil:
    complex_loop(<float *>args[1], complex_tanh, args, counts[0], steps)
