"""Memory that GPUs address, other than what ``cudaMalloc`` gives of their own.

Managed memory, whose pages the driver moves between GPUs and the host; and memory of
another GPU.
"""

cimport cython

from ndx.backends.cuda cimport CudaBackend, CudaSource, obtain_range

from ndx._lib.errors import DeviceError
from ndx.backends._cupy import check_device, count_devices
from ndx.backends._gpus import KIND
from ndx.backends._pool.options import OptionsSignature, options_class
from ndx.backends.cuda import GpuOptions

__all__ = ["CudaManagedSource", "CudaPeerBackend", "CudaPeerSource"]

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    MANAGED_MEMORY = 83          # cudaDevAttrManagedMemory
    MANAGED_AT_ONCE = 89         # cudaDevAttrConcurrentManagedAccess
    FOR_ALL = 1                  # cudaMemAttachGlobal: for every stream and GPU
    ENABLED_ALREADY = 704        # cudaErrorPeerAccessAlreadyEnabled


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
        self.shareable = False
        # Pages may be anywhere: no GPU's limit counts them, nor bounds their number.
        self.gpu = 0
        self.most = PY_SSIZE_T_MAX

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        with gil:
            return obtain_range(self, "mallocManaged", (nbytes, FOR_ALL), ptr)


# ---- Memory of another GPU -----------------------------------------------------------


@cython.no_gc_clear
cdef class CudaPeerSource(CudaSource):
    """Memory of another GPU, which a GPU reads and writes by itself.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU that uses it, and by whose streams its use is ordered.
    peer : int, optional
        The number of the other GPU. Default: the first that `device` reaches.
    """

    def __cinit__(self, *args: Any, peer: int | None = None, **options: Any) -> None:
        reached = [other for other in range(count_devices()) if other != self.index
                   and self.runtime.deviceCanAccessPeer(self.index, other)]
        if peer is not None:
            if type(peer) is not int or peer < 0:
                raise ValueError(f"peer={peer!r} is not the number of a GPU")
            check_device(peer)
        if peer == self.index:
            raise ValueError(
                f"peer={peer} is the GPU itself, whose memory is 'cuda:{peer}'; give "
                "another one")
        if peer not in reached if peer is not None else not reached:
            what = "any other GPU" if peer is None else repr(f"cuda:{peer}")
            others = ", ".join([f"'cuda:{other}'" for other in reached]) or "none"
            raise DeviceError(
                f"'cuda:{self.index}' can't address memory of {what} "
                f"(cudaDeviceCanAccessPeer is 0); those that it can: {others}. "
                "fallback='host' gives page-locked memory of the host instead")
        self.home = reached[0] if peer is None else peer
        self.gpu = KIND.first + self.home
        self.resource = f"cuda:{self.home}"
        with self.cuda.Device(self.index):
            try:
                self.runtime.deviceEnablePeerAccess(self.home)
            except self.runtime.CUDARuntimeError as error:
                # By another backend, or by CuPy.
                if error.status != ENABLED_ALREADY:
                    raise


@options_class
class CudaPeerOptions(GpuOptions):
    """The options of a pool of another GPU's memory."""

    peer: int | None = None


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class CudaPeerBackend(CudaBackend):
    """Memory of another GPU as a GPU's: slower than its own, faster than the host's.

    Its arrays are those of `device`, which reads and writes them across NVLink or the
    bus, and by whose streams they are ordered. It serves what the GPU's own memory has
    no room for: ``ndx.use("cuda:0", fallback="cuda:1")``.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU that computes on the arrays.
    peer : int, optional
        The number of the GPU in whose memory they lie. Default: the first other one
        that `device` can address.
    limit : int or str, optional
        Upper bound on the bytes held, such as ``"8GiB"`` or ``"25%"`` of the memory of
        `peer`; None for no bound. A limit of `ndx.memory.set_limit` on `peer` counts
        them, too.
    pool, initial, idle_release, reserve_fraction, fallback, cutoff : optional
        As for `ndx.backends.CudaBackend`.

    Raises
    ------
    DeviceError
        If CuPy, the driver or one of the GPUs is missing; or if the one can't address
        the other's memory.
    ValueError
        If both are the same.

    Notes
    -----
    Reference: NVIDIA, CUDA Runtime API, "Peer Device Memory Access".
    """

    _options = CudaPeerOptions
    _source_type = CudaPeerSource
    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[CudaPeerKeywords]) -> None:
        self.name = f"cudapeer:{self.options.device}"

    @property
    def peer(self) -> int:
        """The number of the GPU in whose memory the arrays lie."""
        return self.source.home
