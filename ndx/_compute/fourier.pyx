"""Fourier transforms by NumPy's loops (and so by pocketfft), on our memory.

The functions return None for what is left to NumPy's functions: arguments that are
wrong, and arrays on a device.
"""

from libc.math cimport sqrt, sqrtf
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.copies cimport LARGE, cast, fill
from ndx._compute.elementwise cimport unary
from ndx._compute.gufuncs cimport LONG, Gufunc
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.matmul cimport axis_last
from ndx._compute.numpy_private cimport reporting, reports
from ndx._lib.dtypes cimport (
    COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, KIND_COMPLEX, kind_of,
)
from ndx._lib.layout cimport MAXDIMS, Walk

import importlib

__all__ = ["frequencies", "transform", "transform_axes"]

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
    try:
        loops = importlib.import_module("numpy.fft._pocketfft_umath")
    except ImportError:
        loops = None
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
    cdef bint single = x.dtype == FLOAT32 or x.dtype == COMPLEX64
    cdef bint from_real = gufunc is RFFT_EVEN or gufunc is RFFT_ODD
    cdef bint in_single = x.dtype == (FLOAT32 if from_real else COMPLEX64) \
        and norm != "backward"
    cdef int dtype
    cdef double factor = 1.0
    cdef float single_factor = 1.0
    cdef BaseArray out
    if in_single:
        dtype = FLOAT32 if from_real else COMPLEX64
    else:
        dtype = FLOAT64 if from_real else COMPLEX128
    if gufunc.functions[dtype] == NULL:
        return None
    if x.dtype != dtype:
        x = cast(x, dtype)
        # The copy is not needed any more; results are in C order.
        in_place = x.c_contiguous
    if in_place and x.shape[axis] == length and gufunc.dtypes[dtype][2] == dtype:
        out = x
    else:
        memcpy(shape, x.shape, x.ndim * sizeof(Py_ssize_t))
        shape[axis] = length
        out = new_empty(gufunc.dtypes[dtype][2], x.ndim, shape)
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
        # NumPy's loop for real results leaves them as they are.
        fill(out, 0)
    if single and not in_single:
        return cast(out, COMPLEX64 if out.dtype == COMPLEX128 else FLOAT32)
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


cdef bint taken(str name, BaseArray x, object norm) except -1:
    """Whether NumPy's loops take an array."""
    return (not x.block.device
            and not (x.size != 0 and reporting != 0 and reports())
            and type(norm) is str and norm in OPPOSITE
            and not (is_from_real(name) and kind_of[x.dtype] == KIND_COMPLEX))


cdef BaseArray along_axis(str name, BaseArray x, object n, object axis, object norm):
    """Return the transform of a name along one axis; None: it is left to NumPy."""
    cdef Py_ssize_t points
    if not taken(name, x, norm) or type(axis) is not int \
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
    if not taken(name, x, norm) or not 0 < count <= MAXDIMS \
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
