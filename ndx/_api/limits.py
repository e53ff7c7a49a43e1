"""What `ndx.finfo` and `ndx.iinfo` return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ndx._typing import DType

__all__ = ["FloatInfo", "IntegerInfo"]


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a floating-point dtype; for a complex dtype, those of its parts.

    Attributes
    ----------
    bits : int
        Bits of a number.
    eps : float
        Distance from 1.0 to the next larger number.
    max, min : float
        Largest and smallest finite numbers.
    smallest_normal : float
        Smallest positive number of full precision.
    dtype : dtype
        The real dtype.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    """Limits of an integer dtype.

    Attributes
    ----------
    bits : int
        Bits of a number.
    max, min : int
        Largest and smallest numbers.
    dtype : dtype
    """

    bits: int
    max: int
    min: int
    dtype: DType
