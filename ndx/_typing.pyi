"""Types that the other stubs use; for type checkers only, there is no such module."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
)

import numpy as np
import numpy.typing as npt

from ndx._core import NDArray
from ndx._lib.device import Device
from ndx.backends.base import Backend

_P = ParamSpec("_P")
_R = TypeVar("_R")

Scalar: TypeAlias = bool | int | float | complex
Array: TypeAlias = NDArray | npt.NDArray[Any] | np.generic
Operand: TypeAlias = Array | Scalar
DType: TypeAlias = np.dtype[Any]
DTypeLike: TypeAlias = DType | type[Any] | str
DeviceLike: TypeAlias = Device | str | None
Shape: TypeAlias = int | Sequence[int]
Axes: TypeAlias = int | Sequence[int]
Norm: TypeAlias = Literal["backward", "ortho", "forward"]
Kind: TypeAlias = Literal[
    "bool",
    "signed integer",
    "unsigned integer",
    "integral",
    "real floating",
    "complex floating",
    "numeric",
]

class UniqueAllResult(NamedTuple):
    values: NDArray
    indices: NDArray
    inverse_indices: NDArray
    counts: NDArray

class UniqueCountsResult(NamedTuple):
    values: NDArray
    counts: NDArray

class UniqueInverseResult(NamedTuple):
    values: NDArray
    inverse_indices: NDArray

class EigResult(NamedTuple):
    eigenvalues: NDArray
    eigenvectors: NDArray

class EighResult(NamedTuple):
    eigenvalues: NDArray
    eigenvectors: NDArray

class QRResult(NamedTuple):
    Q: NDArray
    R: NDArray

class SVDResult(NamedTuple):
    U: NDArray
    S: NDArray
    Vh: NDArray

class SlogdetResult(NamedTuple):
    sign: NDArray
    logabsdet: NDArray

class Graph(Generic[_P, _R]):
    __wrapped__: Callable[_P, _R]
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def stats(self) -> dict[str, int]: ...
    def reset(self) -> None: ...

class PoolKeywords(TypedDict, total=False):
    """What `ndx.backends._pool.options.PoolOptions` has, as keywords."""

    limit: int | str | None
    pool: Literal["split", "round", "naive", "unpooled", "arena"]
    initial: int | str | None
    idle_release: float | None
    reserve_fraction: float
    fallback: str | Backend | None
    cutoff: int | None

class MmapKeywords(PoolKeywords, total=False):
    directory: str | PathLike[str] | None
    keep_idle: int | str

class GpuKeywords(PoolKeywords, total=False):
    device: int

class CudaKeywords(GpuKeywords, total=False):
    source: Literal["pool", "async"]

class CudaMmapKeywords(GpuKeywords, total=False):
    directory: str | PathLike[str] | None

class SimulatedKeywords(PoolKeywords, total=False):
    capacity: int | str
    page: int | str
    latency: float
