"""Inspection functions of the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndx._api import data_types
from ndx._array.dispatch import engine_of
from ndx._lib.device import CPU, KINDS, device_of, find_device

if TYPE_CHECKING:
    from ndx._lib.device import Device
    from ndx._typing import DeviceLike, DType, Kind

__all__ = ["__array_namespace_info__"]

_DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


class NamespaceInfo:
    """Result of `ndx.__array_namespace_info__`.

    Notes
    -----
    Array API 2025.12, inspection.
    """

    def capabilities(self) -> dict[str, bool | int | None]:
        """Return the capabilities of arrays.

        Returns
        -------
        dict
            ``"boolean indexing"``: True. ``"data-dependent shapes"``: True, for
            `unique_values`, `nonzero` and `repeat` by an array. ``"max dimensions"``:
            64, as many as NumPy's arrays have.
        """
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": 64,
        }

    def default_device(self) -> Device:
        """Return the default device of new arrays.

        Returns
        -------
        Device
        """
        return CPU

    def devices(self) -> tuple[Device, ...]:
        """Return the available devices.

        Returns
        -------
        tuple of Device
        """
        found = [CPU]
        for kind in KINDS:
            if kind.factory is not None:
                count = engine_of(kind.first).device_count()
                found += [device_of(kind.first + index) for index in range(count)]
        return tuple(found)

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, DType]:
        """Return the default data types.

        Parameters
        ----------
        device : Device or str, optional
            They are the same on all.

        Returns
        -------
        dict of str to dtype
            For ``"real floating"``, ``"complex floating"``, ``"integral"`` and
            ``"indexing"``.
        """
        find_device(device)
        return {
            "real floating": data_types.float64,
            "complex floating": data_types.complex128,
            "integral": data_types.int64,
            "indexing": data_types.int64,
        }

    def dtypes(
        self, *, device: DeviceLike = None, kind: Kind | tuple[Kind, ...] | None = None
    ) -> dict[str, DType]:
        """Return the data types of a kind.

        Parameters
        ----------
        device : Device or str, optional
            They are the same on all.
        kind : str or tuple of str, optional
            As for `ndx.isdtype`. Default: all.

        Returns
        -------
        dict of str to dtype
            By name.
        """
        find_device(device)
        found = {name: getattr(data_types, name) for name in _DTYPES}
        if kind is None:
            return found
        return {
            name: dtype
            for name, dtype in found.items()
            if data_types.isdtype(dtype, kind)
        }


def __array_namespace_info__() -> NamespaceInfo:
    """Return an object that describes the namespace.

    Returns
    -------
    NamespaceInfo
        With `capabilities`, `default_device`, `default_dtypes`, `devices`, `dtypes`.

    Notes
    -----
    Array API 2025.12, `__array_namespace_info__`.

    Examples
    --------
    >>> import ndx
    >>> ndx.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int64')
    """
    return NamespaceInfo()
