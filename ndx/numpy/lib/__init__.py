"""NumPy's `numpy.lib`; its parts that make or take arrays are ours."""

import importlib as _importlib

import numpy as _numpy

from ndx._numpy import namespace as _namespace
from ndx.numpy.lib import stride_tricks

__all__ = ["stride_tricks", *sorted({*_numpy.lib.__all__} - {"stride_tricks"})]


def __dir__():
    return __all__


def __getattr__(name):
    if name == "recfunctions":
        return _importlib.import_module("numpy.lib.recfunctions")
    if name in __all__:
        return getattr(_numpy.lib, name)
    return _namespace.missing(__name__, _numpy.lib, name)
