"""Operations, products and selections on a GPU, in the dtypes in which the CPU does."""

from ndx._api.creation import asarray
from ndx._api.data_types import result_type
from ndx._api.elementwise import UFUNCS
from ndx._cuda.bridge import (
    check_writeable,
    device_index,
    elementwise_dtypes,
    inplace_fits,
)
from ndx._cuda.calls import function_of, operand
from ndx._cuda.session import common_device

__all__ = [
    "ELEMENTWISE",
    "elementwise",
    "inplace",
    "matmul",
    "outer",
    "round_",
    "vecdot",
    "where",
]

ELEMENTWISE = frozenset([*UFUNCS, "rint"])


def elementwise(name, operands, *, out=None):
    """Compute an operation in the dtypes in which the CPU does."""
    session = common_device(name, operands, (out,))
    inner, outer = elementwise_dtypes(name, operands)
    _check_power(name, operands, inner)
    with session.at_work():
        given = [operand(session, x, inner) for x in operands]
        return _delivered(name, session, computed(name, given), outer, out)


def computed(name, given):
    """Return what an operation makes of CuPy's arrays, and scalars, of one dtype."""
    kinds, mended = _MENDED.get(name, ("", None))
    function = mended if given[0].dtype.kind in kinds else function_of(name)
    return function(*given)


def _check_power(name, operands, dtype):
    """Refuse what the CPU does, where that takes no waiting: a negative number."""
    if (
        name == "pow"
        and dtype.kind in "iu"
        and device_index(operands[1]) is None
        and operands[1] < 0
    ):
        msg = (
            f"integers can't be raised to the power {operands[1]}, since the result "
            "would be none: take floating-point numbers"
        )
        raise ValueError(msg)


def _delivered(name, session, result, dtype, out):
    """Return a result in a dtype: as a new array, or written into `out`."""
    if out is None:
        return session.wrap(result.astype(dtype, copy=False))
    check_writeable(out)
    if out.dtype != dtype:
        msg = f"out has dtype {out.dtype}, but the result of {name} has dtype {dtype}"
        raise TypeError(msg)
    _store(name, session, result, out)
    return out


def _store(name, session, result, out):
    """Write a result into an array of ours of the same shape."""
    if tuple(result.shape) != out.shape:
        msg = (
            f"{name}: the output has shape {out.shape}, but the operands broadcast to "
            f"{tuple(result.shape)}"
        )
        raise ValueError(msg)
    session.unwrap(out)[...] = result


def inplace(name, x, other):
    """Compute ``x = x op other`` in the memory of `x`."""
    check_writeable(x)
    session = common_device(name, x, other)
    inner, outer = elementwise_dtypes(name, (x, other))
    if outer != x.dtype and not inplace_fits(outer, x.dtype):
        kind = getattr(other, "dtype", type(other).__name__)
        msg = (
            f"{name} of {x.dtype} and {kind} is {outer}, which can't be stored in "
            f"place in {x.dtype}; use x = x op y, or ndx.astype"
        )
        raise TypeError(msg)
    _check_power(name, (x, other), inner)
    with session.at_work():
        given = [operand(session, item, inner) for item in (x, other)]
        _store(name, session, computed(name, given), x)
    return x


def round_(x, /, *, out=None):
    """Round to the nearest integer, to the even one of two."""
    return elementwise("positive" if x.dtype.kind in "iu" else "rint", (x,), out=out)


def matmul(x1, x2, /, *, out=None):
    """Multiply matrices, in the promoted dtype."""
    session = common_device("matmul", x1, x2, (out,))
    dtype, _ = elementwise_dtypes("matmul", (x1, x2))
    for x in (x1, x2):
        if x.ndim == 0:
            msg = (
                f"matmul: operands of shapes {x1.shape} and {x2.shape}: each needs one "
                "axis or more; use multiply for scalars"
            )
            raise ValueError(msg)
    with session.at_work():
        given = [operand(session, x, dtype) for x in (x1, x2)]
        return _delivered("matmul", session, function_of("matmul")(*given), dtype, out)


