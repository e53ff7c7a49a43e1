"""Calls of NumPy's functions with NDArrays, for modules in Python."""

from ndx._methods.numpy_dispatch cimport call_function as call

__all__ = ["call_function"]


def call_function(function, /, *args, **kwargs):
    """Return the result of a function of NumPy, with NDArrays for NumPy's arrays."""
    return call(function, args, kwargs)
