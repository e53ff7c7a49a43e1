"""The dtypes as small integers, and the rules of promotion.

A dtype is an ``np.dtype`` instance to users and a code inside ndx: its place in the
list (ndx/dtypes.h). The rules are tables, filled once at import from NumPy's own rules.
"""

cimport numpy as cnp
from cpython.complex cimport PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cpython.object cimport PyObject
from libc.stdint cimport (
    int16_t, int32_t, int64_t, int8_t, uint16_t, uint32_t, uint64_t, uint8_t,
)

import sys

import numpy as np

from ndx._lib.free_threading cimport ndx_keep_for_ever

cnp.import_array()

cdef extern from "Python.h":
    PyObject *PyDict_GetItemWithError(object items, object key) except? NULL  # borrowed

cdef extern from "ndx/internal/half.h":
    uint16_t half_of "ndx_half_of_double" (double value) noexcept

cdef tuple NAMES = tuple([names_of_dtypes[code].decode() for code in range(NDTYPES)])

cdef tuple DTYPES = tuple([np.dtype(name) for name in NAMES])
cdef object Dtype = np.dtype
cdef signed char code_of_typenum[64]
# Those of `DTYPES`, which most arrays share.
cdef PyObject *builtin[NDTYPES]
# The explicit mark of the native order ('<' or '>') means '='; ctypes buffers use it.
cdef char SWAPPED = c'>' if sys.byteorder == "little" else c'<'


cdef void fill_tables():
    cdef int code, other, i
    for i in range(64):
        code_of_typenum[i] = -1
    # 'long' and 'long long' get the same code if their sizes are equal.
    for char in "ilqILQ":
        dtype = np.dtype(char)
        code_of_typenum[<int>dtype.num] = DTYPES.index(dtype)
    for code in range(NDTYPES):
        typenum_of[code] = DTYPES[code].num
        code_of_typenum[typenum_of[code]] = code
        builtin[code] = <PyObject *>DTYPES[code]
        ndx_keep_for_ever(DTYPES[code])
        for other in range(NDTYPES):
            promote_table[code][other] = DTYPES.index(
                np.result_type(DTYPES[code], DTYPES[other]))


fill_tables()


cdef object dtype_object(int code):
    return DTYPES[code]


cdef int code_or_none(object dtype) noexcept:
    """Return the code of an ``np.dtype``; -1 if unsupported or not in native order.

    Numbers that have fields, too, such as ``("i4", [("low", "i2"), ("high", "i2")])``,
    are unsupported: an NDArray would lose the fields.
    """
    cdef int num
    for num in range(NDTYPES):
        if <PyObject *>dtype == builtin[num]:
            return num
    if not isinstance(dtype, cnp.dtype):
        return -1
    num = (<cnp.dtype>dtype).num
    if num < 0 or num >= 64 or (<cnp.dtype>dtype).byteorder == SWAPPED:
        return -1
    return -1 if cnp.PyDataType_HASFIELDS(dtype) else code_of_typenum[num]


def is_known(dtype not None):
    """Whether an array of ndx may have an ``np.dtype``."""
    return code_or_none(dtype) >= 0


# Python's and NumPy's types of numbers, and names -> the code of their dtype.
cdef dict CODES = {
    **{described.type: code for code, described in enumerate(DTYPES)},
    **{name: code for code, name in enumerate(NAMES)},
    bool: BOOL, int: code_or_none(Dtype(int)), float: FLOAT64, complex: COMPLEX128,
}


cdef int known_code(object dtype) except -2:
    """Return the code of an ``np.dtype``, a type of numbers or a name; -1: another."""
    cdef PyObject *code
    if isinstance(dtype, type) or type(dtype) is str:
        code = PyDict_GetItemWithError(CODES, dtype)
        return -1 if code == NULL else <object>code
    return code_or_none(dtype)


cdef int find_code(object dtype) except -2:
    """Return the code of a dtype-like object; -1: none of ours.

    An array is refused, as ``asarray(a, b)`` is a slip. `numpy.dtype` takes any object
    that has an attribute `dtype`, except NumPy's own arrays.
    """
    cdef int code = known_code(dtype)
    if code < 0 and not isinstance(dtype, cnp.dtype) and (
            isinstance(dtype, type) or not hasattr(dtype, "__array_namespace__")):
        try:
            code = code_or_none(Dtype(dtype))
        except TypeError:
            return -1
    return code


cdef int dtype_code(object dtype) except -1:
    """Return the code of a dtype-like object, or raise TypeError."""
    cdef int code = -1 if dtype is None else find_code(dtype)
    if code < 0:
        raise TypeError(
            f"{dtype!r} is not a dtype of the array API; "
            f"valid are {', '.join(NAMES)}")
    return code


