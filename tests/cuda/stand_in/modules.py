"""What stands in for CuPy, and for the standard's functions on its arrays."""

import contextlib
import functools
import importlib
import sys
import types

from ndx.backends import _cupy

from . import arrays, cublas, differences, driver, standin


@contextlib.contextmanager
def replaced(replacements):
    """Let names of modules stand for others, while something is imported."""

    def ours(name):
        return name.split(".")[0] == "cupy" or name.startswith("array_api_compat.cupy")

    before = {name: sys.modules.pop(name) for name in list(sys.modules) if ours(name)}
    sys.modules.update(replacements)
    try:
        yield
    finally:
        for name in list(sys.modules):
            if ours(name):
                del sys.modules[name]
        sys.modules.update(before)


@functools.cache
def stand_in():
    """Return a stand-in for CuPy, and array_api_compat's functions on its arrays."""
    module = arrays.module()
    device = types.ModuleType("cupy.cuda.device")
    device.Device = standin.Device
    with replaced({
        "cupy": module, "cupy.cuda": module.cuda, "cupy.linalg": module.linalg,
        "cupy.fft": module.fft, "cupy.cuda.device": device,
    }):  # fmt: skip
        functions = importlib.import_module("array_api_compat.cupy")
    # Where the real one is recognised by its type.
    arrays.ndarray.__array_namespace__ = lambda self, **kwargs: functions
    return module, functions


def in_place():
    """Return a context in which ndx finds the stand-in for CuPy."""
    return _cupy.replaced(
        *stand_in(), differences.cupyx, cublas.LIBRARY, driver.LIBRARY
    )
