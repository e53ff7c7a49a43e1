"""The dtypes by kind: those of the standard, and float16."""

import numpy as np

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
REALS = INTEGERS + FLOATS
NUMERIC = REALS + COMPLEX
ALL = BOOL + NUMERIC
STANDARD = tuple(name for name in ALL if name != "float16")


def cast(x, dtype):
    """Return floats in a dtype; below 0 they wrap around in unsigned ones.

    What a cast gives there is undefined in C, and NumPy warns on some CPUs.
    """
    return (x.astype(np.int64) if np.dtype(dtype).kind == "u" else x).astype(dtype)
