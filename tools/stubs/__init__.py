"""Stubs of what no type checker reads: compiled modules, and names made at import."""
