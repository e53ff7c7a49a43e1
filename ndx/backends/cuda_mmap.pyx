"""Memory in files that a GPU reads and writes by itself: the last resort.

Some systems let GPUs address all memory of a process, that of mapped files too. Each
range is a file as of the backend ``mmap``, whose pages the system keeps in memory
while they are used.
"""

cimport cython

import os

from ndx.backends.cuda cimport CudaBackend, CudaSource
from ndx.backends.mmap cimport file_source

from ndx._lib.errors import DeviceError
from ndx.backends._pool.options import OptionsSignature, options_class
from ndx.backends.cuda import GpuOptions

__all__ = ["CudaFileSource", "CudaMmapBackend"]

cdef enum:
    PAGEABLE_ACCESS = 88         # cudaDevAttrPageableMemoryAccess


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class CudaFileSource(CudaSource):
    """Files without names in a directory, as a GPU's memory.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    directory : str or os.PathLike, optional
        A folder that exists. Default: as for `ndx.backends.MmapBackend`.
    """

    def __cinit__(self, *args: Any, directory: TextPath | None = None,
                  **options: Any) -> None:
        if not self.runtime.deviceGetAttribute(PAGEABLE_ACCESS, self.index):
            raise DeviceError(
                f"files can't be memory of 'cuda:{self.index}' on this system, which "
                "has no access to memory that CUDA did not give "
                "(cudaDevAttrPageableMemoryAccess is 0). Linux has that from 6.1.24 on "
                "with NVIDIA's open kernel modules from 535 on, and Grace Hopper "
                "always. Elsewhere spill='host' and fallback='host' give page-locked "
                "memory; or keep arrays in files until they are needed: with "
                "ndx.use('mmap'): kept = x.to_device('cpu')")
        self.files = file_source(directory)
        self.place = self.files.place
        self.resource = self.files.resource

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        # No GPU can be told that the disk is full.
        return self.files.reserve(nbytes, True, ptr, cookie)

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        self.files.release(ptr, nbytes, cookie)

    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil:
        return self.files.info(idle, total)

    @property
    def directory(self) -> str:
        """The folder that the files are in."""
        return self.files.directory


@options_class
class CudaMmapOptions(GpuOptions):
    """The options of a pool of files that a GPU addresses."""

    directory: str | os.PathLike[str] | None = None


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class CudaMmapBackend(CudaBackend):
    """Files as a GPU's memory, where it can address them: there is most of it.

    Its arrays are the GPU's, which reads and writes them across the bus, and the system
    from and to the disk. It serves what neither the GPU's own memory nor page-locked
    memory of the host has room for: ``fallback="mmap"`` of either, and workspaces with
    ``spill="mmap"``.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    directory : str or os.PathLike, optional
        Where the files are: a folder on a fast disk with much room. Default: that of
        ``TMPDIR``, or ``/var/tmp``.
    limit : int or str, optional
        Upper bound on the bytes of disk that are held, such as ``"200GiB"`` or, of the
        whole file system, ``"60%"``; None for no bound.
    pool, initial, idle_release, reserve_fraction, fallback, cutoff : optional
        As for `ndx.backends.CudaBackend`.

    Raises
    ------
    DeviceError
        If CuPy, the driver or the GPU is missing; or if the GPU can't address memory
        that CUDA did not give, as on most systems.
    FileNotFoundError, NotADirectoryError, PermissionError
        If `directory` is no folder, or files can't be made in it.

    Notes
    -----
    Except on Grace Hopper, GPUs have no atomic operations on memory of files: what
    uses them (of CuPy's own functions those that scatter, such as
    ``cupyx.scatter_add`` and ``cupy.bincount``) must not write there. See "Unified
    Memory" in NVIDIA's CUDA C++ Programming Guide.
    """

    _options = CudaMmapOptions
    _source_type = CudaFileSource
    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[CudaMmapKeywords]) -> None:
        self.name = f"cudammap:{self.options.device}"

    @property
    def directory(self) -> str:
        """The folder that the files are in."""
        return (<CudaFileSource>self.source).directory
