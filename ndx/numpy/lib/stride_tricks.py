"""NumPy's `numpy.lib.stride_tricks` with arrays of ndx.

A view that reaches beyond the memory of its array is refused.
"""

import numpy as _numpy

from ndx._numpy import namespace as _namespace

as_strided, sliding_window_view = (
    _namespace.wrapped(getattr(_numpy.lib.stride_tricks, name), name, __name__)
    for name in ("as_strided", "sliding_window_view")
)

__all__ = ["as_strided", "sliding_window_view"]
