"""Elementwise functions of the standard, each made from a row of a table.

A row has a name, a description of the result, and an example. All functions share the
code in `ndx._compute.ufunc_factory`. Docstrings are made here, from the row and the
dtypes that the operation supports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndx._compute.elementwise import binding_bounds, clip_between
from ndx._compute.numpy_calls import argument
from ndx._compute.ufunc_factory import (
    check_operands,
    make_binary,
    make_unary,
    ufunc_domain,
)

if TYPE_CHECKING:
    from ndx._typing import Array, NDArray, Operand

_PAGE = "https://data-apis.org/array-api/2025.12/API_specification/generated/"
_KINDS = {
    "b": "bool",
    "i": "signed integer",
    "u": "unsigned integer",
    "f": "real floating-point",
    "c": "complex floating-point",
}
_OF_X = "Has the dtype of `x`"
_PROMOTED = "Has the promoted dtype"
_UNARY = """Return {what}, element by element.

    Parameters
    ----------
    x : NDArray
        Dtypes: {dtypes}.
    out : NDArray, optional
        Receives the result, whose shape and dtype it must have. It may be `x`.

    Returns
    -------
    NDArray, shape of `x`
        {result}.

    Raises
    ------
    TypeError
        If `x` is not an array, or has another dtype.
    StaleArrayError
        If the scope that an array was made in has ended.

    Notes
    -----
    Array API 2025.12, `{name}`: {page}

    Examples
    --------
    >>> import ndx
    >>> {call}
    {answer}
    """
_BINARY = """Return {what}, element by element.

    Parameters
    ----------
    x1, x2 : NDArray, or one of them a Python scalar
        Shapes that broadcast together. Dtypes: {dtypes}.
    out : NDArray, optional
        Receives the result, whose shape and dtype it must have. It may be `x1` or
        `x2`.

    Returns
    -------
    NDArray, the broadcast shape
        {result}.

    Raises
    ------
    TypeError
        If neither operand is an array, or one has another dtype.
    ValueError
        If the shapes can't be broadcast together.
    StaleArrayError
        If the scope that an array was made in has ended.

    Notes
    -----
    Array API 2025.12, `{name}`: {page}

    Examples
    --------
    >>> import ndx
    >>> {call}
    {answer}
    """


def _make(maker, template, name, what, call, answer, result):
    function = maker(name)
    domain = ufunc_domain(name)
    dtypes = ", ".join(_KINDS[kind] for kind in domain if kind in _KINDS)
    if "F" in domain:
        dtypes += "; other real dtypes are computed in float64"
        if result in (_OF_X, _PROMOTED):
            result += "; float64 for integers and bools"
    function.__name__ = function.__qualname__ = name
    function.__module__ = "ndx"
    function.__doc__ = template.format(
        name=name,
        what=what,
        dtypes=dtypes,
        call=call,
        answer=answer,
        result=result,
        page=f"{_PAGE}array_api.{name}.html",
    )
    return function


def _unary(name, what, call, answer, result=_OF_X):
    return _make(make_unary, _UNARY, name, what, call, answer, result)


def _binary(name, what, call, answer, result=_PROMOTED):
    return _make(make_binary, _BINARY, name, what, call, answer, result)


_BOOL = "Has dtype bool"

acos = _unary("acos", "the inverse cosine", "ndx.acos(ndx.ones(1))", "NDArray([0.])")
acosh = _unary(
    "acosh", "the inverse hyperbolic cosine", "ndx.acosh(ndx.ones(1))", "NDArray([0.])"
)
asin = _unary("asin", "the inverse sine", "ndx.asin(ndx.zeros(1))", "NDArray([0.])")
asinh = _unary(
    "asinh", "the inverse hyperbolic sine", "ndx.asinh(ndx.zeros(1))", "NDArray([0.])"
)
atan = _unary("atan", "the inverse tangent", "ndx.atan(ndx.zeros(1))", "NDArray([0.])")
atanh = _unary(
    "atanh",
    "the inverse hyperbolic tangent",
    "ndx.atanh(ndx.zeros(1))",
    "NDArray([0.])",
)
abs = _unary(
    "abs",
    "the absolute value",
    "ndx.abs(ndx.asarray([-1, 2]))",
    "NDArray([1, 2])",
    "Has the dtype of `x`; for complex numbers, the dtype of their parts",
)
bitwise_invert = _unary(
    "bitwise_invert",
    "each bit flipped",
    "ndx.bitwise_invert(ndx.asarray([0, 1]))",
    "NDArray([-1, -2])",
)
ceil = _unary(
    "ceil",
    "the smallest integer not below the element",
    "ndx.ceil(ndx.asarray([1.2, -1.2]))",
    "NDArray([ 2., -1.])",
)
conj = _unary(
    "conj",
    "the complex conjugate",
    "ndx.conj(ndx.asarray([1 + 2j]))",
    "NDArray([1.-2.j])",
)
cos = _unary("cos", "the cosine", "ndx.cos(ndx.zeros(1))", "NDArray([1.])")
cosh = _unary(
    "cosh", "the hyperbolic cosine", "ndx.cosh(ndx.zeros(1))", "NDArray([1.])"
)
exp = _unary("exp", "e to the power", "ndx.exp(ndx.zeros(2))", "NDArray([1., 1.])")
expm1 = _unary(
    "expm1", "``exp(x) - 1``, exact near 0", "ndx.expm1(ndx.zeros(1))", "NDArray([0.])"
)
floor = _unary(
    "floor",
    "the largest integer not above the element",
    "ndx.floor(ndx.asarray([1.2, -1.2]))",
    "NDArray([ 1., -2.])",
)
isfinite = _unary(
    "isfinite",
    "whether the element is neither infinite nor NaN",
    "ndx.isfinite(ndx.asarray([1.0, ndx.inf]))",
    "NDArray([ True, False])",
    _BOOL,
)
isinf = _unary(
    "isinf",
    "whether the element is infinite",
    "ndx.isinf(ndx.asarray([1.0, ndx.inf]))",
    "NDArray([False,  True])",
    _BOOL,
)
isnan = _unary(
    "isnan",
    "whether the element is NaN",
    "ndx.isnan(ndx.asarray([1.0, ndx.nan]))",
    "NDArray([False,  True])",
    _BOOL,
)
log = _unary("log", "the natural logarithm", "ndx.log(ndx.ones(1))", "NDArray([0.])")
log10 = _unary(
    "log10",
    "the logarithm to base 10",
    "ndx.log10(ndx.asarray([100.0]))",
    "NDArray([2.])",
)
log1p = _unary(
    "log1p", "``log(1 + x)``, exact near 0", "ndx.log1p(ndx.zeros(1))", "NDArray([0.])"
)
log2 = _unary(
    "log2", "the logarithm to base 2", "ndx.log2(ndx.asarray([8.0]))", "NDArray([3.])"
)
logical_not = _unary(
    "logical_not",
    "whether the element is false (zero)",
    "ndx.logical_not(ndx.asarray([True, False]))",
    "NDArray([False,  True])",
    _BOOL,
)
negative = _unary(
    "negative",
    "the element negated",
    "ndx.negative(ndx.asarray([1, -2]))",
    "NDArray([-1,  2])",
)
positive = _unary(
    "positive",
    "the element itself",
    "ndx.positive(ndx.asarray([1, -2]))",
    "NDArray([ 1, -2])",
)
reciprocal = _unary(
    "reciprocal",
    "one over the element",
    "ndx.reciprocal(ndx.asarray([4.0]))",
    "NDArray([0.25])",
)
sign = _unary(
    "sign",
    "-1, 0 or 1 by sign; for complex numbers ``x / abs(x)``",
    "ndx.sign(ndx.asarray([-5, 0, 3]))",
    "NDArray([-1,  0,  1])",
)
signbit = _unary(
    "signbit",
    "whether the sign bit is set",
    "ndx.signbit(ndx.asarray([-0.0, 1.0]))",
    "NDArray([ True, False])",
    _BOOL,
)
sin = _unary("sin", "the sine", "ndx.sin(ndx.zeros(1))", "NDArray([0.])")
sinh = _unary("sinh", "the hyperbolic sine", "ndx.sinh(ndx.zeros(1))", "NDArray([0.])")
sqrt = _unary(
    "sqrt", "the square root", "ndx.sqrt(ndx.asarray([9.0]))", "NDArray([3.])"
)
square = _unary("square", "the square", "ndx.square(ndx.asarray([3]))", "NDArray([9])")
tan = _unary("tan", "the tangent", "ndx.tan(ndx.zeros(1))", "NDArray([0.])")
tanh = _unary(
    "tanh", "the hyperbolic tangent", "ndx.tanh(ndx.zeros(1))", "NDArray([0.])"
)
trunc = _unary(
    "trunc",
    "the element rounded towards 0",
    "ndx.trunc(ndx.asarray([1.7, -1.7]))",
    "NDArray([ 1., -1.])",
)

add = _binary("add", "the sum", "ndx.add(ndx.asarray([1, 2]), 3)", "NDArray([4, 5])")
atan2 = _binary(
    "atan2",
    "the angle of the point ``(x2, x1)``, in radians",
    "ndx.atan2(ndx.zeros(1), ndx.ones(1))",
    "NDArray([0.])",
)
bitwise_and = _binary(
    "bitwise_and",
    "the bitwise and",
    "ndx.bitwise_and(ndx.asarray([6]), 3)",
    "NDArray([2])",
)
bitwise_left_shift = _binary(
    "bitwise_left_shift",
    "the bits of the first, shifted left by the second",
    "ndx.bitwise_left_shift(ndx.asarray([3]), 2)",
    "NDArray([12])",
)
bitwise_or = _binary(
    "bitwise_or",
    "the bitwise or",
    "ndx.bitwise_or(ndx.asarray([6]), 3)",
    "NDArray([7])",
)
bitwise_right_shift = _binary(
    "bitwise_right_shift",
    "the bits of the first, shifted right by the second",
    "ndx.bitwise_right_shift(ndx.asarray([12]), 2)",
    "NDArray([3])",
)
bitwise_xor = _binary(
    "bitwise_xor",
    "the bitwise exclusive or",
    "ndx.bitwise_xor(ndx.asarray([6]), 3)",
    "NDArray([5])",
)
copysign = _binary(
    "copysign",
    "the magnitude of the first with the sign of the second",
    "ndx.copysign(ndx.ones(1), -2.0)",
    "NDArray([-1.])",
)
divide = _binary(
    "divide", "the quotient", "ndx.divide(ndx.asarray([1.0]), 4.0)", "NDArray([0.25])"
)
equal = _binary(
    "equal",
    "whether the two are equal",
    "ndx.equal(ndx.asarray([1, 2]), 2)",
    "NDArray([False,  True])",
    _BOOL,
)
floor_divide = _binary(
    "floor_divide",
    "the quotient rounded down",
    "ndx.floor_divide(ndx.asarray([7, -7]), 2)",
    "NDArray([ 3, -4])",
    "Has the promoted dtype. Quotients are exact up to 2**53 in float64 and up to\n"
    "        2**24 in float32, where Python's and NumPy's may be off by one",
)
greater = _binary(
    "greater",
    "whether the first is greater",
    "ndx.greater(ndx.asarray([1, 3]), 2)",
    "NDArray([False,  True])",
    _BOOL,
)
greater_equal = _binary(
    "greater_equal",
    "whether the first is greater or equal",
    "ndx.greater_equal(ndx.asarray([1, 2]), 2)",
    "NDArray([False,  True])",
    _BOOL,
)
hypot = _binary(
    "hypot",
    "the length of the vector ``(x1, x2)``",
    "ndx.hypot(ndx.asarray([3.0]), 4.0)",
    "NDArray([5.])",
)
less = _binary(
    "less",
    "whether the first is less",
    "ndx.less(ndx.asarray([1, 3]), 2)",
    "NDArray([ True, False])",
    _BOOL,
)
less_equal = _binary(
    "less_equal",
    "whether the first is less or equal",
    "ndx.less_equal(ndx.asarray([2, 3]), 2)",
    "NDArray([ True, False])",
    _BOOL,
)
logaddexp = _binary(
    "logaddexp",
    "``log(exp(x1) + exp(x2))``, without overflow",
    "ndx.logaddexp(ndx.zeros(1), -ndx.inf)",
    "NDArray([0.])",
)
logical_and = _binary(
    "logical_and",
    "whether both are true (not zero)",
    "ndx.logical_and(ndx.asarray([True, False]), True)",
    "NDArray([ True, False])",
    _BOOL,
)
logical_or = _binary(
    "logical_or",
    "whether at least one is true (not zero)",
    "ndx.logical_or(ndx.asarray([True, False]), False)",
    "NDArray([ True, False])",
    _BOOL,
)
logical_xor = _binary(
    "logical_xor",
    "whether exactly one is true (not zero)",
    "ndx.logical_xor(ndx.asarray([True, False]), True)",
    "NDArray([False,  True])",
    _BOOL,
)
maximum = _binary(
    "maximum",
    "the larger of the two, or NaN if either is NaN",
    "ndx.maximum(ndx.asarray([1, 3]), 2)",
    "NDArray([2, 3])",
)
minimum = _binary(
    "minimum",
    "the smaller of the two, or NaN if either is NaN",
    "ndx.minimum(ndx.asarray([1, 3]), 2)",
    "NDArray([1, 2])",
)
multiply = _binary(
    "multiply",
    "the product",
    "ndx.multiply(ndx.asarray([2, 3]), 4)",
    "NDArray([ 8, 12])",
)
nextafter = _binary(
    "nextafter",
    "the number next to the first, towards the second",
    "ndx.nextafter(ndx.ones(1), 1.0)",
    "NDArray([1.])",
)
not_equal = _binary(
    "not_equal",
    "whether the two differ",
    "ndx.not_equal(ndx.asarray([1, 2]), 2)",
    "NDArray([ True, False])",
    _BOOL,
)
pow = _binary(
    "pow",
    "the first to the power of the second",
    "ndx.pow(ndx.asarray([2, 3]), 2)",
    "NDArray([4, 9])",
)
remainder = _binary(
    "remainder",
    "the remainder of the division, with the sign of the second",
    "ndx.remainder(ndx.asarray([7, -7]), 3)",
    "NDArray([1, 2])",
)
subtract = _binary(
    "subtract",
    "the difference",
    "ndx.subtract(ndx.asarray([5, 6]), 2)",
    "NDArray([3, 4])",
)


_rint = make_unary("rint")

UFUNCS = [
    name
    for name, value in globals().items()
    if getattr(value, "__module__", None) == "ndx"
]
__all__ = [*UFUNCS, "clip", "round"]


def clip(
    x: Array,
    /,
    min: Operand | None = None,
    max: Operand | None = None,
    *,
    out: NDArray | None = None,
) -> NDArray:
    """Return each element, limited to the interval between two bounds.

    Parameters
    ----------
    x : NDArray
        Of a real dtype, or of complex numbers, which are compared by their real
        parts, then by the imaginary ones.
    min, max : NDArray or Python scalar, optional
        Bounds; they broadcast with `x`. Default: none.
    out : NDArray, optional
        Receives the result, whose shape and dtype it must have. It may be `x`.

    Returns
    -------
    NDArray, the broadcast shape
        Of the promoted dtype of `x` and the bounds; a bound that is a Python scalar
        changes the dtype only where it is of a higher kind (1.5 next to integers). NaN
        where one of the three is NaN, and `max` where `min` is larger than `max`.

    Raises
    ------
    OverflowError
        If `x` has integers, and each would be limited to one that the dtype lacks:
        uint8 to 300 and more. Up to 300, they are not limited.
    TypeError
        If an argument is neither an array nor a scalar.
    ValueError
        If the shapes can't be broadcast together.

    Notes
    -----
    Array API 2025.12, `clip`.

    Examples
    --------
    >>> import ndx
    >>> ndx.clip(ndx.asarray([-5, 3, 9]), 0, 5)
    NDArray([0, 3, 5])
    """
    try:
        if min is None and max is None:
            return positive(x, out=out)
        if min is None:
            return minimum(x, max, out=out)
        if max is None:
            return maximum(x, min, out=out)
        clipped = clip_between(x, min, max, out)
        if clipped is not None:
            return clipped
        return minimum(maximum(x, min), max, out=out)
    except TypeError:
        # The functions above would name themselves.
        check_operands("clip", x, min, max)
        raise
    except OverflowError:
        bounds = binding_bounds(x, min, max)
        if bounds[0] is min and bounds[1] is max:
            raise
    return clip(x, *bounds, out=out)


def round(x: Array, /, *, out: NDArray | None = None) -> NDArray:
    """Return the integer nearest to each element; halves round to even.

    Parameters
    ----------
    x : NDArray
        Of a numeric dtype; the parts of complex numbers are rounded separately.
    out : NDArray, optional
        Receives the result, whose shape and dtype it must have. It may be `x`.

    Returns
    -------
    NDArray, shape of `x`
        Of the dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not an array, or of bools.

    Notes
    -----
    Array API 2025.12, `round`.

    Examples
    --------
    >>> import ndx
    >>> ndx.round(ndx.asarray([0.5, 1.5, -1.2]))
    NDArray([ 0.,  2., -1.])
    """
    x = argument(x, "round")
    return positive(x, out=out) if x.dtype.kind in "iu" else _rint(x, out=out)