cdef int promote_all(list codes) except? -1:
    """Return the common dtype of several; it does not depend on their order.

    The highest kinds are promoted first. Otherwise two small integers could promote to
    a larger one first, which would then promote a small float to a larger one.
    """
    cdef int code = -1, other
    cdef int kind
    for kind in range(KIND_COMPLEX, KIND_BOOL - 1, -1):
        for other in codes:
            if kind_of[other] == kind:
                code = other if code < 0 else promote_table[code][other]
    return code


cdef int scalar_dtype(int array_dtype, object scalar) except -1:
    """Return the dtype of an operation on an array and a Python scalar.

    It is the array's dtype if that can hold the scalar's kind, else the smallest dtype
    that can (for a float array with a complex scalar, an integer array with a float).
    """
    cdef int kind = kind_of[array_dtype]
    if isinstance(scalar, bool):
        return array_dtype
    if isinstance(scalar, int):
        return INT64 if kind == KIND_BOOL else array_dtype
    if isinstance(scalar, float):
        return array_dtype if kind >= KIND_FLOAT else FLOAT64
    return promote_table[array_dtype][COMPLEX64] if kind >= KIND_FLOAT else COMPLEX128


cdef int raise_overflow(object scalar, int dtype) except -1:
    info = np.iinfo(DTYPES[dtype])
    try:
        text = str(scalar)
    except ValueError:
        text = f"of {int(scalar).bit_length()} bits"
    raise OverflowError(
        f"Python integer {text} does not fit {NAMES[dtype]} "
        f"(from {info.min} to {info.max}); use a wider dtype")


cdef int store_scalar(object scalar, int dtype, char *out) except -1:
    """Write a Python scalar as one element of `dtype` at `out` (16 bytes)."""
    cdef int64_t signed_value = 0
    cdef uint64_t unsigned_value = 0
    cdef double real
    cdef int bits
    if dtype == FLOAT64:
        (<double *>out)[0] = scalar
        return 0
    if dtype == FLOAT32:
        real = scalar
        (<float *>out)[0] = <float>real
        return 0
    if dtype == FLOAT16:
        (<uint16_t *>out)[0] = half_of(scalar)
        return 0
    if kind_of[dtype] == KIND_COMPLEX:
        # Cython counts a reference to a parameter that is assigned to. `scalar` may be
        # a constant that threads share, and count atomically.
        value = scalar if isinstance(scalar, complex) else complex(scalar)
        if dtype == COMPLEX64:
            (<float *>out)[0] = <float>PyComplex_RealAsDouble(value)
            (<float *>out)[1] = <float>PyComplex_ImagAsDouble(value)
        else:
            (<double *>out)[0] = PyComplex_RealAsDouble(value)
            (<double *>out)[1] = PyComplex_ImagAsDouble(value)
        return 0
    if dtype == BOOL:
        (<uint8_t *>out)[0] = 1 if scalar else 0
        return 0
    if kind_of[dtype] == KIND_INT:
        try:
            signed_value = scalar
        except OverflowError:
            raise_overflow(scalar, dtype)
        bits = <int>(8 * itemsize_of[dtype])
        if bits < 64 and (signed_value >> (bits - 1)) not in (0, -1):
            raise_overflow(scalar, dtype)
        if dtype == INT64:
            (<int64_t *>out)[0] = signed_value
        elif dtype == INT32:
            (<int32_t *>out)[0] = <int32_t>signed_value
        elif dtype == INT16:
            (<int16_t *>out)[0] = <int16_t>signed_value
        else:
            (<int8_t *>out)[0] = <int8_t>signed_value
        return 0
    try:
        unsigned_value = scalar
    except OverflowError:
        raise_overflow(scalar, dtype)
    bits = <int>(8 * itemsize_of[dtype])
    if bits < 64 and (unsigned_value >> bits) != 0:
        raise_overflow(scalar, dtype)
    if dtype == UINT64:
        (<uint64_t *>out)[0] = unsigned_value
    elif dtype == UINT32:
        (<uint32_t *>out)[0] = <uint32_t>unsigned_value
    elif dtype == UINT16:
        (<uint16_t *>out)[0] = <uint16_t>unsigned_value
    else:
        (<uint8_t *>out)[0] = <uint8_t>unsigned_value
    return 0


# ---- NumPy's scalars -----------------------------------------------------------------
# They ask for the type of an object alone. `isinstance` also asks for `__class__`,
# which may run code of the user.

cnp.import_array()

cdef extern from *:
    """
    #define NDX_IS_SCALAR(x) PyArray_IsScalar(x, Generic)
    #define NDX_IS_BOOL(x) PyArray_IsScalar(x, Bool)
    """
    bint NDX_IS_SCALAR(object x) noexcept
    bint NDX_IS_BOOL(object x) noexcept


cdef bint is_numpy_scalar(object x) noexcept:
    return NDX_IS_SCALAR(x)


cdef bint is_numpy_bool(object x) noexcept:
    return NDX_IS_BOOL(x)


cdef bint is_refused_array(object error) except -1:
    """Whether NumPy has refused what an object's `__array__` returned: an NDArray."""
    return str(error).startswith("object __array__ method not producing an array")
