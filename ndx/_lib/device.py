"""Devices: where arrays lie and are computed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ndx._typing import DeviceLike

__all__ = ["CPU", "Device", "as_device", "device_of", "find_device", "number_of"]


class Device(str):
    """A device, such as ``Device("cpu")``: a string with a telling ``repr``.

    It is hashable and equal to its name, so that ``x.device == "cpu"`` holds.
    """

    __slots__ = ()

    def __repr__(self):
        return f"Device({str(self)!r})"


CPU = Device("cpu")

# Of GPUs: "cuda:0" is device number 1. Blocks of memory carry the number.
_GPU = "cuda"
_known = [CPU]


def device_of(number: int) -> Device:
    """Return the device of a number: 0 is the CPU, then the GPUs in their order."""
    while len(_known) <= number:
        _known.append(Device(f"{_GPU}:{len(_known) - 1}"))
    return _known[number]


def number_of(device: Device | str) -> int:
    """Return the number of a device of `find_device`."""
    return 0 if device == CPU else int(device.rpartition(":")[2]) + 1


def find_device(device: DeviceLike) -> Device:
    """Return the device that a name or a `Device` stands for; None is the CPU.

    Whether there is such a GPU is seen when it is used.

    Raises
    ------
    ValueError
        If it is no name of a device.
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
    """Return the CPU, on which the caller computes; raise if another is meant."""
    if find_device(device) != CPU:
        msg = f"this is computed on the CPU; device={device!r} can't be had here"
        raise ValueError(msg)
    return CPU
