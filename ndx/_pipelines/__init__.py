"""Tools for loops, built on the public names of ndx alone."""

import ndx._lib  # noqa: F401 - raises if the package's `__init__` is not that of ndx
