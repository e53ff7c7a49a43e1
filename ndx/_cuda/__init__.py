"""The engine of GPUs: CuPy computes, on ndx's memory."""


def load():
    """Return the engine, an `ndx._cuda.engine.CudaEngine`."""
    from ndx._cuda.engine import CudaEngine

    return CudaEngine()
