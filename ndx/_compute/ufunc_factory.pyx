"""Factories for elementwise functions: real functions with signatures, from a table."""

from ndx._array.storage cimport BaseArray, is_array
from ndx._compute.elementwise cimport (
    binary, is_number, operand_error, operand_of, unary,
)
from ndx._compute.loops cimport Ufunc, find_ufunc

from ndx._compute.elementwise import unfit

__all__ = ["check_operands", "make_binary", "make_unary", "ufunc_domain"]


def ufunc_domain(name):
    """Return the kinds of dtype that an operation takes, as in ``np.dtype.kind``."""
    return find_ufunc(name).domain


cdef inline BaseArray output(object out):
    if out is None or is_array(out):
        return out
    raise TypeError(f"out must be an NDArray, not {type(out).__name__}")


def check_operands(str name, x, *others):
    """Raise TypeError in the name of a function if it can't take an operand.

    `x` must be an array; the others may be scalars, or None.
    """
    if operand_of(x) is None:
        raise unfit(name, x, True)
    for other in others:
        if other is not None and not is_number(other) and operand_of(other) is None:
            raise unfit(name, other, False)


def make_unary(str name):
    """Return the function of an operation of one operand."""
    cdef Ufunc ufunc = find_ufunc(name)

    def function(x: Array, /, *, out: NDArray | None = None) -> NDArray:
        cdef BaseArray operand
        if is_array(x):
            return unary(ufunc, <BaseArray>x, output(out))
        operand = operand_of(x)
        if operand is None:
            raise unfit(ufunc.name, x, True)
        return unary(ufunc, operand, output(out))

    return function


def make_binary(str name):
    """Return the function of an operation of two operands."""
    cdef Ufunc ufunc = find_ufunc(name)

    def function(x1: Operand, x2: Operand, /, *, out: NDArray | None = None) -> NDArray:
        result = binary(ufunc, x1, x2, output(out))
        if result is NotImplemented:
            raise operand_error(ufunc, x1, x2)
        return result

    return function
