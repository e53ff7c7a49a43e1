"""The inner loops of ufuncs: NumPy's own (`_lib.numpy_private`), called directly.

Loops are replaced if they are wrong for some steps (`_compute.loop_checks`), if their
results differ from the standard's, or if ours are faster.
"""

from libc.math cimport (
    INFINITY, NAN, copysign, cos, exp, expm1, fabs, floor, fma, isfinite, isinf, isnan,
    sin, sinh, sqrt, tan,
)
from libc.stdint cimport uintptr_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

import numpy as np

from ndx._compute.costs cimport cycles_of
from ndx._compute.loop_checks cimport mend
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX128, COMPLEX64, FLOAT32, FLOAT64, INT64, KIND_COMPLEX, KIND_INT,
    NDTYPES, UINT64, dtype_object, itemsize_of, kind_of,
)
from ndx._lib.free_threading cimport ndx_keep_for_ever, ndx_set_int
from ndx._lib.layout cimport MAXDIMS, MAXOPS, Walk
from ndx._lib.numpy_private cimport loop_at


# ---- Sums of floats by vectors -------------------------------------------------------
# NumPy's own loop adds with the vectors of the oldest CPUs. The sums here take a
# fraction of its time, and are equal to the last bit.

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


# ---- An array and a constant ---------------------------------------------------------
# NumPy computes these with vectors only if no operand has a step of 0. So the constant
# is repeated in a buffer, and the same loop runs over blocks of that length: 1.3 to 9
# times as fast.

cdef extern from "ndx/internal/fill.h" nogil:
    void ndx_fill(char *dst, size_t nbytes, const char *item, size_t itemsize) noexcept

cdef enum:
    BUFFER = 2048                # bytes
    LINE = 64
    LEAST = 64                   # elements

# By measurement. The loops of bools are those of uint8.
cdef frozenset OF_ALL = frozenset(("maximum", "minimum"))
cdef frozenset OF_BOOLS = frozenset((
    "add", "bitwise_and", "bitwise_or", "logical_and", "logical_or", "multiply",
))


# The loop that runs over the blocks.
cdef struct Plain:
    LoopFunction function
    void *data
    Py_ssize_t itemsize


cdef int spread_constants(str name, int dtype, LoopFunction *function,
                          void **data) except -1:
    cdef Plain *plain
    if kind_of[dtype] == KIND_COMPLEX or not (
            name in OF_ALL or (dtype == BOOL and name in OF_BOOLS)):
        return 0
    # Loops are kept as long as the process.
    plain = <Plain *>malloc(sizeof(Plain))
    if plain == NULL:
        raise MemoryError()
    plain.function = function[0]
    plain.data = data[0]
    plain.itemsize = itemsize_of[dtype]
    function[0] = run_spread
    data[0] = plain
    return 0


cdef void run_spread(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                     void *data) noexcept nogil:
    """Run a loop; has the signature of NumPy's loops."""
    cdef const Plain *plain = <const Plain *>data
    cdef int constant = 0 if steps[0] == 0 else 1
    if counts[0] < LEAST or steps[constant] != 0 or steps[2] != plain.itemsize \
            or steps[1 - constant] != plain.itemsize:
        plain.function(args, counts, steps, plain.data)
    else:
        run_blocks(plain, args, counts[0], constant)


