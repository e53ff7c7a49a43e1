"""Bools are no lengths of axes, as in NumPy: Python would take them for 0 and 1."""

import numpy
import pytest
from helpers.numpy_versions import since

import ndx
import ndx.numpy as np

MAKE = {
    "zeros": lambda f, shape: f.zeros(shape),
    "ones": lambda f, shape: f.ones(shape),
    "empty": lambda f, shape: f.empty(shape),
    "full": lambda f, shape: f.full(shape, 1.0),
    "reshape": lambda f, shape: f.reshape(f.ones(1), shape),
    "method reshape": lambda f, shape: f.ones(1).reshape(shape),
    "broadcast_to": lambda f, shape: f.broadcast_to(f.ones(1), shape),
}


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("shape", [True, (True,), (1, True), [False], numpy.True_])
def test_bools_are_no_lengths(name, shape):
    refusal = TypeError
    if not since("bools of NumPy are no integers"):
        refusal = (TypeError, DeprecationWarning)
    with pytest.raises(refusal):
        MAKE[name](numpy, shape)
    for namespace in (np, ndx):
        if namespace is np or hasattr(namespace, name):
            with pytest.raises(refusal):
                MAKE[name](namespace, shape)
