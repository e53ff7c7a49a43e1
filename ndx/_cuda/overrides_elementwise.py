"""Operations and products on a GPU, where CuPy's functions are not the standard's."""

import numpy as np

from ndx._cuda.calls import function_of

__all__ = ["MENDED", "check_power", "computed"]


def computed(name, given):
    """Compute an operation on CuPy's arrays and scalars.

    They have one dtype, or are uint64 and int64 arrays that are compared.
    """
    if len(given) == 2 and given[0].dtype != given[1].dtype:
        return _compared(name, *given)
    kinds, mended = MENDED.get(name, ("", None))
    function = mended if given[0].dtype.kind in kinds else function_of(name)
    return function(*given)


def check_power(base, exponent):
    """Refuse negative exponents as the CPU does, if that needs no wait."""
    is_negative = isinstance(exponent, np.generic) and exponent < 0
    if is_negative and base.dtype.kind in "iu" and base.size:
        msg = (
            f"integers can't be raised to the power {exponent}, since the result "
            "would be none: take floating-point numbers"
        )
        raise ValueError(msg)


# ---------------------------------------------------------------- replacements
#
# Operands are CuPy's arrays of one dtype (but `_compared`), or one array and a scalar
# of NumPy's.


def _compared(name, x, y):
    """Compare uint64 and int64 exactly, as on the CPU; CuPy compares them as floats."""
    signed_first = x.dtype.kind == "i"
    signed = x if signed_first else y
    x, y = x.astype(np.uint64, copy=False), y.astype(np.uint64, copy=False)
    found = function_of(name)(x, y)
    # What a negative number is to all of uint64.
    wanted = "less" if signed_first else "greater"
    if name == "not_equal" or name.startswith(wanted):
        return found | (signed < 0)
    return found & (signed >= 0)


def _remainder(x, y):
    """Compute a remainder as NumPy does.

    CuPy's ``x - floor(x / y) * y`` may be off by `y`, and more.
    """
    rest = _rest(x, y)
    return function_of("where")(rest == 0, function_of("copysign")(rest, y), rest)


def _floor_divide(x, y):
    """Divide and round down exactly, as on the CPU.

    The quotient of CuPy's ``floor(x / y)`` may be rounded up.
    """
    quotient = x / y
    whole = function_of("floor")(quotient)
    # The quotient was rounded up if more than half of `y` is left over. A remainder of
    # exactly half was rounded to the even integer, which may be above.
    share = _rest(x, y) / y
    up = (share > 0.5) | ((share == 0.5) & (_rest(x, y + y) / y >= 1))
    # Not all larger integers are floats. NaN (infinities, division by 0) is not up.
    up &= (whole == quotient) & (abs(whole) <= 2 ** (53 if whole.itemsize == 8 else 24))
    return function_of("where")(up, whole - 1, whole)


def _rest(x, y):
    """Return the remainder of a division that is rounded down."""
    rest = function_of("fmod")(x, y)
    return function_of("where")(_has_other_sign(rest, y), rest + y, rest)


def _has_other_sign(rest, y):
    return (rest != 0) & ((rest < 0) != (y < 0))


def _expm1(z):
    """Compute `expm1` as exactly near 0 as for reals; CuPy's is ``exp(z) - 1``."""
    result = function_of("exp")(z) - 1
    a, b = z.real, z.imag
    near = function_of("expm1")(a) * function_of("cos")(b)
    near -= 2 * function_of("square")(function_of("sin")(b / 2))
    # Infinities, NaN and zeros are right already.
    wanted = function_of("isfinite")(near) & (near != 0)
    result.real[...] = function_of("where")(wanted, near, result.real)
    return result


def _tanh(z):
    """Compute `tanh` with the standard's special values; CuPy has an older C's."""
    result, a, b = function_of("tanh")(z), z.real, z.imag
    where, isfinite = function_of("where"), function_of("isfinite")
    far = function_of("isinf")(a)
    zero = function_of("copysign")(function_of("zeros_like")(b), b)
    real = where((a == 0) & ~isfinite(b), a, result.real)
    result.real[...] = where(far, function_of("sign")(a), real)
    result.imag[...] = where(far, zero, result.imag)
    return result


def _tan(z):
    """Compute `tan` as ``-1j * tanh(1j * z)``, without products of infinities."""
    turned = function_of("empty_like")(z)
    turned.real[...], turned.imag[...] = -z.imag, z.real
    found = _tanh(turned)
    turned.real[...], turned.imag[...] = found.imag, -found.real
    return turned


def _of_truth(name):
    """Return a logical function of complex numbers, for which CuPy has no loops."""

    def function(*given):
        return function_of(name)(*[x != 0 for x in given])

    return function


# Name -> the kinds of dtypes, and the function that replaces CuPy's.
MENDED = {
    "expm1": ("c", _expm1),
    "floor_divide": ("f", _floor_divide),
    "remainder": ("f", _remainder),
    "tan": ("c", _tan),
    "tanh": ("c", _tanh),
    **{
        name: ("c", _of_truth(name))
        for name in ("logical_and", "logical_not", "logical_or", "logical_xor")
    },
}
