"""`cupy.fuse`: what its tracer lets a function do with its arguments.

CuPy calls the function once, with proxies, and compiles what ufuncs they meet. Here
they are called at each launch, on NumPy's arrays: one kernel, without memory of its
own.
"""

import threading

import numpy as np

_state = threading.local()


def is_fusing():
    """Whether a fused function is being called."""
    return getattr(_state, "fusing", False)


def run(function, args):
    """Call a fused function with proxies; it returns nothing."""
    _state.fusing = True
    try:
        assert function(*(Proxy(x) for x in args)) is None
    finally:
        _state.fusing = False


def traced(function, args, kwargs):
    """Call a ufunc in a fused function."""
    assert not kwargs, "the tracer takes few options"
    for x in args:
        assert isinstance(x, (Proxy, int, float, bool, complex, np.generic)), type(x)
    found = function(*(x._value if isinstance(x, Proxy) else x for x in args))
    return Proxy(found)


class Proxy:
    """An array or a scalar in a fused function."""

    def __init__(self, value):
        self._value = value
        self.dtype, self.ndim = value.dtype, value.ndim

    def copy(self):
        return Proxy(self._value.copy())

    def astype(self, dtype):
        assert self.dtype.kind != "c" or np.dtype(dtype).kind == "c", "it won't compile"
        return Proxy(self._value.astype(dtype))

    def __setitem__(self, key, value):
        assert key is Ellipsis
        assert value.dtype == self.dtype
        assert value.ndim in (0, self.ndim), "a kernel has one shape"
        self._value[...] = value._value
