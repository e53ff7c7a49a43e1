"""Random numbers: NumPy's generators, filling memory that ndx controls."""

from collections.abc import Sequence

import numpy as np

from ndx._core import NDArray
from ndx._typing import Array, DTypeLike, Shape

__all__ = ["Generator", "default_rng"]

class Generator:
    def __init__(self, generator: np.random.Generator) -> None: ...
    def spawn(self, n_children: int) -> list[Generator]: ...
    def random(
        self, size: Shape | None = None, *, dtype: DTypeLike = ...
    ) -> NDArray: ...
    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        size: Shape | None = None,
        *,
        dtype: DTypeLike = ...,
    ) -> NDArray: ...
    def normal(
        self,
        loc: float = 0.0,
        scale: float = 1.0,
        size: Shape | None = None,
        *,
        dtype: DTypeLike = ...,
    ) -> NDArray: ...
    def standard_normal(
        self, size: Shape | None = None, *, dtype: DTypeLike = ...
    ) -> NDArray: ...
    def exponential(
        self, scale: float = 1.0, size: Shape | None = None, *, dtype: DTypeLike = ...
    ) -> NDArray: ...
    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Shape | None = None,
        *,
        dtype: DTypeLike = ...,
        endpoint: bool = False,
    ) -> NDArray: ...
    def permutation(self, x: Array | int, *, axis: int = 0) -> NDArray: ...
    def shuffle(self, x: NDArray, *, axis: int = 0) -> None: ...
    def choice(
        self,
        a: Array | int,
        size: Shape | None = None,
        *,
        replace: bool = True,
        p: Array | Sequence[float] | None = None,
        axis: int = 0,
    ) -> NDArray: ...

def default_rng(
    seed: int | Sequence[int] | np.random.Generator | None = None,
) -> Generator: ...
