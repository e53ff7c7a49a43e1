"""NumPy's loops over stacks of matrices and vectors, of its private gufuncs.

Those of `numpy.linalg` call LAPACK, and those of `numpy.fft` pocketfft. They are called
as `_compute.loops` calls the elementwise ones. An algorithm that fails sets the
processor's flag of invalid operations. Such operands, wrong ones, those on a device,
and all that is rare are left to NumPy's public functions, which also have the errors.
"""

from cpython.object cimport PyObject
from libc.math cimport sqrt, sqrtf
from libc.string cimport memcpy, memset

import numpy as np

from ndx._array.pinning cimport (
    Operands, compute_on, hold, let_go, put, put_constant, view_of,
)
from ndx._array.storage cimport BaseArray, is_array, new_empty, strided
from ndx._compute.copies cimport cast, copy_into, fill, in_c_order
from ndx._compute.costs cimport LARGE
from ndx._compute.elementwise cimport raise_current, unary
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.matmul cimport axis_last
from ndx._compute.numpy_results cimport own_result
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport (
    COMPLEX128, COMPLEX64, FLOAT32, FLOAT64, KIND_COMPLEX, code_or_none, has_arithmetic,
    itemsize_of, kind_of,
)
from ndx._lib.free_threading cimport ndx_keep_for_ever
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, walk_merge,
)
from ndx._lib.numpy_private cimport loop_at, may_report, reports, restore, silence

from ndx._compute.numpy_calls import call
from ndx._lib.numpy_private import part

__all__ = ["frequencies", "linalg", "transform", "transform_axes"]

cdef extern from "Python.h":
    PyObject *PyErr_Occurred() noexcept

cdef extern from "<fenv.h>" nogil:
    int FE_INVALID
    int feclearexcept(int flags)
    int fetestexcept(int flags)


# The arguments of a loop. Counts and steps are laid out as the loop reads them.
cdef struct Cores:
    LoopFunction function
    void *data
    int nargs
    Py_ssize_t counts[1 + MOST_CORES]
    Py_ssize_t steps[3 * MOST_OPERANDS]
    bint invalid


cdef void run_cores(void *arg, char **data, const Walk *batch) noexcept nogil:
    cdef Cores *cores = <Cores *>arg
    cdef char *args[MOST_OPERANDS]
    cdef char *start[MOST_OPERANDS]
    cdef Py_ssize_t index[MAXDIMS]
    cdef int op, last = batch.ndim - 1
    cores.counts[0] = batch.shape[last] if last >= 0 else 1
    for op in range(cores.nargs):
        start[op] = data[op]
        cores.steps[op] = batch.strides[op][last] if last >= 0 else 0
    feclearexcept(FE_INVALID)
    start_walk(last, index)
    while True:
        memcpy(args, start, sizeof(args))
        cores.function(args, cores.counts, cores.steps, cores.data)
        if not step_walk(batch, last, index, cores.nargs, start):
            break
    cores.invalid = fetestexcept(FE_INVALID) != 0
    feclearexcept(FE_INVALID)


cdef BaseArray with_whole_steps(BaseArray x, int axes):
    """Return an array, or a copy if last axes have steps between two elements.

    Fields of records have, and NumPy's loops of LAPACK divide steps by the item size.
    """
    cdef int axis
    for axis in range(x.ndim - axes, x.ndim):
        if x.strides[axis] % itemsize_of[x.dtype]:
            return in_c_order(x, x.dtype)
    return x


