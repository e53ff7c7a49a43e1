"""Devices: the CPU, and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ndx._typing import DeviceLike

__all__ = ["CPU", "Device", "as_device", "device_of", "find_device", "number_of"]


class Device(str):
    """A device, such as ``Device("cpu")``: a string with its own ``repr``.

    It is hashable and equal to its name, so that ``x.device == "cpu"`` holds.
    """

    __slots__ = ()

    def __repr__(self):
        return f"Device({str(self)!r})"


CPU = Device("cpu")

# "cuda:0" is device number 1. Blocks of memory carry the number.
_GPU = "cuda"
_known = [CPU]


def device_of(number: int) -> Device:
    """Return the device with a number: 0 is the CPU, n is the GPU ``cuda:{n-1}``."""
    while len(_known) <= number:
        _known.append(Device(f"{_GPU}:{len(_known) - 1}"))
    return _known[number]


def number_of(device: Device | str) -> int:
    """Return the number of a device that `find_device` returned."""
    return 0 if device == CPU else int(device.rpartition(":")[2]) + 1


def find_device(device: DeviceLike) -> Device:
    """Return the device with a name, or for a `Device`; None is the CPU.

    Whether a GPU exists is checked lazily, at its first use.

    Raises
    ------
    ValueError
        If it is not the name of a device.
    """
    if device is None or device == CPU:
        return CPU
    if isinstance(device, str):
        kind, colon, index = device.partition(":")
        if kind == _GPU and (index or not colon) and _is_index(index or "0"):
            return device_of(int(index or "0") + 1)
    msg = (
        f"there is no device {device!r}; available: {str(CPU)!r} and, where there is "
        f"a GPU, '{_GPU}:0' and so on"
    )
    raise ValueError(msg)


def _is_index(text):
    return text.isascii() and text.isdecimal() and len(text) <= 3


def as_device(device: DeviceLike) -> Device:
    """Return the CPU, the caller's only device; ValueError for any other."""
    if find_device(device) != CPU:
        msg = f"this is computed on the CPU; device={device!r} can't be had here"
        raise ValueError(msg)
    return CPU
