"""The dtypes by kind: those of the standard, and float16."""

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
