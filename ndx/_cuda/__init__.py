"""The engine of GPUs: CuPy computes, on ndx's memory."""
