"""Helpers for tests of code that uses ndx, and of backends.

The contract of backends is in `ndx.testing.backends`, which needs pytest.
"""

from ndx.testing._assertions import assert_allclose, assert_equal

__all__ = ["assert_allclose", "assert_equal"]


def __dir__():
    return __all__
