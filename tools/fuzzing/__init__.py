"""Random programs that run twice: on ndx, and on a model over NumPy."""
