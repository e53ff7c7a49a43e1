"""NumPy's face: `ndx.numpy`, made of NumPy's own namespace."""
