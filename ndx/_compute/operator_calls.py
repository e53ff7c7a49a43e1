"""Calls of an array's operators by the interpreter, from which `temporaries` learns."""

__all__ = ["calls_of_operators"]


# In plain Python, since compiled code would be the caller.
def calls_of_operators(x):
    """Return functions that each apply an operator to an array, on either side."""
    return [
        lambda: x + x, lambda: x + 1, lambda: 1 + x,
        lambda: x - x, lambda: x - 1, lambda: 1 - x,
        lambda: x * x, lambda: x * 1, lambda: 1 * x,
        lambda: x / x, lambda: x / 1, lambda: 1 / x,
        lambda: x // x, lambda: x // 1, lambda: 1 // x,
        lambda: x % x, lambda: x % 1, lambda: 1 % x,
        lambda: x**x, lambda: x**1, lambda: 1**x,
        lambda: x & x, lambda: x & 1, lambda: 1 & x,
        lambda: x | x, lambda: x | 1, lambda: 1 | x,
        lambda: x ^ x, lambda: x ^ 1, lambda: 1 ^ x,
    ]  # fmt: skip
