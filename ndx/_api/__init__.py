"""The functions of the standard, a file for each of its chapters."""

import ndx._lib  # noqa: F401  # first: it checks that `ndx` is this package
