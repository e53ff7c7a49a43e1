"""Access to CuPy, which computes on GPUs: imported when first needed, never before.

All of ndx gets CuPy from here, so that tests can put something else in its place.
"""

import ctypes
import importlib
import os
import sys

from ndx._lib.errors import DeviceError

__all__ = [
    "check_device",
    "count_devices",
    "cublas",
    "driver",
    "errstate",
    "is_forked",
    "is_loaded",
    "is_refused_capture",
    "load",
    "namespace",
    "replaced",
]

_INSTALL = "pip install 'ndxarray[cuda13]' (for CUDA 12: 'ndxarray[cuda12]')"
_NO_DRIVER = (34, 35)  # cudaErrorStubLibrary, cudaErrorInsufficientDriver

_cupy = None
_cupyx = None  # a stand-in for the module `cupyx`; None: the module itself
_namespace = None
_cublas = None
_driver = None
_forked = False


def load():
    """Return the module ``cupy``.

    Raises
    ------
    DeviceError
        If CuPy, the driver, a GPU, CUDA's libraries or array-api-compat are missing;
        it says which, and what to do.
    """
    global _cupy
    if _forked:
        msg = (
            "this process is a fork of one that used CUDA, and can't use it: start it "
            "by 'spawn' or 'forkserver', or compute on the CPU"
        )
        raise DeviceError(msg)
    if _cupy is None:
        module = _import("cupy", "CuPy")
        _count(module)
        _check_libraries(module)
        _import("array_api_compat", "array-api-compat")
        _cupy = module
    return _cupy


def errstate(**settings):
    """Return a context in which CuPy has settings of ``cupyx.errstate``."""
    return (_cupyx or importlib.import_module("cupyx")).errstate(**settings)


def is_refused_capture(error):
    """Whether an error is CuPy's own refusal to do something while it captures.

    It has no class of its own: its text is all there is. If that changes, the user
    gets CuPy's error as it is.
    """
    refusal = isinstance(error, (RuntimeError, NotImplementedError))
    return refusal and "captur" in str(error)


def is_loaded():
    """Whether anything has used CuPy so far."""
    return _cupy is not None


def _import(name, title):
    """Import a package of the extras `cuda12` and `cuda13`, and return its module."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        reason = f"{title} is not installed"
        if not isinstance(error, ModuleNotFoundError) or error.name != name:
            reason = f"{title} can't be imported ({error})"
        msg = f"CUDA can't be used: {reason}. Install it: {_INSTALL}"
        raise DeviceError(msg) from error


def _count(module):
    """Return how many GPUs a CuPy sees; at least one."""
    runtime = module.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        if error.status in _NO_DRIVER:
            msg = (
                "CUDA can't be used: CuPy is installed, but there is no NVIDIA driver, "
                f"or one too old for it ({error}). Install a driver, or the CuPy that "
                f"goes with yours: {_INSTALL}"
            )
        else:
            msg = (
                "CUDA can't be used: CuPy is installed, but finds no GPU that it can "
                f"use ({error}). See nvidia-smi, and CUDA_VISIBLE_DEVICES"
            )
        raise DeviceError(msg) from error
    if count == 0:
        msg = (
            "CUDA can't be used: CuPy and a driver are installed, but there is no GPU. "
            "See nvidia-smi, and CUDA_VISIBLE_DEVICES"
        )
        raise DeviceError(msg)
    return count


def _check_libraries(module):
    """Raise DeviceError if there is nothing to compile kernels by.

    CuPy looks for CUDA's libraries when it first needs them, in the midst of a
    computation; its wheels have none.
    """
    try:
        module.cuda.nvrtc.getVersion()
    except Exception as error:
        reason = " ".join(str(error).split())
        msg = (
            "CUDA can't be used: CuPy, a driver and a GPU are there, but not CUDA's "
            f"libraries, by which CuPy compiles its kernels ({reason}). Install them "
            f"beside it: {_INSTALL}; or a CUDA Toolkit, and say where by CUDA_PATH"
        )
        raise DeviceError(msg) from error


def check_device(index):
    """Return CuPy; raise DeviceError if there is no GPU of this number."""
    module = load()
    count = _count(module)
    if index >= count:
        available = ", ".join(repr(f"cuda:{number}") for number in range(count))
        msg = f"there is no GPU 'cuda:{index}'; available: {available}"
        raise DeviceError(msg)
    return module


def count_devices():
    """Return how many GPUs can be used: 0 where anything is missing."""
    try:
        return _count(load())
    except DeviceError:
        return 0


def namespace():
    """Return CuPy's functions as the standard has them (``array_api_compat.cupy``)."""
    global _namespace
    if _namespace is None:
        load()
        _namespace = importlib.import_module("array_api_compat.cupy")
    return _namespace


def cublas():
    """Return cuBLAS, by ctypes: the library that CuPy uses.

    Raises
    ------
    DeviceError
        If it can't be found or opened.
    """
    global _cublas
    if _cublas is None:
        _cublas = _opened(
            _path_of_cublas,
            "cuBLAS, which computes matrix products in captured graphs, can't be "
            f"loaded ({{}}). It comes with {_INSTALL}",
        )
    return _cublas


def _path_of_cublas():
    # A dependency of CuPy that finds CUDA's libraries, loaded ones first.
    pathfinder = importlib.import_module("cuda.pathfinder")
    return pathfinder.load_nvidia_dynamic_lib("cublas").abs_path


def _opened(path_of, words):
    """Return a library of CUDA's, by ctypes; `words` tell what its error means."""
    load()
    try:
        return ctypes.CDLL(path_of())
    except (ImportError, RuntimeError, OSError) as error:
        raise DeviceError(words.format(error)) from error


def driver():
    """Return CUDA's driver, by ctypes: it has functions that CuPy does not.

    Raises
    ------
    DeviceError
        If it can't be found or opened.
    """
    global _driver
    if _driver is None:
        name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        _driver = _opened(
            lambda: name,
            f"CUDA's driver can't be loaded as {name} ({{}}): ndx calls it for "
            "source='virtual'; see where the system has it, and LD_LIBRARY_PATH",
        )
    return _driver


class replaced:
    """Let other modules stand in for CuPy, its namespace, and cuBLAS; for tests.

    Parameters
    ----------
    module : module
        With what ndx uses of ``cupy``.
    functions : module
        With the standard's functions on that module's arrays.
    extension : module, optional
        With what ndx uses of ``cupyx``.
    library : object, optional
        With what ndx calls of cuBLAS.
    driver : object, optional
        With what ndx calls of CUDA's driver.
    """

    def __init__(self, module, functions, extension=None, library=None, driver=None):
        self.others = module, functions, extension, library, driver

    def __enter__(self):
        global _cupy, _namespace, _cupyx, _cublas, _driver
        self.before = _cupy, _namespace, _cupyx, _cublas, _driver
        _cupy, _namespace, _cupyx, _cublas, _driver = self.others

    def __exit__(self, *exc_info):
        global _cupy, _namespace, _cupyx, _cublas, _driver
        _cupy, _namespace, _cupyx, _cublas, _driver = self.before


def is_forked():
    """Whether this is a fork of a process that used CUDA, which must not be called."""
    return _forked


def _after_fork():
    global _forked
    # A child that never touches CUDA is fine; so is one whose parent never did.
    _forked = _forked or _cupy is not None


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork)