cdef void run_blocks(const Plain *plain, char **args, Py_ssize_t count,
                     int constant) noexcept nogil:
    cdef char[BUFFER + LINE] room
    # Vectors that lie across two cache lines take twice as long.
    cdef char *buffer = room + (-<uintptr_t>room & (LINE - 1))
    cdef char *blocks[3]
    cdef Py_ssize_t itemsize = plain.itemsize, done = 0, n
    cdef Py_ssize_t[3] steps = [itemsize, itemsize, itemsize]
    n = min(count, BUFFER // itemsize)
    ndx_fill(buffer, n * itemsize, args[constant], itemsize)
    while done < count:
        n = min(count - done, BUFFER // itemsize)
        blocks[constant] = buffer
        blocks[1 - constant] = args[1 - constant] + done * itemsize
        blocks[2] = args[2] + done * itemsize
        plain.function(blocks, &n, steps, plain.data)
        done += n


# ---- The standard's special values ---------------------------------------------------
# They have the signature of NumPy's loops, and `_compute.loops` uses them instead. Each
# special case quotes its rule. Ordinary numbers are computed as in NumPy.

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


# ---- Loops of ufuncs -----------------------------------------------------------------

cdef extern from "ndx/internal/move.h" nogil:
    void ndx_move(char *out, Py_ssize_t out_row, Py_ssize_t out_step, const char *x,
                  Py_ssize_t x_row, Py_ssize_t x_step, Py_ssize_t rows,
                  Py_ssize_t length, size_t itemsize)

cdef enum:
    GATHERED = 32768             # bytes reduced together
    SHORT = 24                   # elements: see `Loop.short_row`
    BLOCK = 1024                 # elements computed together
    LEAST_GATHERED = 96          # elements for which that pays

# Loops that take long to begin: those of one operand clear the floating-point flags,
# `exp` and `log` of float32 set the rounding.
cdef dict SHORT_ROWS = {
    **dict.fromkeys(("abs", "isfinite", "isinf", "isnan", "negative", "signbit"), 96),
    **dict.fromkeys(("equal", "greater", "greater_equal", "less", "less_equal",
                     "maximum", "minimum", "not_equal", "sign"), 48),
    **dict.fromkeys(("exp", "log"), 256),
}

# ndx's name -> NumPy's name, and the kinds of dtype (as in np.dtype.kind) that the
# operation takes. A final 'F': other real dtypes are computed in float64.
cdef dict UFUNCS = {
    "abs": ("absolute", "iufc"),
    "acos": ("arccos", "fcF"),
    "acosh": ("arccosh", "fcF"),
    "add": ("add", "biufc"),
    "asin": ("arcsin", "fcF"),
    "asinh": ("arcsinh", "fcF"),
    "atan": ("arctan", "fcF"),
    "atan2": ("arctan2", "fF"),
    "atanh": ("arctanh", "fcF"),
    "bitwise_and": ("bitwise_and", "biu"),
    "bitwise_invert": ("invert", "biu"),
    "bitwise_left_shift": ("left_shift", "iu"),
    "bitwise_or": ("bitwise_or", "biu"),
    "bitwise_right_shift": ("right_shift", "iu"),
    "bitwise_xor": ("bitwise_xor", "biu"),
    "cbrt": ("cbrt", "fF"),
    "ceil": ("ceil", "iuf"),
    "conj": ("conjugate", "iufc"),
    "copysign": ("copysign", "fF"),
    "cos": ("cos", "fcF"),
    "cosh": ("cosh", "fcF"),
    "deg2rad": ("deg2rad", "fF"),
    "degrees": ("degrees", "fF"),
    "divide": ("true_divide", "fcF"),
    "divmod": ("divmod", "iuf"),
    "equal": ("equal", "biufc"),
    "exp": ("exp", "fcF"),
    "exp2": ("exp2", "fcF"),
    "expm1": ("expm1", "fcF"),
    "fabs": ("fabs", "fF"),
    "float_power": ("float_power", "fcF"),
    "floor": ("floor", "iuf"),
    "floor_divide": ("floor_divide", "iuf"),
    "fmax": ("fmax", "biufc"),
    "fmin": ("fmin", "biufc"),
    "gcd": ("gcd", "iu"),
    "greater": ("greater", "biufc"),
    "greater_equal": ("greater_equal", "biufc"),
    "heaviside": ("heaviside", "fF"),
    "hypot": ("hypot", "fF"),
    "isfinite": ("isfinite", "biufc"),
    "isinf": ("isinf", "biufc"),
    "isnan": ("isnan", "biufc"),
    "lcm": ("lcm", "iu"),
    "less": ("less", "biufc"),
    "less_equal": ("less_equal", "biufc"),
    "log": ("log", "fcF"),
    "log10": ("log10", "fcF"),
    "log1p": ("log1p", "fcF"),
    "log2": ("log2", "fcF"),
    "logaddexp": ("logaddexp", "fF"),
    "logical_and": ("logical_and", "biufc"),
    "logical_not": ("logical_not", "biufc"),
    "logical_or": ("logical_or", "biufc"),
    "logical_xor": ("logical_xor", "biufc"),
    "matmul": ("matmul", "biufc"),
    "maximum": ("maximum", "biufc"),
    "minimum": ("minimum", "biufc"),
    "modf": ("modf", "fF"),
    "multiply": ("multiply", "biufc"),
    "negative": ("negative", "iufc"),
    "nextafter": ("nextafter", "fF"),
    "not_equal": ("not_equal", "biufc"),
    "positive": ("positive", "iufc"),
    "pow": ("power", "iufc"),
    "rad2deg": ("rad2deg", "fF"),
    "radians": ("radians", "fF"),
    "reciprocal": ("reciprocal", "fcF"),
    "remainder": ("remainder", "iuf"),
    "rint": ("rint", "fcF"),
    "sign": ("sign", "iufc"),
    "signbit": ("signbit", "fF"),
    "sin": ("sin", "fcF"),
    "sinh": ("sinh", "fcF"),
    "sqrt": ("sqrt", "fcF"),
    "square": ("square", "iufc"),
    "subtract": ("subtract", "iufc"),
    "tan": ("tan", "fcF"),
    "tanh": ("tanh", "fcF"),
    "trunc": ("trunc", "iuf"),
    "vecdot": ("vecdot", "biufc"),
}

cdef dict KIND_NAMES = {"b": "bool", "i": "signed integer", "u": "unsigned integer",
                        "f": "real floating-point", "c": "complex floating-point"}
cdef dict found = {}
cdef dict found_like_numpy = {}


cdef class Ufunc:
    """One elementwise operation: its loop for each dtype of its operands.

    Its results are the standard's or, if `like_numpy`, NumPy's. A loop is looked for,
    and checked, when it is first asked for.
    """

    def __cinit__(self, str name, bint like_numpy=False):
        cdef int dtype
        public_name, self.domain = UFUNCS[name]
        self.name = name
        self.like_numpy = like_numpy
        self.public = getattr(np, public_name)
        self.nin = self.public.nin
        self.nout = self.public.nout
        # For integers to negative powers the loop sets a Python error.
        self.may_set_error = name == "pow"
        self.cycles = cycles_of(name)
        for dtype in range(NDTYPES):
            self.loops[dtype].in_dtype = UNKNOWN
        self.mixed[0].in_dtype = self.mixed[1].in_dtype = UNKNOWN
        ndx_keep_for_ever(self)

    cdef int find(self, int dtype) except -1:
        """Find the loop for operands that were promoted to one dtype."""
        cdef Loop loop = self.no_loop()
        kind = dtype_object(dtype).kind
        if kind in self.domain:
            self.choose(&loop, dtype)
        elif kind != "c" and "F" in self.domain:
            self.choose(&loop, FLOAT64)
        keep(&self.loops[dtype], &loop)
        return 0

    cdef Loop no_loop(self) except *:
        cdef Loop loop
        loop.function = NULL
        loop.data = NULL
        loop.sum = NULL
        loop.in_dtype = loop.second_dtype = loop.out_dtype = -1
        loop.short_row = SHORT_ROWS.get(self.name, SHORT)
        return loop

    cdef int choose(self, Loop *loop, int dtype) except -1:
        """Take NumPy's loop for a dtype, if there is one, or what replaces it."""
        cdef int i
        i, loop.out_dtype = signatures_of(self.public).get(dtype, (-1, -1))
        if loop.out_dtype < 0:
            return 0
        loop.in_dtype = loop.second_dtype = dtype
        loop.function = loop_at(self.public, i, &loop.data)
        if not self.like_numpy:
            own_loop(self.name, dtype, &loop.function, &loop.data)
        if loop.function == NULL:
            return 0
        loop.sum = find_sum(self.name, dtype)
        if self.public.signature is None and self.nout == 1:
            # NumPy's powers to one exponent, 0.5, are meant to be others.
            if not self.like_numpy or self.name != "pow":
                mend(self.name, self.nin, dtype, loop.out_dtype, &loop.function,
                     &loop.data)
            if self.nin == 2 and dtype == loop.out_dtype:
                spread_constants(self.name, dtype, &loop.function, &loop.data)
        return 0

    cdef int find_mixed(self, int i) except -1:
        """Find the loop of int64 with uint64 (0), or of uint64 with int64 (1)."""
        cdef int[2] dtypes = [INT64, UINT64]
        cdef Loop loop = self.no_loop()
        cdef list signatures = list(self.public.types)
        signature = ("qQ->?", "Qq->?")[i]
        if signature in signatures:
            loop.in_dtype, loop.second_dtype = dtypes[i], dtypes[1 - i]
            loop.out_dtype = BOOL
            loop.function = loop_at(
                self.public, signatures.index(signature), &loop.data)
            if loop.function != NULL:
                # Elements of both dtypes are the same bytes in these trials.
                mend(self.name, self.nin, INT64, BOOL, &loop.function, &loop.data)
        keep(&self.mixed[i], &loop)
        return 0

    cdef int require(self, int dtype) except -1:
        """Find the loop for a dtype; TypeError if the operation does not take it."""
        if any_loop(self, dtype).in_dtype >= 0:
            return 0
        valid = [KIND_NAMES[kind] for kind in self.domain if kind in KIND_NAMES]
        raise TypeError(
            f"{self.name} does not take {dtype_object(dtype)} arrays; valid are "
            f"{', '.join(valid)} dtypes")


cdef extern from "ndx/lock.h" nogil:
    ctypedef int ndx_lock
    void ndx_lock_acquire(ndx_lock *lock)
    void ndx_lock_release(ndx_lock *lock)

cdef ndx_lock keeping


cdef void keep(Loop *place, const Loop *loop) noexcept:
    """Keep a loop for good, unless another thread has found it meanwhile.

    That one is in use, maybe without the GIL.
    """
    ndx_lock_acquire(&keeping)
    if place.in_dtype == UNKNOWN:
        place.function = loop.function
        place.data = loop.data
        place.second_dtype = loop.second_dtype
        place.out_dtype = loop.out_dtype
        place.short_row = loop.short_row
        place.sum = loop.sum
        # Last: who sees it uses the rest.
        ndx_set_int(&place.in_dtype, loop.in_dtype)
    ndx_lock_release(&keeping)


cdef int code_of(object dtype):
    cdef int code
    for code in range(NDTYPES):
        if dtype_object(code) == dtype:
            return code
    return -1


# The codes of dtypes by NumPy's characters. Two characters may mean one dtype.
cdef dict CODES = {char: code_of(np.dtype(char)) for char in np.typecodes["All"]}


cdef dict signatures_of(object ufunc):
    """Return the index and the outputs' dtype of the first loop for each dtype."""
    cdef dict signatures = {}
    # The public attribute: NumPy 2.5 hides the C field from Cython.
    for i, signature in enumerate(ufunc.types):
        inputs, _, outputs = signature.partition("->")
        codes = {CODES.get(char, -1) for char in inputs}
        results = {CODES.get(char, -1) for char in outputs}
        if len(codes) == 1 and -1 not in codes:
            signatures.setdefault(
                codes.pop(), (i, results.pop() if len(results) == 1 else -1))
    return signatures


cdef const Loop *mixed_loop(Ufunc ufunc, int a, int b) except? NULL:
    """Return the loop for uint64 with a signed integer, which no dtype holds both.

    NULL: for other dtypes, and operations that compute in their common one, float64.
    """
    cdef int i
    if kind_of[a] == KIND_INT and b == UINT64:
        i = 0
    elif a == UINT64 and kind_of[b] == KIND_INT:
        i = 1
    else:
        return NULL
    if ufunc.mixed[i].in_dtype == UNKNOWN:
        ufunc.find_mixed(i)
    return &ufunc.mixed[i] if ufunc.mixed[i].in_dtype >= 0 else NULL


cdef Ufunc find_ufunc(str name):
    """Return the operation with a name of ndx; one object for each."""
    ufunc = found.get(name)
    if ufunc is None:
        ufunc = found[name] = Ufunc(name)
    return ufunc


cdef Ufunc find_numpy_ufunc(str name):
    """Return the operation with a name of ndx, with NumPy's results."""
    if name not in SPECIAL:
        return find_ufunc(name)
    ufunc = found_like_numpy.get(name)
    if ufunc is None:
        ufunc = found_like_numpy[name] = Ufunc(name, True)
    return ufunc


cdef void run_elementwise(const Loop *loop, int nargs, char **data,
                          const Walk *walk) noexcept nogil:
    """Run a loop over all elements: inputs first, then the output."""
    cdef char *args[MAXOPS]
    cdef Py_ssize_t inner[MAXOPS]
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *start[MAXOPS]
    cdef Py_ssize_t count = 1
    cdef int op, last = walk.ndim - 1
    start[1] = start[2] = NULL
    for op in range(nargs):
        start[op] = data[op]
        inner[op] = walk.strides[op][last] if last >= 0 else 0
    if last >= 0:
        count = walk.shape[last]
    start_walk(last, index)
    while True:
        # Copy the pointers: some loops change them. A loop over all of them would
        # become a call of memcpy, which takes longer than the rest of a short row.
        args[0] = start[0]
        args[1] = start[1]
        args[2] = start[2]
        for op in range(3, nargs):
            args[op] = start[op]
        loop.function(args, &count, inner, loop.data)
        if not step_walk(walk, last, index, nargs, start):
            return


cdef void run_short(const Loop *loop, int nargs, char **data, const Walk *walk,
                    const Py_ssize_t *itemsizes) noexcept nogil:
    """Like `run_elementwise`, for innermost axes that may be short.

    A loop takes longer to begin than to compute a few elements. Where operands are not
    in order along the last two axes, blocks of them are copied to and from a buffer.
    """
    cdef char[16 * BLOCK] buffers[3]
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t inner[3]
    cdef char *start[3]
    cdef char *args[3]
    cdef bint flat[3]
    cdef bint filled[3]
    cdef int op, last = walk.ndim - 1
    cdef Py_ssize_t length, most, first, rows, count, row, step
    if last < 1 or walk.shape[last] > loop.short_row \
            or walk.shape[last] * walk.shape[last - 1] < LEAST_GATHERED:
        run_elementwise(loop, nargs, data, walk)
        return
    length = walk.shape[last]
    most = BLOCK // length
    for op in range(nargs):
        start[op] = data[op]
        row = walk.strides[op][last - 1]
        step = walk.strides[op][last]
        flat[op] = row == length * step
        inner[op] = step if flat[op] else itemsizes[op]
    start_walk(last - 1, index)
    while True:
        filled[0] = filled[1] = False
        first = 0
        while first < walk.shape[last - 1]:
            rows = min(most, walk.shape[last - 1] - first)
            for op in range(nargs):
                row = walk.strides[op][last - 1]
                args[op] = start[op] + first * row
                if flat[op]:
                    continue
                if op < nargs - 1 and not (filled[op] and row == 0):
                    ndx_move(buffers[op], length * itemsizes[op], itemsizes[op],
                             args[op], row, walk.strides[op][last], rows, length,
                             itemsizes[op])
                    filled[op] = True
                args[op] = buffers[op]
            count = rows * length
            loop.function(args, &count, inner, loop.data)
            op = nargs - 1
            if not flat[op]:
                row = walk.strides[op][last - 1]
                ndx_move(start[op] + first * row, row, walk.strides[op][last],
                         buffers[op], length * itemsizes[op], itemsizes[op], rows,
                         length, itemsizes[op])
            first += rows
        if not step_walk(walk, last - 1, index, nargs, start):
            return


cdef void run_reduce(const Loop *loop, char *out, char *x,
                     const Walk *walk) noexcept nogil:
    """Accumulate x (operand 1 of the walk) into out (operand 0).

    If the innermost axis is reduced, the loop sees ``out = out op x`` with steps of 0.
    NumPy's loops then sum pairwise.
    """
    cdef char *args[3]
    cdef Py_ssize_t inner[3]
    cdef char *at[2]
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t count = 1
    cdef int last = walk.ndim - 1
    at[0] = out
    at[1] = x
    inner[0] = walk.strides[0][last] if last >= 0 else 0
    inner[1] = walk.strides[1][last] if last >= 0 else 0
    inner[2] = inner[0]
    if last >= 0:
        count = walk.shape[last]
    start_walk(last, index)
    if inner[0] == 0 and loop.sum != NULL and inner[1] == itemsize_of[loop.in_dtype]:
        while True:
            loop.sum(at[0], at[1], count)
            if not step_walk(walk, last, index, 2, at):
                return
    while True:
        args[0] = at[0]
        args[1] = at[1]
        args[2] = at[0]
        loop.function(args, &count, inner, loop.data)
        if not step_walk(walk, last, index, 2, at):
            return


cdef void run_gathered(const Loop *loop, char *out, char *x, const Walk *walk,
                       Py_ssize_t itemsize) noexcept nogil:
    """Like `run_reduce`, for short innermost axes, and sums of floats exact over them.

    If several axes are reduced, the loop sums pairwise only along the innermost one,
    and adds each such sum to the total. So short stretches are gathered in a buffer, as
    in NumPy.
    """
    cdef char[GATHERED] buffer
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t length, step, filled = 0
    cdef char *total
    cdef char *at[2]
    cdef int last = walk.ndim - 1
    cdef bint more
    if last < 1 or walk.strides[0][last] != 0 or walk.strides[0][last - 1] != 0 \
            or walk.shape[last] * itemsize > GATHERED // 16:
        run_reduce(loop, out, x, walk)
        return
    at[0] = out
    at[1] = x
    length = walk.shape[last]
    step = walk.strides[1][last]
    start_walk(last, index)
    while True:
        if filled + length * itemsize > GATHERED:
            add_gathered(loop, at[0], buffer, filled, itemsize)
            filled = 0
        ndx_move(buffer + filled, itemsize, 0, at[1], step, 0, length, 1, itemsize)
        filled += length * itemsize
        total = at[0]
        more = step_walk(walk, last, index, 2, at)
        if not more or at[0] != total:
            # The next stretch belongs to another element of the result.
            add_gathered(loop, total, buffer, filled, itemsize)
            filled = 0
        if not more:
            return


cdef void add_gathered(const Loop *loop, char *out, char *buffer, Py_ssize_t nbytes,
                       Py_ssize_t itemsize) noexcept nogil:
    cdef char *args[3]
    cdef Py_ssize_t[3] steps = [0, itemsize, 0]
    cdef Py_ssize_t count = nbytes // itemsize
    if count:
        args[0] = out
        args[1] = buffer
        args[2] = out
        loop.function(args, &count, steps, loop.data)


cdef void run_stacked(const Loop *loop, char **data, const Walk *batch,
                      const Py_ssize_t *core_sizes,
                      const Py_ssize_t *core_strides) noexcept nogil:
    """Run a loop over stacks, of matrices for `matmul` or of vectors for `vecdot`.

    A core has up to three sizes and six strides, and the loop reads as many as it
    needs: for matrices (m, n, p) and (am an bn bp om op), for vectors (n) and (a b).
    """
    cdef char *args[3]
    cdef Py_ssize_t counts[4]
    cdef Py_ssize_t steps[9]
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *start[3]
    cdef int op, last = batch.ndim - 1
    counts[0] = batch.shape[last] if last >= 0 else 1
    memcpy(&counts[1], core_sizes, 3 * sizeof(Py_ssize_t))
    for op in range(3):
        start[op] = data[op]
        steps[op] = batch.strides[op][last] if last >= 0 else 0
    memcpy(&steps[3], core_strides, 6 * sizeof(Py_ssize_t))
    start_walk(last, index)
    while True:
        for op in range(3):
            args[op] = start[op]
        loop.function(args, counts, steps, loop.data)
        if not step_walk(batch, last, index, 3, start):
            return
