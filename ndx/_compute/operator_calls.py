"""Calls of an array's operators by the interpreter, from which `temporaries` learns."""

__all__ = ["calls_of_operators"]


# In plain Python, since compiled code would be the caller.
def calls_of_operators(x):
    """Return functions that each apply an operator to an array, on either side.

    A number on the right is asked first, since its type is derived from that of arrays.
    """
    number = x[0]
    return [
        lambda: x + x, lambda: x + 1, lambda: 1 + x, lambda: x + number,
        lambda: x - x, lambda: x - 1, lambda: 1 - x, lambda: x - number,
        lambda: x * x, lambda: x * 1, lambda: 1 * x, lambda: x * number,
        lambda: x / x, lambda: x / 1, lambda: 1 / x, lambda: x / number,
        lambda: x // x, lambda: x // 1, lambda: 1 // x, lambda: x // number,
        lambda: x % x, lambda: x % 1, lambda: 1 % x, lambda: x % number,
        lambda: x**x, lambda: x**1, lambda: 1**x, lambda: x**number,
        lambda: x & x, lambda: x & 1, lambda: 1 & x, lambda: x & number,
        lambda: x | x, lambda: x | 1, lambda: 1 | x, lambda: x | number,
        lambda: x ^ x, lambda: x ^ 1, lambda: 1 ^ x, lambda: x ^ number,
    ]  # fmt: skip
