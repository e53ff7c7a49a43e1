"""The 13 dtypes of the standard, by kind."""

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REALS = INTEGERS + FLOATS
NUMERIC = REALS + COMPLEX
ALL = BOOL + NUMERIC
