"""Types that the other stubs use; for type checkers only, there is no such module."""

import builtins as builtins
import threading as threading
from collections.abc import Callable as Callable
from collections.abc import Iterator as Iterator
from collections.abc import Sequence as Sequence
from contextlib import AbstractContextManager as AbstractContextManager
from os import PathLike
from traceback import StackSummary as StackSummary
from types import EllipsisType
from types import ModuleType as ModuleType
from types import TracebackType as TracebackType
from typing import Any as Any
from typing import BinaryIO as BinaryIO
from typing import (
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)
from typing import Literal as Literal
from typing import Self as Self
from typing import TextIO as TextIO
from typing import Unpack as Unpack

import numpy as np
import numpy.typing as npt

from ndx._api.limits import FloatInfo as FloatInfo
from ndx._api.limits import IntegerInfo as IntegerInfo
from ndx._core import NDArray as NDArray
from ndx._lib.device import Device as Device
from ndx._workspaces.config import WorkspaceConfig as WorkspaceConfig
from ndx._workspaces.workspace import Workspace as Workspace
from ndx.backends._pool.options import PoolOptions as PoolOptions
from ndx.backends.base import Backend as Backend

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

KeyItem: TypeAlias = SupportsIndex | slice | EllipsisType | Array | list[Any] | None
Key: TypeAlias = KeyItem | tuple[KeyItem, ...]
Size: TypeAlias = int | str
TextPath: TypeAlias = str | PathLike[str]
FilePath: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]
Scalar: TypeAlias = bool | int | float | complex
Array: TypeAlias = NDArray | npt.NDArray[Any] | np.generic
Operand: TypeAlias = Array | Scalar
DType: TypeAlias = np.dtype[Any]
AnyDType: TypeAlias = DType | type[Any] | str
DTypeLike: TypeAlias = AnyDType | None
DeviceLike: TypeAlias = Device | str | None
Shape: TypeAlias = int | Sequence[int]
Axes: TypeAlias = int | Sequence[int]
Norm: TypeAlias = Literal["backward", "ortho", "forward"]
BackendLike: TypeAlias = str | Backend
OptPair: TypeAlias = tuple[int, int] | None
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
SortKind: TypeAlias = Literal["quicksort", "mergesort", "heapsort", "stable"]
PartitionKind: TypeAlias = Literal["introselect"]
IndexMode: TypeAlias = Literal["raise", "wrap", "clip"]
NPArray: TypeAlias = npt.NDArray[Any]
AnyArray: TypeAlias = NDArray | NPArray
Missing: TypeAlias = Literal["keep", "raise", "detach"]
Learn: TypeAlias = Literal["first", "over-time", "none", "liveness"]
Spill: TypeAlias = Literal["external", "grow", "fail", "mmap", "host"]
Reset: TypeAlias = Literal["scope", "ring"]
Escape: TypeAlias = Literal["raise", "detach"]
Mirror: TypeAlias = Literal["none", "host"]
DebugMode: TypeAlias = Literal["off", "spill", "bypass"]
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
Kind: TypeAlias = Literal[
    "bool",
    "signed integer",
    "unsigned integer",
    "integral",
    "real floating",
    "complex floating",
    "numeric",
]

# The default of arguments of NumPy's ufuncs.
NO_VALUE: Any

# Of `ndx.use` and the like: in their stubs, the options of each kind of backend.
BackendOptions: TypeAlias = Any

class Policies(TypedDict, total=False):
    size: Size
    min_size: Size
    max_size: Size | None
    overallocation: float | None
    learn: Learn
    cycles: int
    spill: Spill
    reset: Reset
    slots: int | None
    path: FilePath | None
    escape: Escape
    mirror: Mirror
    debug: bool

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

class Fused(Generic[P, R]):
    """What `ndx.fuse` returns; the class at run time can't be generic."""

    __wrapped__: Callable[P, R]
    __name__: str
    __qualname__: str
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __get__(self, instance: None, owner: type[Any], /) -> Self: ...
    @overload
    def __get__(
        self: Fused[Concatenate[Any, Q], R], instance: object, owner: type[Any], /
    ) -> Fused[Q, R]: ...
    def explain(self) -> str: ...
    def clear(self) -> None: ...

class PrefetchKeywords(TypedDict, total=False):
    """What `ndx.prefetch` takes as keywords only."""

    slots: int | None
    warmup: int
    slot_size: Size
    on_held: Literal["wait", "grow"]
    patience: float
    device: DeviceLike
    copy: bool
    progress: bool | str

class Graph(Generic[P, R]):
    __wrapped__: Callable[P, R]
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
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
    evict: str | Backend | None
    cutoff: int | None

class HostKeywords(PoolKeywords, total=False):
    hugepages: Literal["auto", "always", "never"]
    lock: bool
    numa: int | Sequence[int] | str | None

class MmapKeywords(PoolKeywords, total=False):
    directory: str | PathLike[str] | None
    keep_idle: int | str

class GpuKeywords(PoolKeywords, total=False):
    device: int

class CudaKeywords(GpuKeywords, total=False):
    source: Literal["pool", "async", "managed", "virtual"]
    prefetch: bool

class CudaMmapKeywords(GpuKeywords, total=False):
    directory: str | PathLike[str] | None

class CudaPeerKeywords(GpuKeywords, total=False):
    peer: int | None

class SimulatedKeywords(PoolKeywords, total=False):
    capacity: int | str
    page: int | str
    latency: float