def where(condition, x1, x2, /):
    """Select from two arrays or Python scalars, in the promoted dtype."""
    session = common_device("where", condition, x1, x2)
    if device_index(x1) is None and device_index(x2) is None:
        dtype = result_type(*[asarray(x).dtype for x in (x1, x2)])
    else:
        dtype = result_type(x1, x2)
    with session.at_work():
        chosen = session.unwrap(condition).astype(bool)
        given = [operand(session, x, dtype) for x in (x1, x2)]
        return session.wrap(function_of("where")(chosen, *given).astype(dtype))


def vecdot(x1, x2, /, *, axis=-1):
    """Sum products of the elements of vectors, in the promoted dtype."""
    session = common_device("vecdot", x1, x2)
    dtype, _ = elementwise_dtypes("matmul", (x1, x2))
    with session.at_work():
        given = [operand(session, x, dtype) for x in (x1, x2)]
        found = function_of("vecdot")(*given, axis=axis)
        return _delivered("vecdot", session, found, dtype, None)


def outer(x1, x2, /):
    """Multiply each element of a vector with each of another."""
    common_device("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        msg = f"outer takes two vectors, not arrays of {x1.ndim} and {x2.ndim} axes"
        raise ValueError(msg)
    return x1[:, None] * x2


# ---------------------------------------------------------------- mended
#
# Of CuPy's arrays of one dtype, or one and a scalar of NumPy's.


def _remainder(x, y):
    """Like NumPy; CuPy's ``x - floor(x / y) * y`` may be off by `y`, and more."""
    rest = _rest(x, y)
    return function_of("where")(rest == 0, function_of("copysign")(rest, y), rest)


def _floor_divide(x, y):
    """Exact, as on the CPU; CuPy's is ``floor(x / y)``, and that may be rounded up."""
    quotient = x / y
    whole = function_of("floor")(quotient)
    # Rounded up to an integer by half or less, if more than half of `y` is left over.
    # Of just a half the even integer was taken: then it says whether that was above.
    share = _rest(x, y) / y
    up = (share > 0.5) | ((share == 0.5) & (_rest(x, y + y) / y >= 1))
    # Beyond these integers not all are floats. NaN, of infinities and by 0, is not up.
    up &= (whole == quotient) & (abs(whole) <= 2 ** (53 if whole.itemsize == 8 else 24))
    return function_of("where")(up, whole - 1, whole)


def _rest(x, y):
    """Return what is left over by a division that is rounded down."""
    rest = function_of("fmod")(x, y)
    return function_of("where")(_has_other_sign(rest, y), rest + y, rest)


def _has_other_sign(rest, y):
    return (rest != 0) & ((rest < 0) != (y < 0))


def _expm1(z):
    """As exact near 0 as for real numbers; CuPy's is ``exp(z) - 1``."""
    result = function_of("exp")(z) - 1
    a, b = z.real, z.imag
    near = function_of("expm1")(a) * function_of("cos")(b)
    near -= 2 * function_of("square")(function_of("sin")(b / 2))
    # What is infinite, NaN or zero is right already.
    wanted = function_of("isfinite")(near) & (near != 0)
    result.real[...] = function_of("where")(wanted, near, result.real)
    return result


def _tanh(z):
    """With the standard's special values; CuPy has those of an older C."""
    result, a, b = function_of("tanh")(z), z.real, z.imag
    where, isfinite = function_of("where"), function_of("isfinite")
    far = function_of("isinf")(a)
    zero = function_of("copysign")(function_of("zeros_like")(b), b)
    real = where((a == 0) & ~isfinite(b), a, result.real)
    result.real[...] = where(far, function_of("sign")(a), real)
    result.imag[...] = where(far, zero, result.imag)
    return result


def _tan(z):
    """``-1j * tanh(1j * z)``, without products of infinities."""
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


# By name: for which kinds of dtypes, and what computes them instead.
_MENDED = {
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
