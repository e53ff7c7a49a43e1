"""The kinds of memory that arrays can live in, by name.

`Backend` and `PythonBackend` are the base classes for those of third parties;
`register` or an entry point of the group ``ndx.backends`` makes one known. Classes are
loaded when they are first asked for.
"""

from importlib import import_module

from ndx.backends._registry import available, get, register, unregister

# The module of each class, and of what makes one.
_CLASSES = {
    "Backend": "base",
    "Buffer": "buffer",
    "CSource": "c_functions",
    "CudaAsyncSource": "cuda",
    "CudaBackend": "cuda",
    "CudaHostBackend": "pinned",
    "CudaManagedSource": "cuda_memory",
    "CudaMmapBackend": "cuda",
    "CudaPeerBackend": "cuda_memory",
    "CudaVirtualSource": "cuda_virtual",
    "HostBackend": "host",
    "MmapBackend": "mmap",
    "PinnedBackend": "pinned",
    "PooledBackend": "pooled",
    "PythonBackend": "python",
    "PythonSource": "python",
    "SimulatedBackend": "simulated",
    "Source": "source",
    "from_c": "_from_c",
}
__all__ = [*_CLASSES, "available", "get", "register", "unregister"]


def __getattr__(name):
    if name not in _CLASSES:
        msg = f"module 'ndx.backends' has no attribute {name!r}"
        raise AttributeError(msg)
    found = getattr(import_module(f"ndx.backends.{_CLASSES[name]}"), name)
    globals()[name] = found
    return found


def __dir__():
    return sorted(__all__)
