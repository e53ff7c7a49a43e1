"""Toys: devices of a kind of their own, as a package outside of ndx would add them.

Their memory is the host's, which the CPU must not read all the same; NumPy computes.
Only public names are used.
"""

from operator import attrgetter

import numpy as np

import ndx
from ndx.engines import common_device, export


class ToyBackend(ndx.backends.PythonBackend):
    """Memory of a toy."""

    device_kind = "toy"

    def __init__(self, *, device=0, limit=None):
        pass

    def acquire(self, nbytes):
        return bytearray(nbytes)


class View:
    """What NumPy makes an array of, over the memory of an array on a toy."""

    def __init__(self, x):
        address, self.held = export(x)
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "typestr": x.dtype.str,
            "shape": x.shape,
            "strides": x.strides,
        }


def view(x):
    """Return an argument with NumPy's arrays in place of those on toys."""
    if isinstance(x, ndx.NDArray) and x.device != "cpu":
        return np.asarray(View(x))
    if isinstance(x, (tuple, list)):
        return type(x)(view(item) for item in x)
    return x


class ToyEngine(ndx.engines.Engine):
    """Computes by NumPy's functions of the same names."""

    made = 0

    def __init__(self):
        type(self).made += 1

    def compute(self, name, /, *args, **kwargs):
        try:
            function = attrgetter(name)(np)
        except AttributeError:
            function = None
        if function is None or kwargs.pop("descending", False):
            msg = f"toys don't compute {name}; compute on the CPU: x.to_device('cpu')"
            raise NotImplementedError(msg)
        named = {key: view(value) for key, value in kwargs.items()}
        found = function(*view(args), **named)
        return self.wrapped(found, common_device(args, kwargs))

    def wrapped(self, found, device):
        if isinstance(found, tuple):
            items = [self.wrapped(item, device) for item in found]
            return type(found)(*items) if hasattr(found, "_fields") else tuple(items)
        return self.upload(found, device)

    def elementwise(self, name, operands, dtype, out=None):
        found = np.asarray(getattr(np, name)(*view(operands)), dtype)
        if out is None:
            return self.upload(found, common_device(operands))
        view(out)[...] = found
        return out

    def get_item(self, x, key):
        return self.upload(view(x)[view(key)], x.device)

    def set_item(self, x, key, value):
        view(x)[view(key)] = view(value)

    def fill(self, x, value):
        view(x)[...] = value

    def copy_into(self, out, x):
        view(out)[...] = view(x)

    def upload(self, x, device, *, detached=False):
        x = np.asarray(x)
        made = ndx.empty(x.shape, dtype=x.dtype, device=device)
        view(made)[...] = x
        return made.detach() if detached else made

    def to_device(self, x, device, *, stream=None):
        if stream is not None:
            raise ValueError(f"toys have no streams; got stream={stream!r}")
        if device != "cpu":
            return self.upload(view(x), device)
        made = ndx.empty(x.shape, dtype=x.dtype, device="cpu")
        np.asarray(made)[...] = view(x)
        return made

    def device_count(self):
        return 2
