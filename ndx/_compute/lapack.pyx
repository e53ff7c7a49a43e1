"""NumPy's functions of linear algebra, by its own loops (and so by LAPACK).

As in NumPy, all is computed in double precision, and rounded to the precision of the
operands. Each function returns None for what is left to NumPy: operands of wrong
shapes, without elements or on a device, and matrices for which the algorithm fails.
NumPy's function then computes them once more, or raises its error.
"""

from libc.string cimport memcpy, memset

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, is_array, new_empty
from ndx._compute.copies cimport LARGE, cast, copy_into
from ndx._compute.gufuncs cimport Gufunc
from ndx._compute.numpy_private cimport reporting, reports
from ndx._lib.dtypes cimport (
    COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, itemsize_of,
)
from ndx._lib.layout cimport MAXDIMS, Walk

import numpy as np

from ndx._compute.numpy_calls import call

__all__ = ["linalg"]

try:
    from numpy.linalg import _umath_linalg as loops
except ImportError:
    loops = None


cdef Gufunc loops_of(str name):
    return Gufunc(getattr(loops, name, None))


cdef Gufunc CHOLESKY_LOWER = loops_of("cholesky_lo")
cdef Gufunc CHOLESKY_UPPER = loops_of("cholesky_up")
cdef Gufunc DET = loops_of("det")
cdef Gufunc EIGH = loops_of("eigh_lo")
cdef Gufunc EIGVALSH = loops_of("eigvalsh_lo")
cdef Gufunc INV = loops_of("inv")
cdef Gufunc QR_COMPLETE = loops_of("qr_complete")
cdef Gufunc QR_RAW = loops_of("qr_r_raw")
cdef Gufunc QR_REDUCED = loops_of("qr_reduced")
cdef Gufunc SLOGDET = loops_of("slogdet")
cdef Gufunc SOLVE = loops_of("solve")
cdef Gufunc SOLVE_VECTOR = loops_of("solve1")
cdef Gufunc SVD_FULL = loops_of("svd_f")
cdef Gufunc SVD_REDUCED = loops_of("svd_s")
cdef Gufunc SVD_VALUES = loops_of("svd")

# The named tuples of NumPy's results: of no matrices, because BLAS reserves memory
# (32 MiB) at its first computation.
cdef object none = np.ones((0, 1, 1))
cdef object EighResult = type(np.linalg.eigh(none))
cdef object QRResult = type(np.linalg.qr(none))
cdef object SlogdetResult = type(np.linalg.slogdet(none))
cdef object SVDResult = type(np.linalg.svd(none))


cdef bint taken(BaseArray x, bint square) noexcept:
    """Whether an array is a stack of matrices that the loops take."""
    return not (x.block.device or x.ndim < 2 or x.size == 0
                or reporting != 0 and reports()
                or square and x.shape[x.ndim - 2] != x.shape[x.ndim - 1])


cdef inline bint is_complex(BaseArray x) noexcept:
    return x.dtype == COMPLEX64 or x.dtype == COMPLEX128


cdef inline bint is_single(BaseArray x) noexcept:
    return x.dtype == FLOAT32 or x.dtype == COMPLEX64


cdef BaseArray as_double(BaseArray x, bint complex_):
    """Return an array, or its cast, in double precision."""
    cdef int dtype = COMPLEX128 if complex_ else FLOAT64
    if x.dtype == dtype:
        return x
    return cast(x, dtype)


cdef BaseArray rounded(BaseArray x, bint single):
    """Return a result in the precision of the operands."""
    if not single:
        return x
    return cast(x, COMPLEX64 if x.dtype == COMPLEX128 else FLOAT32)


cdef list computed(Gufunc gufunc, BaseArray x, Py_ssize_t other):
    """Return the results for stacks of matrices in the operand's precision, or None."""
    cdef bint single = is_single(x)
    cdef list found
    x = as_double(x, is_complex(x))
    if gufunc.functions[x.dtype] == NULL:
        return None
    found = gufunc.call([x], other)
    if found is None or not single:
        return found
    return [rounded(each, True) for each in found]


cdef object first_of(list found):
    return None if found is None else found[0]


def _cholesky(x, *, upper=False):
    if not taken(x, True):
        return None
    return first_of(computed(CHOLESKY_UPPER if upper else CHOLESKY_LOWER, x, 0))


def _det(x):
    return first_of(computed(DET, x, 0)) if taken(x, True) else None


def _eigh(x):
    found = computed(EIGH, x, 0) if taken(x, True) else None
    return None if found is None else EighResult(*found)


def _eigvalsh(x):
    return first_of(computed(EIGVALSH, x, 0)) if taken(x, True) else None


def _inv(x):
    return first_of(computed(INV, x, 0)) if taken(x, True) else None


def _slogdet(x):
    found = computed(SLOGDET, x, 0) if taken(x, True) else None
    return None if found is None else SlogdetResult(*found)


