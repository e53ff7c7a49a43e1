"""Backends by their names, for modules below the registry of names."""

__all__ = ["as_backend", "set_lookup"]

_lookup = None


def set_lookup(get):
    """Say which function returns the backend of a name: that of the registry."""
    global _lookup
    _lookup = get


def as_backend(backend):
    """Return the backend of a name, or a backend as it is; as `ndx.backends.get`."""
    return _lookup(backend)
