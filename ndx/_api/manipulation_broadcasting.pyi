"""Broadcasting arrays and shapes against one another."""

from collections.abc import Sequence

from ndx._core import NDArray
from ndx._typing import Array, Shape

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to"]

def broadcast_arrays(*arrays: Array) -> tuple[NDArray, ...]: ...
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]: ...
def broadcast_to(x: Array, /, shape: Shape) -> NDArray: ...
