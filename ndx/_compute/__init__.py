"""Computing on the CPU: loops, reductions, products, NumPy's functions."""
