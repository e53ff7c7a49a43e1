"""Real and imaginary parts: elementwise functions of the standard that are views."""

from ndx._core import NDArray
from ndx._typing import Array

__all__ = ["imag", "real"]

def imag(x: Array, /) -> NDArray: ...
def real(x: Array, /) -> NDArray: ...
