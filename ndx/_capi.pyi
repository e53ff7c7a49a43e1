"""The C interface for other packages."""

__all__ = ["get_include"]

def get_include() -> str: ...
