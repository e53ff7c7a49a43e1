"""NumPy's `numpy.lib`: the parts that make or take arrays."""

from ndx.numpy.lib import stride_tricks

__all__ = ["stride_tricks"]
