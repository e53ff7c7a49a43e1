"""Data types of the standard: their names, limits and promotion."""

import builtins
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ndx._core import NDArray
from ndx._typing import Array, DeviceLike, DType, DTypeLike, Kind, Scalar

__all__ = [
    "astype",
    "bool",
    "can_cast",
    "complex64",
    "complex128",
    "finfo",
    "float32",
    "float64",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "result_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

_bool: TypeAlias = builtins.bool

bool: np.dtype[np.bool]
complex64: np.dtype[np.complex64]
complex128: np.dtype[np.complex128]
float32: np.dtype[np.float32]
float64: np.dtype[np.float64]
int8: np.dtype[np.int8]
int16: np.dtype[np.int16]
int32: np.dtype[np.int32]
int64: np.dtype[np.int64]
uint8: np.dtype[np.uint8]
uint16: np.dtype[np.uint16]
uint32: np.dtype[np.uint32]
uint64: np.dtype[np.uint64]

@dataclass(frozen=True)
class FloatInfo:
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

@dataclass(frozen=True)
class IntegerInfo:
    bits: int
    max: int
    min: int
    dtype: DType

def astype(
    x: Array, dtype: DTypeLike, /, *, copy: _bool = True, device: DeviceLike = None
) -> NDArray: ...
def can_cast(from_: Array | DTypeLike, to: DTypeLike, /) -> _bool: ...
def finfo(type: Array | DTypeLike, /) -> FloatInfo: ...
def iinfo(type: Array | DTypeLike, /) -> IntegerInfo: ...
def isdtype(
    dtype: DTypeLike, kind: DTypeLike | Kind | tuple[DTypeLike | Kind, ...]
) -> _bool: ...
def result_type(*arrays_and_dtypes: Array | DTypeLike | Scalar) -> DType: ...
