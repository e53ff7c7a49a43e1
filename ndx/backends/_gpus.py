"""NVIDIA's GPUs among the kinds of devices; nothing of theirs is loaded yet."""

from ndx._lib.device import kind_named

__all__ = ["BACKENDS", "KIND", "SOURCES"]

# The module and the class of each.
BACKENDS = {
    "cuda": ("cuda", "CudaBackend"),
    "cudahost": ("pinned", "CudaHostBackend"),
    "cudammap": ("cuda", "CudaMmapBackend"),
    "cudapeer": ("cuda_memory", "CudaPeerBackend"),
}

# Those of a GPU's memory, by the option ``source``.
SOURCES = {
    "pool": ("cuda", "CudaSource"),
    "async": ("cuda", "CudaAsyncSource"),
    "managed": ("cuda_memory", "CudaManagedSource"),
    "virtual": ("cuda_virtual", "CudaVirtualSource"),
}

KIND = kind_named("cuda")
KIND.of_ndx = True
KIND.factory = "ndx._cuda.engine:CudaEngine"
KIND.backends = tuple(BACKENDS)
KIND.staging = "pinned"
KIND.dlpack = (2, 13)  # kDLCUDA, kDLCUDAManaged
KIND.interface = "__cuda_array_interface__"