cdef class Gufunc:
    """A gufunc of NumPy; without loops if NumPy does not have it, or in another form.

    Parameters
    ----------
    public : numpy.ufunc or None
    """

    def __cinit__(self, public):
        memset(self.functions, 0, sizeof(self.functions))
        ndx_keep_for_ever(self)
        if type(public) is not np.ufunc or public.nargs > MOST_OPERANDS \
                or public.signature is None:
            return
        self.nin = public.nin
        self.nargs = public.nargs
        if self.read_signature(public.signature.replace(" ", "")):
            self.find_loops(public)

    cdef int read_signature(self, str signature) except -1:
        """Read which lengths the operands have; return whether they are few enough."""
        cdef int op
        names = []
        operands = signature.replace("->", ",").replace("),(", ")|(").split("|")
        for op, operand in enumerate(operands):
            found = [name for name in operand.strip("()").split(",") if name]
            if len(found) > 2:
                return False
            self.axes[op] = len(found)
            for axis, name in enumerate(found):
                if name not in names:
                    names.append(name)
                self.lengths[op][axis] = names.index(name)
        self.ncores = len(names)
        return len(operands) == self.nargs and self.ncores <= MOST_CORES

    cdef int find_loops(self, object public) except -1:
        cdef int i, op, code
        for i, signature in enumerate(public.types):
            chars = signature.replace("->", "")
            codes = [code_or_none(np.dtype(char)) for char in chars]
            code = codes[0]
            if min(codes) < 0 or np.dtype(chars[0]).char != chars[0]:
                continue
            self.functions[code] = loop_at(public, i, &self.data[code])
            for op in range(self.nargs):
                self.dtypes[code][op] = codes[op]
        return 0

    cdef list compute(self, list inputs, Py_ssize_t other):
        """Return new arrays with the results; None: the loop failed, or does not fit.

        Parameters
        ----------
        inputs : list of BaseArray
            With elements, and of the dtypes of one of the loops.
        other : int
            The length that only results have, if there is one.
        """
        cdef BaseArray x, first = inputs[0]
        cdef Py_ssize_t shape[MAXDIMS]
        cdef Py_ssize_t sizes[MOST_CORES]
        cdef Py_ssize_t work
        cdef int op, axis, ndim = 0, total
        for axis in range(self.ncores):
            sizes[axis] = -1
        for op in range(self.nin):
            x = inputs[op]
            ndim = broadcast_into(ndim, shape, x.ndim - self.axes[op], x.shape)
            if ndim < 0:
                return None
            for axis in range(self.axes[op]):
                work = x.shape[x.ndim - self.axes[op] + axis]
                if sizes[self.lengths[op][axis]] not in (-1, work):
                    return None
                sizes[self.lengths[op][axis]] = work
        operands = [with_whole_steps(inputs[op], self.axes[op])
                    for op in range(self.nin)]
        work = 1
        for axis in range(self.ncores):
            if sizes[axis] < 0:
                sizes[axis] = other
            work = max(work, sizes[axis])
        for op in range(self.nin, self.nargs):
            total = ndim + self.axes[op]
            if total > MAXDIMS:
                return None
            for axis in range(self.axes[op]):
                shape[ndim + axis] = sizes[self.lengths[op][axis]]
            operands.append(new_empty(self.dtypes[first.dtype][op], total, shape))
        if self.run(operands, NULL, first.size >= LONG // work):
            return None
        return operands[self.nin:]

    cdef bint run(self, list operands, char *constant, bint large) except? True:
        """Compute into the results, the last operands; return whether the loop failed.

        The operand None is the constant. No operand is empty. If `large`, the GIL is
        released.
        """
        cdef Operands held
        cdef Strided stack
        cdef Cores cores
        cdef Walk batch
        cdef BaseArray x, first = operands[0], last = operands[self.nargs - 1]
        cdef int op, axis, step = self.nargs
        cores.function = self.functions[first.dtype]
        cores.data = self.data[first.dtype]
        cores.nargs = self.nargs
        batch.nops = self.nargs
        batch.ndim = last.ndim - self.axes[self.nargs - 1]
        memcpy(batch.shape, last.shape, batch.ndim * sizeof(Py_ssize_t))
        held.count = 0
        for op in range(self.nargs):
            x = operands[op]
            if x is None:
                put_constant(&held, constant)
                memset(batch.strides[op], 0, batch.ndim * sizeof(Py_ssize_t))
                continue
            put(&held, x)
            strided(x, &stack)
            stack.ndim -= self.axes[op]
            broadcast_strides(&stack, batch.ndim, batch.shape, batch.strides[op])
            for axis in range(self.axes[op]):
                cores.counts[1 + self.lengths[op][axis]] = x.shape[stack.ndim + axis]
                cores.steps[step] = x.strides[stack.ndim + axis]
                step += 1
        walk_merge(&batch)
        compute_on(&held, &batch, run_cores, &cores, large)
        if PyErr_Occurred() != NULL:
            raise_current()
        return cores.invalid


# ---- Linear algebra, by LAPACK -------------------------------------------------------
# As in NumPy, all is computed in double precision, and rounded to the precision of the
# operands. Each function returns None for what is left to NumPy: operands of wrong
# shapes, without elements or on a device, and matrices for which the algorithm fails.
# NumPy's function then computes them once more, or raises its error.

loops = part("linalg")


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
cdef list result_types():
    x = np.ones((0, 1, 1))
    return [type(function(x)) for function in (
        np.linalg.eigh, np.linalg.qr, np.linalg.slogdet, np.linalg.svd)]

cdef object EighResult, QRResult, SlogdetResult, SVDResult
EighResult, QRResult, SlogdetResult, SVDResult = result_types()


cdef bint taken(BaseArray x, bint square) noexcept:
    """Whether an array is a stack of matrices that the loops take."""
    return not (x.block.device or x.ndim < 2 or x.size == 0
                or not has_arithmetic(x.dtype)
                or may_report() and reports()
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
    found = gufunc.compute([x], other)
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
            or right.block.device or not has_arithmetic(right.dtype):
        return None
    single = is_single(matrices) and is_single(right)
    matrices = as_double(matrices, with_complex)
    right = as_double(right, with_complex)
    if gufunc.functions[matrices.dtype] == NULL:
        return None
    found = gufunc.compute([matrices, right], 0)
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
    found = QR_RAW.compute([factored], min(m, n))
    if found is None:
        return None
    found = gufunc.compute([factored, found[0]], 0)
    if found is None:
        return None
    return QRResult(rounded(found[0], single),
                    rounded(upper_part(factored, rows), single))


cdef tuple least_squares(BaseArray a, BaseArray b, double tolerance):
    """Return NumPy's solution, residuals, rank and singular values for float64.

    `b` is a vector; there are more equations than unknowns. None: it is left to NumPy.
    """
    cdef Operands operands
    function = getattr(loops, "lstsq", None)
    if function is None:
        return None
    operands.count = 0
    put(&operands, a)
    put(&operands, b)
    hold(&operands)
    token = silence()
    try:
        found, residuals, rank, values = function(
            view_of(&operands, 0), view_of(&operands, 1)[:, None], tolerance,
            signature="ddd->ddid")
    finally:
        restore(token)
        let_go(&operands)
    if found.size and found[0, 0] != found[0, 0]:
        # It has not converged: NumPy raises its error.
        return None
    return (own_result(found[:, 0]),
            own_result(residuals if rank == a.shape[1] else residuals[:0]),
            rank, own_result(values))


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


# ---- Fourier transforms, by pocketfft ------------------------------------------------
# The functions return None for what is left to NumPy's functions: arguments that are
# wrong, and arrays on a device.

cdef Ufunc CONJ = find_ufunc("conj")

cdef enum:
    OPERATIONS = 16              # about as many for each element

cdef object MOST_POINTS = 2**40   # beyond that NumPy raises its error

# Found at the first use: NumPy loads its module only then.
cdef bint searched = False
cdef Gufunc FFT = None, IFFT = None, RFFT_EVEN = None, RFFT_ODD = None, IRFFT = None

cdef dict OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


cdef int search() except -1:
    """Find NumPy's loops; one that NumPy lacks stays without a function."""
    global searched, FFT, IFFT, RFFT_EVEN, RFFT_ODD, IRFFT
    loops = part("fft")
    FFT = Gufunc(getattr(loops, "fft", None))
    IFFT = Gufunc(getattr(loops, "ifft", None))
    RFFT_EVEN = Gufunc(getattr(loops, "rfft_n_even", None))
    RFFT_ODD = Gufunc(getattr(loops, "rfft_n_odd", None))
    IRFFT = Gufunc(getattr(loops, "irfft", None))
    searched = True
    return 0


cdef BaseArray transformed(Gufunc gufunc, BaseArray x, int axis, Py_ssize_t points,
                           Py_ssize_t length, str norm, bint in_place):
    """Return a transform of an array, with a new length of an axis; None: no loop.

    `norm` says when to divide by the number of points, for a forward transform. As in
    NumPy, single precision is computed in double, unless the loop divides and the
    array has the loop's dtype. The factor is always in the precision of the array.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef int given = x.dtype
    cdef bint single = given == FLOAT32 or given == COMPLEX64 \
        or not has_arithmetic(given)
    cdef bint from_real = gufunc is RFFT_EVEN or gufunc is RFFT_ODD
    cdef bint in_single = x.dtype == (FLOAT32 if from_real else COMPLEX64) \
        and norm != "backward"
    cdef int dtype, result
    cdef double factor = 1.0
    cdef float single_factor = 1.0
    cdef BaseArray out
    if in_single:
        dtype = FLOAT32 if from_real else COMPLEX64
    else:
        dtype = FLOAT64 if from_real else COMPLEX128
    # Of no elements NumPy returns memory that nobody wrote to.
    if gufunc.functions[dtype] == NULL and x.size:
        return None
    if dtype == FLOAT32 or dtype == COMPLEX64:
        result = FLOAT32 if gufunc is IRFFT else COMPLEX64
    else:
        result = FLOAT64 if gufunc is IRFFT else COMPLEX128
    if x.dtype != dtype:
        x = cast(x, dtype)
        # The copy is not needed any more; results are in C order.
        in_place = x.c_contiguous
    if in_place and x.shape[axis] == length and result == dtype:
        out = x
    else:
        memcpy(shape, x.shape, x.ndim * sizeof(Py_ssize_t))
        shape[axis] = length
        out = new_empty(result, x.ndim, shape)
    if norm == "ortho":
        factor = 1.0 / sqrt(<double>points)
        single_factor = <float>1.0 / sqrtf(<float>points)
    elif norm == "forward":
        factor = 1.0 / <double>points
        single_factor = <float>1.0 / <float>points
    if single:
        factor = single_factor
    if x.size:
        gufunc.run([axis_last(x, axis), None, axis_last(out, axis)],
                   <char *>&single_factor if in_single else <char *>&factor,
                   max(x.size, out.size) >= LONG // OPERATIONS)
    else:
        fill(out, 0)
    if single and not in_single:
        return cast(out, COMPLEX64 if out.dtype == COMPLEX128
                    else FLOAT32 if given == COMPLEX64 else given)
    return out


cdef BaseArray along(str name, BaseArray x, Py_ssize_t points, int axis, str norm,
                     bint in_place):
    """Return a transform along an axis; None without a loop.

    If `in_place`, an array of the same shape and dtype receives the result.
    """
    cdef BaseArray result
    if not searched:
        search()
    if name == "fft":
        return transformed(FFT, x, axis, points, points, norm, in_place)
    if name == "ifft":
        return transformed(IFFT, x, axis, points, points, OPPOSITE[norm], in_place)
    if name == "irfft":
        return transformed(IRFFT, x, axis, points, points, OPPOSITE[norm], False)
    if name == "hfft":
        if kind_of[x.dtype] == KIND_COMPLEX:
            x = unary(CONJ, x, None)
        return transformed(IRFFT, x, axis, points, points, norm, False)
    if name == "ihfft":
        norm = OPPOSITE[norm]
    result = transformed(RFFT_ODD if points % 2 else RFFT_EVEN, x, axis, points,
                         points // 2 + 1, norm, False)
    if name == "ihfft" and result is not None:
        return unary(CONJ, result, result)
    return result


cdef inline bint is_from_real(str name) noexcept:
    return name == "rfft" or name == "ihfft" or name == "rfftn"


cdef inline bint is_to_real(str name) noexcept:
    return name == "irfft" or name == "hfft" or name == "irfftn"


cdef bint is_transformed(str name, BaseArray x, object norm) except -1:
    """Whether NumPy's loops take an array."""
    # Factors without arithmetic are rounded; and NumPy reads what empty arrays lack.
    return (not x.block.device and (has_arithmetic(x.dtype) or x.size == 0)
            and not (x.size != 0 and may_report() and reports())
            and type(norm) is str and norm in OPPOSITE
            and not (is_from_real(name) and kind_of[x.dtype] == KIND_COMPLEX))


cdef BaseArray along_axis(str name, BaseArray x, object n, object axis, object norm):
    """Return the transform of a name along one axis; None: it is left to NumPy."""
    cdef Py_ssize_t points
    if not is_transformed(name, x, norm) or type(axis) is not int \
            or not -x.ndim <= axis < x.ndim:
        return None
    if axis < 0:
        axis += x.ndim
    if n is not None:
        if type(n) is not int or not 1 <= n <= MOST_POINTS:
            return None
        points = n
    else:
        points = x.shape[<int>axis]
        if is_to_real(name):
            points = 2 * (points - 1)
        if points < 1:
            return None
    return along(name, x, points, axis, norm, False)


cdef BaseArray along_axes(str name, BaseArray x, object s, object axes, object norm):
    """Return the transform of a name along axes; None: it is left to NumPy."""
    cdef Py_ssize_t points[MAXDIMS]
    cdef int chosen[MAXDIMS]
    cdef int i, count = x.ndim if axes is None else len(axes)
    cdef str first = "ifft" if name == "ifftn" or name == "irfftn" else "fft"
    if not is_transformed(name, x, norm) or not 0 < count <= MAXDIMS \
            or s is not None and (axes is None or len(s) != count):
        return None
    for i in range(count):
        axis = i if axes is None else axes[i]
        if type(axis) is not int or not -x.ndim <= axis < x.ndim:
            return None
        chosen[i] = axis if axis >= 0 else axis + x.ndim
        if s is None:
            points[i] = x.shape[chosen[i]]
            if i == count - 1 and is_to_real(name):
                points[i] = 2 * (points[i] - 1)
        else:
            n = s[i]
            if type(n) is not int or not 1 <= n <= MOST_POINTS:
                return None
            points[i] = n
        if points[i] < 1:
            return None
    if name == "irfftn":
        for i in range(count - 1):
            x = along("ifft", x, points[i], chosen[i], norm, i > 0)
            if x is None:
                return None
        return along("irfft", x, points[count - 1], chosen[count - 1], norm, False)
    for i in range(count - 1, -1, -1):
        x = along("rfft" if name == "rfftn" and i == count - 1 else first, x, points[i],
                  chosen[i], norm, i < count - 1)
        if x is None:
            return None
    return x


def transform(str name, x, n, axis, norm):
    """Return a transform along one axis; None: it is left to NumPy."""
    return along_axis(name, x, n, axis, norm)


def transform_axes(str name, x, s, axes, norm):
    """Return a transform along axes; None: it is left to NumPy."""
    return along_axes(name, x, s, axes, norm)


# ---------------------------------------------------------------- frequencies

# The numbers from 0 on, and then the negative ones, divided by a span.
cdef struct Steps:
    Py_ssize_t positive
    Py_ssize_t negative
    double span


cdef void run_steps(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Steps *steps = <const Steps *>arg
    cdef double *out = <double *>data[0]
    cdef Py_ssize_t i
    for i in range(steps.positive):
        out[i] = <double>i / steps.span
    for i in range(steps.negative):
        out[steps.positive + i] = <double>(i - steps.negative) / steps.span


def frequencies(Py_ssize_t positive, Py_ssize_t negative, double span):
    """Return step numbers, the positive ones first, divided by the span.

    None for many, which may be in a file.
    """
    cdef Py_ssize_t shape[1]
    cdef Operands operands
    cdef Steps steps
    cdef BaseArray result
    if positive + negative >= LARGE:
        return None
    shape[0] = positive + negative
    result = new_empty(FLOAT64, 1, shape)
    steps.positive = positive
    steps.negative = negative
    steps.span = span
    operands.count = 0
    put(&operands, result)
    compute_on(&operands, NULL, run_steps, &steps, False)
    return result
