"""Memory that GPUs address, other than what ``cudaMalloc`` gives of their own.

Managed memory, whose pages the driver moves between GPUs and the host.
"""

cimport cython
from libc.stdint cimport uintptr_t

from ndx.backends.cuda cimport CudaSource, obtain_range

from ndx._lib.errors import DeviceError

__all__ = ["CudaManagedSource"]

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    MANAGED_MEMORY = 83          # cudaDevAttrManagedMemory
    MANAGED_AT_ONCE = 89         # cudaDevAttrConcurrentManagedAccess
    FOR_ALL = 1                  # cudaMemAttachGlobal: for every stream and GPU


# ---- Managed memory ------------------------------------------------------------------


@cython.no_gc_clear
cdef class CudaManagedSource(CudaSource):
    """Memory whose pages the driver moves to where they are used.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    prefetch : bool, default False
        Whether memory moves to the GPU when it is handed out.
    """

    def __cinit__(self, *args: Any, bint prefetch=False, **options: Any) -> None:
        if not self.runtime.deviceGetAttribute(MANAGED_MEMORY, self.index):
            raise DeviceError(
                f"source='managed' can't be had: 'cuda:{self.index}' has no managed "
                "memory (cudaDevAttrManagedMemory is 0); fallback='host' gives "
                "page-locked memory of the host beyond the GPU's")
        if prefetch and not self.runtime.deviceGetAttribute(
                MANAGED_AT_ONCE, self.index):
            raise DeviceError(
                f"prefetch=True can't be had: the pages of 'cuda:{self.index}' do not "
                "move one by one (cudaDevAttrConcurrentManagedAccess is 0), as on "
                "Windows and on GPUs before Pascal; source='managed' works without it")
        self.prefetches = prefetch
        # Pages may be anywhere: no GPU's limit counts them, nor bounds their number.
        self.gpu = 0
        self.most = PY_SSIZE_T_MAX

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        with gil:
            return obtain_range(self, "mallocManaged", (nbytes, FOR_ALL), ptr)