def _solve(a, b):
    cdef BaseArray matrices = a, right = b
    cdef bint with_complex = is_complex(matrices) or is_complex(right), single
    cdef Gufunc gufunc = SOLVE_VECTOR if right.ndim == 1 else SOLVE
    if not taken(matrices, True) or right.size == 0 or right.ndim == 0 \
            or right.block.device:
        return None
    single = is_single(matrices) and is_single(right)
    matrices = as_double(matrices, with_complex)
    right = as_double(right, with_complex)
    if gufunc.functions[matrices.dtype] == NULL:
        return None
    found = gufunc.call([matrices, right], 0)
    return None if found is None else rounded(found[0], single)


cdef inline Py_ssize_t shorter(BaseArray x) noexcept:
    """Return the shorter of the lengths of a matrix."""
    return min(x.shape[x.ndim - 2], x.shape[x.ndim - 1])


def _svd(x, full_matrices=True):
    if not taken(x, False):
        return None
    found = computed(SVD_FULL if full_matrices else SVD_REDUCED, x, shorter(x))
    return None if found is None else SVDResult(*found)


def _svdvals(x):
    return first_of(computed(SVD_VALUES, x, shorter(x))) if taken(x, False) else None


# ---------------------------------------------------------------- QR

# Stacks of matrices, and of their first rows.
cdef struct Upper:
    Py_ssize_t count
    Py_ssize_t rows              # of the matrices
    Py_ssize_t taken             # of these
    Py_ssize_t columns
    Py_ssize_t itemsize


cdef void run_upper(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Copy first rows of matrices (operand 0), with zeros below the diagonal."""
    cdef const Upper *upper = <const Upper *>arg
    cdef Py_ssize_t row_nbytes = upper.columns * upper.itemsize
    cdef Py_ssize_t matrix, row, zeros
    cdef const char *x
    cdef char *out
    for matrix in range(upper.count):
        for row in range(upper.taken):
            x = data[0] + (matrix * upper.rows + row) * row_nbytes
            out = data[1] + (matrix * upper.taken + row) * row_nbytes
            zeros = min(row, upper.columns) * upper.itemsize
            memset(out, 0, zeros)
            memcpy(out + zeros, x + zeros, row_nbytes - zeros)


cdef BaseArray upper_part(BaseArray x, Py_ssize_t rows):
    """Return the first rows of contiguous matrices, with zeros below the diagonal."""
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Operands operands
    cdef Upper upper
    cdef BaseArray result
    memcpy(shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    shape[x.ndim - 2] = rows
    result = new_empty(x.dtype, x.ndim, shape)
    upper.rows = x.shape[x.ndim - 2]
    upper.columns = x.shape[x.ndim - 1]
    upper.count = x.size // (upper.rows * upper.columns)
    upper.taken = rows
    upper.itemsize = itemsize_of[x.dtype]
    operands.count = 0
    put(&operands, x)
    put(&operands, result)
    compute_on(&operands, NULL, run_upper, &upper, x.size >= LARGE)
    return result


def _qr(x, mode="reduced"):
    cdef BaseArray array = x, factored
    cdef bint single
    cdef Py_ssize_t m, n, rows
    cdef Gufunc gufunc = QR_REDUCED
    if not taken(array, False) or mode not in ("reduced", "complete"):
        return None
    single = is_single(array)
    m, n = array.shape[array.ndim - 2], array.shape[array.ndim - 1]
    rows = min(m, n)
    # The loop writes to its operand, too.
    factored = new_empty(
        COMPLEX128 if is_complex(array) else FLOAT64, array.ndim, array.shape)
    copy_into(factored, array)
    if mode == "complete" and m > n:
        rows = m
        gufunc = QR_COMPLETE
    if QR_RAW.functions[factored.dtype] == NULL \
            or gufunc.functions[factored.dtype] == NULL:
        return None
    found = QR_RAW.call([factored], min(m, n))
    if found is None:
        return None
    found = gufunc.call([factored, found[0]], 0)
    if found is None:
        return None
    return QRResult(rounded(found[0], single),
                    rounded(upper_part(factored, rows), single))


cdef dict FUNCTIONS = {
    "cholesky": _cholesky,
    "det": _det,
    "eigh": _eigh,
    "eigvalsh": _eigvalsh,
    "inv": _inv,
    "qr": _qr,
    "slogdet": _slogdet,
    "solve": _solve,
    "svd": _svd,
    "svdvals": _svdvals,
}


cdef object decompose(str name, tuple args, dict kwargs):
    """Return the result of a function for arrays; None: it is left to NumPy."""
    for item in args:
        if not is_array(item):
            return None
    return FUNCTIONS[name](*args, **kwargs)


def linalg(name, *args, **kwargs):
    """Return the result of a function of `numpy.linalg` for NDArrays."""
    found = FUNCTIONS[name](*args, **kwargs)
    return call(f"linalg.{name}", *args, **kwargs) if found is None else found
