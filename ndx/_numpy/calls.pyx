"""Calls of NumPy's functions with NDArrays, for modules in Python."""

from ndx._methods cimport numpy_functions

__all__ = ["call_function"]


def call_function(function, /, *args, **kwargs):
    """Return the result of a function of NumPy, with NDArrays for NumPy's arrays."""
    return numpy_functions.call_function(function, args, kwargs)
