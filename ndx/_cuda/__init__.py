"""The engine of GPUs: CuPy computes, on memory of ours."""


def load():
    """Return the engine: `ndx._cuda.engine.compute`."""
    from ndx._cuda.engine import compute

    return compute
