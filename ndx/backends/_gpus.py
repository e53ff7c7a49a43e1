"""NVIDIA's GPUs among the kinds of devices. It loads nothing: engine and backends do."""

from ndx._lib.device import kind_named

__all__ = ["KIND"]

KIND = kind_named("cuda")
KIND.of_ndx = True
KIND.factory = "ndx._cuda.engine:CudaEngine"
KIND.backends = ("cuda", "cudahost", "cudammap")
KIND.dlpack = (2, 13)  # kDLCUDA, kDLCUDAManaged
KIND.interface = "__cuda_array_interface__"
