"""Backends of two C functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndx.backends.c_functions import CSource
from ndx.backends.pooled import PooledBackend

if TYPE_CHECKING:
    from typing import Any

__all__ = ["from_c"]


def from_c(alloc: Any, free: Any, context: Any = None, **options: Any) -> PooledBackend:
    """Return a backend whose pool takes its memory from two C functions.

    Parameters
    ----------
    alloc, free, context
        As of `CSource`: addresses, capsules, or pointers of ctypes or cffi to ``void
        *alloc(size_t nbytes, void *context)`` and ``void free(void *ptr, size_t nbytes,
        void *context)``.
    **options
        Of `ndx.backends.PooledBackend`, such as ``limit="1GiB"`` and ``pool="naive"``.

    Returns
    -------
    PooledBackend

    Raises
    ------
    TypeError, ValueError
        If a function is no pointer, or a null pointer.

    Examples
    --------
    >>> import ctypes, ndx
    >>> alloc_type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    >>> free_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t,
    ...                              ctypes.c_void_p)
    >>> libc = ctypes.CDLL(None)
    >>> libc.malloc.restype = ctypes.c_void_p
    >>> libc.malloc.argtypes = [ctypes.c_size_t]
    >>> libc.free.argtypes = [ctypes.c_void_p]
    >>> backend = ndx.backends.from_c(
    ...     alloc_type(lambda nbytes, context: libc.malloc(nbytes)),
    ...     free_type(lambda ptr, nbytes, context: libc.free(ptr)), limit="64MiB")
    >>> with ndx.use(backend):
    ...     float(ndx.sum(ndx.ones(1000)))
    1000.0
    >>> del backend  # before the functions go
    """
    return PooledBackend(CSource(alloc, free, context), **options)
