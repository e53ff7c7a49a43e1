"""The commands of ``python -m ndx``."""
