"""Operators of an NDArray and an operand that ndx does not compute with.

NumPy's rules decide, for all operators, as if the NDArray were an array of NumPy's
(NEP 13; ``numpy/_core/src/common/binop_override.h``):

1. The operator is left to an operand on the right whose ``__array_ufunc__`` is None, or
   which lacks this attribute and has a higher `__array_priority__` than NumPy's arrays.
   It has reflected methods. An operator in place is left to the latter only.
2. Any other operand is one of NumPy's ufunc. This calls the operand's
   `__array_ufunc__`, or converts the operand: to an array of objects if need be, whose
   elements are asked one by one.

A subclass of NumPy's array computes with a NumPy view, by its own methods. Lists and
tuples are converted. None and strings are left to Python.

References
----------
NEP 13, a mechanism for overriding ufuncs: https://numpy.org/neps/nep-0013
"""

cimport numpy as cnp

import operator

import numpy as np

from ndx._array.storage cimport BaseArray, holds_number, is_array
from ndx._compute.elementwise cimport (
    as_operand, has_priority, is_number, is_subclass, operand_error, overrides_ufuncs,
)
from ndx._lib.dtypes cimport (
    KIND_BOOL, KIND_FLOAT, KIND_INT, KIND_UINT, code_or_none, kind_of,
)
from ndx._lib.numpy_private cimport may_report, reports
from ndx._methods.numpy_dispatch cimport call_function
from ndx._methods.values cimport numpy_scalar

cdef extern from "ndx/internal/operators.h":
    bint NDX_CALCULATES(object x) noexcept
    bint NDX_REPEATS(object x) noexcept

cdef dict NOTHING = {}

# The operators of Python, by the names of ndx's operations.
cdef dict COMPARISONS = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}
cdef dict OPERATORS = COMPARISONS | {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "pow": operator.pow, "matmul": operator.matmul,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
}

# The axes of ``x @= y``, by which NumPy refuses a product of another shape than `x`.
cdef list AXES_OF_VECTOR = [(-1,), (-2, -1), (-1,)]
cdef list AXES_OF_MATRIX = [(-2, -1)] * 3


cdef object operate_with(Ufunc ufunc, object x1, object x2):
    """Compute an operator of an NDArray, on either side; or NotImplemented."""
    found = answer(ufunc, OPERATORS[ufunc.name], ufunc.public, x1, x2)
    if found is not None:
        return found
    if ufunc.name in COMPARISONS:
        # Objects that can't be compared are not equal, where the ufunc would raise.
        return call_function(COMPARISONS[ufunc.name], (x1, x2), NOTHING)
    return ufunc.public(x1, x2)


cdef object divide_with(Ufunc ufunc, object x1, object x2):
    """Compute `divmod`, whose quotient is that of `ufunc`; or NotImplemented."""
    found = answer(ufunc, divmod, np.divmod, x1, x2)
    return np.divmod(x1, x2) if found is None else found


cdef object answer(Ufunc ufunc, object operation, object public, object x1, object x2):
    """Let an operand that computes by itself do so; None: NumPy converts it."""
    cdef bint is_forward = is_array(x1)
    other = x2 if is_forward else x1
    if is_subclass(other):
        return call_function(operation, (x1, x2), NOTHING)
    if overrides_ufuncs(other):
        if is_forward and type(other).__array_ufunc__ is None:
            return NotImplemented
        return public(x1, x2)
    if is_forward and has_priority(other):
        if ufunc.name in ("equal", "not_equal") and hasattr(other, "__dlpack__"):
            return compared_by(ufunc, x1, other)
        return NotImplemented
    return None if is_convertible(ufunc, x1, x2) else NotImplemented


cdef object compared_by(Ufunc ufunc, object x, object other):
    """Compare an NDArray with an array of another library, by that library's operator.

    If both operators decline, Python compares identities, and returns a bool.
    """
    method = f"__{COMPARISONS[ufunc.name].__name__}__"
    found = getattr(type(other), method)(other, x)
    if found is NotImplemented:
        raise TypeError(
            f"{ufunc.name} does not compare an NDArray with a "
            f"{type(other).__qualname__}; convert one of them: ndx.from_dlpack makes "
            "an NDArray of the other")
    return found


# NumPy's words where no operand computes: the class of one may decline unknown arrays.
cdef str DECLINED = "operand type(s) all returned NotImplemented"


cdef object operate_in_place_with(Ufunc ufunc, BaseArray x, object other):
    """Compute ``x op= other`` by NumPy's ufunc; or NotImplemented."""
    if not is_subclass(other) and not overrides_ufuncs(other) and (
            has_priority(other) or not is_convertible(ufunc, x, other)):
        return NotImplemented
    named = {"out": (x,)}
    if ufunc.name == "matmul":
        named["axes"] = AXES_OF_VECTOR if x.ndim == 1 else AXES_OF_MATRIX
    try:
        return ufunc.public(x, other, **named)
    except TypeError as raised:
        if not overrides_ufuncs(other) or not str(raised).startswith(DECLINED):
            raise
    # The operand is asked again, with NumPy's views.
    return call_function(ufunc.public, (x, other), named)


cdef bint is_convertible(Ufunc ufunc, object x1, object x2) except -1:
    """Whether NumPy is to convert an operand; raise where Python has a fallback.

    Python would repeat a sequence that is neither a list nor a tuple, and append the
    bytes of an array to bytes.
    """
    cdef BaseArray array = x1 if is_array(x1) else x2
    cdef object other = x2 if is_array(x1) else x1
    if ufunc.name == "multiply" and holds_number(array) and NDX_REPEATS(other) and \
            kind_of[array.dtype] in (KIND_INT, KIND_UINT):
        # A count, as NumPy's integers are: Python repeats the sequence.
        return False
    if isinstance(other, (list, tuple)):
        if array.block.device and not NDX_CALCULATES(other):
            raise operand_error(ufunc, x1, x2)
        return not NDX_CALCULATES(other)
    if ufunc.name == "multiply" and NDX_REPEATS(other):
        raise operand_error(ufunc, x1, x2)
    if ufunc.name == "add" and isinstance(other, bytes):
        raise operand_error(ufunc, x1, x2)
    return other is not None and not isinstance(other, (str, bytes)) \
        and array.block.device == 0


cdef bint are_scalars(object x1, object x2) except -1:
    """Whether NumPy's scalars compute some operators otherwise than arrays of ndx.

    Infinities have other quotients, powers differ by an ulp, and bools have all.
    """
    cdef int kind = KIND_BOOL, code
    for x in (x1, x2):
        if is_array(x):
            if not holds_number(<BaseArray>x):
                return False
            kind = max(kind, kind_of[(<BaseArray>x).dtype])
        elif isinstance(x, (cnp.generic, cnp.ndarray)):
            code = code_or_none(x.dtype) if x.ndim == 0 else -1
            if code < 0:
                return False
            kind = max(kind, kind_of[code])
        elif not is_number(x):
            return False
        elif type(x) is not bool:
            kind = max(kind, KIND_INT if type(x) is int else KIND_FLOAT)
    return kind == KIND_BOOL or kind >= KIND_FLOAT


cdef object compute_scalars(object function, object x1, object x2):
    """Compute an operator of numbers as NumPy's scalars do."""
    if is_array(x1):
        x1 = numpy_scalar(<BaseArray>x1)
    if is_array(x2):
        x2 = numpy_scalar(<BaseArray>x2)
    if not may_report() or not reports():
        function = np.errstate(all="ignore")(function)
    found = function(x1, x2)
    return tuple(map(as_operand, found)) if type(found) is tuple else as_operand(found)
