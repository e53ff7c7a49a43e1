"""Tools for loops: on the public names of ndx, and private modules of lower rooms."""

import ndx._lib  # noqa: F401 - raises if the package's `__init__` is not that of ndx
