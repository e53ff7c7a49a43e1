"""NumPy's products, `numpy.linalg` and `numpy.fft`: the rows that ndx computes."""

from cpython.object cimport PyObject

import sys

import numpy as np

from ndx._array.storage cimport BaseArray, as_number, is_array
from ndx._compute.costs cimport LARGE
from ndx._compute.gufuncs cimport along_axes, along_axis, decompose, least_squares
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.matmul cimport dot, euclidean, flat_norm, flattened, outer
from ndx._lib.dtypes cimport FLOAT64, INT32, KIND_COMPLEX, kind_of
from ndx._methods.numpy_function_table cimport Row, add_function, add_late
from ndx._methods.values cimport number_with
from ndx._numpy.arguments cimport (
    any_array_in, array_in, found_or_not, read_axis, reduced,
)

cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef double EPSILON = np.finfo(np.float64).eps


# ---- products ------------------------------------------------------------------------

cdef object inner(Row row, PyObject **given):
    """a, b"""
    cdef BaseArray x = array_in(given[0]), y = array_in(given[1])
    if x is None or y is None or x.ndim != 1 or y.ndim != 1:
        return NotImplemented
    return reduced(dot(x, y))


cdef object vdot(Row row, PyObject **given):
    """a, b"""
    cdef BaseArray x = array_in(given[0])
    if x is None or kind_of[x.dtype] == KIND_COMPLEX:
        return NotImplemented
    return inner(row, given)


cdef object outer_product(Row row, PyObject **given):
    """`outer`: a, b"""
    cdef BaseArray x = any_array_in(given[0]), y = any_array_in(given[1])
    if x is None or y is None \
            or x.ndim != 1 and not x.c_contiguous or y.ndim != 1 and not y.c_contiguous:
        return NotImplemented
    return outer(MULTIPLY, x if x.ndim == 1 else flattened(x),
                 y if y.ndim == 1 else flattened(y))


cdef object norm(Row row, PyObject **given):
    """x, axis"""
    cdef BaseArray x = any_array_in(given[0])
    cdef int axis
    if x is None:
        return NotImplemented
    if given[1] == NULL:
        return reduced(flat_norm(x))
    axis = read_axis(given[1], x.ndim, 0)
    return NotImplemented if axis < 0 else reduced(euclidean(x, axis, False))


cdef object vector_norm(Row row, PyObject **given):
    """x"""
    cdef BaseArray x = any_array_in(given[0])
    return NotImplemented if x is None else reduced(euclidean(x, None, False))


cdef object matrix_norm(Row row, PyObject **given):
    """x"""
    cdef BaseArray x = any_array_in(given[0])
    if x is None or x.ndim < 2:
        return NotImplemented
    return reduced(euclidean(x, (x.ndim - 2, x.ndim - 1), False))


# ---- linear algebra ------------------------------------------------------------------

cdef object decomposition(Row row, PyObject **given):
    """One array or two, and options by keyword; `row.data`: the name."""
    cdef dict options = {}
    cdef int i, count = 2 if row.data == "solve" else 1
    for i in range(len(row.names)):
        if i < count:
            if given[i] == NULL or not is_array(<object>given[i]):
                return NotImplemented
        elif given[i] != NULL:
            options[row.names[i]] = <object>given[i]
    found = decompose(
        row.data, tuple([<object>given[i] for i in range(count)]), options)
    if isinstance(found, tuple):
        return type(found)(*[as_number(each) for each in found])
    return reduced(found)


cdef object lstsq(Row row, PyObject **given):
    """a, b, rcond"""
    cdef BaseArray a = array_in(given[0]), b = array_in(given[1])
    cdef double tolerance
    if a is None or b is None or a.dtype != FLOAT64 or b.dtype != FLOAT64 \
            or a.ndim != 2 or b.ndim != 1 or a.shape[0] != b.shape[0] \
            or not 0 < a.shape[1] < a.shape[0] or a.size >= LARGE:
        return NotImplemented
    if given[2] == NULL or <object>given[2] is None:
        tolerance = EPSILON * a.shape[0]
    elif type(<object>given[2]) is float or isinstance(<object>given[2], np.float64):
        tolerance = <object>given[2]
    else:
        return NotImplemented
    found = least_squares(a, b, tolerance)
    if found is None:
        return NotImplemented
    solution, residuals, rank, values = found
    return solution, residuals, number_with(rank, INT32), values


# ---- transforms ----------------------------------------------------------------------

cdef object norm_of(PyObject *given):
    return "backward" if given == NULL or <object>given is None else <object>given


cdef object transform(Row row, PyObject **given):
    """a, n, axis, norm; `row.data`: the name."""
    if given[0] == NULL or not is_array(<object>given[0]):
        return NotImplemented
    return found_or_not(along_axis(
        row.data, <object>given[0], None if given[1] == NULL else <object>given[1],
        -1 if given[2] == NULL else <object>given[2], norm_of(given[3])))


cdef bint is_plain(object lengths) noexcept:
    return lengths is None or type(lengths) is tuple or type(lengths) is list


cdef object transform_axes(Row row, PyObject **given):
    """a, s, axes, norm; `row.data`: the name, and the axes by default."""
    name, axes = row.data
    s = None if given[1] == NULL else <object>given[1]
    if given[2] != NULL:
        axes = <object>given[2]
    if given[0] == NULL or not is_array(<object>given[0]) or not is_plain(s) \
            or not is_plain(axes):
        return NotImplemented
    return found_or_not(along_axes(
        name, <object>given[0], s, axes, norm_of(given[3])))


# ---- the table -----------------------------------------------------------------------

cdef int add_all() except -1:
    """Set the rows of the functions that ndx computes."""
    add_function(np.inner, "a b", inner)
    add_function(np.vdot, "a b", vdot)
    add_function(np.outer, "a b", outer_product)
    add_function(np.linalg.norm, "x * axis", norm)
    add_function(np.linalg.vector_norm, "x", vector_norm)
    add_function(np.linalg.matrix_norm, "x", matrix_norm)
    for name in ("det", "eigh", "eigvalsh", "inv", "qr", "slogdet", "svdvals"):
        add_function(getattr(np.linalg, name), "a", decomposition, name)
    add_function(np.linalg.cholesky, "a * upper", decomposition, "cholesky")
    add_function(np.linalg.solve, "a b", decomposition, "solve")
    add_function(np.linalg.lstsq, "a b rcond", lstsq)
    add_function(np.linalg.svd, "a * full_matrices", decomposition, "svd")
    return 0


def _add_transforms():
    """Set the rows of `numpy.fft`, a module that NumPy loads at its first use."""
    fft = sys.modules["numpy.fft"]
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        add_function(getattr(fft, name), "a n axis norm", transform, name)
    for name in ("fft", "ifft", "rfft", "irfft"):
        for ending, axes in (("n", None), ("2", (-2, -1))):
            add_function(getattr(fft, name + ending), "a s axes norm", transform_axes,
                         (name + "n", axes))


add_all()
add_late("numpy.fft", _add_transforms)
