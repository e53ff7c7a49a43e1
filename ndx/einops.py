"""NDArrays in einops.

Nobody has to import this module: ndx does when einops is imported. einops has a backend
for each class of arrays, and finds them among the subclasses of its own.

Examples
--------
>>> import einops, ndx
>>> einops.rearrange(ndx.arange(6), "(a b) -> b a", b=3)
NDArray([[0, 3],
       [1, 4],
       [2, 5]])
"""

from einops._backends import NumpyBackend

import ndx.numpy
from ndx._core import NDArray

__all__ = ["Backend", "register"]


class Backend(NumpyBackend):
    """einops' backend for NDArrays: it computes by `ndx.numpy`."""

    framework_name = "ndx"

    def __init__(self):
        self.np = ndx.numpy

    def is_appropriate_type(self, tensor):
        """Return whether an array is an NDArray."""
        return isinstance(tensor, NDArray)


def register():
    """Do nothing: einops finds `Backend` among the subclasses of its class."""
