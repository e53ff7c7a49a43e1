"""A module whose globals tests read and change from outside."""

rate = 2.0
weights = None


def scaled(x):
    """Read a global of this module, not of the caller's."""
    return x * rate
