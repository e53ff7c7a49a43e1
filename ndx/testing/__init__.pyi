"""Helpers for tests of code that uses ndx."""

from typing import Any

__all__ = ["assert_allclose", "assert_equal"]

def assert_equal(
    actual: Any, expected: Any, *, check_dtype: bool = True, err_msg: str = ""
) -> None: ...
def assert_allclose(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    check_dtype: bool = True,
    err_msg: str = "",
) -> None: ...
