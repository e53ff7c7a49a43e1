"""The engine of GPUs: CuPy computes, on memory of ours."""


def load():
    """Return the engine, an `ndx._cuda.engine.CudaEngine`."""
    from ndx._cuda.engine import CudaEngine

    return CudaEngine()
