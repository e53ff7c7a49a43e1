"""Devices: the CPU, and those of the kinds that were registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ndx._lib.locks import module_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ndx._typing import DeviceLike

__all__ = [
    "CPU",
    "KINDS",
    "MOST",
    "Device",
    "as_device",
    "device_of",
    "find_device",
    "find_kind",
    "kind_named",
    "kind_at",
    "kind_of_dlpack",
    "number_of",
]

MOST = 1000  # devices of a kind


class Device(str):
    """A device, such as ``Device("cpu")``: a string with its own ``repr``.

    It is hashable and equal to its name, so that ``x.device == "cpu"`` holds.
    """

    __slots__ = ()

    def __repr__(self):
        return f"Device({str(self)!r})"


CPU = Device("cpu")


class DeviceKind:
    """A kind of devices: what has to be known of it before it is used.

    Attributes
    ----------
    name : str
        That of its devices, before the colon.
    first : int
        The number of its first device.
    of_ndx : bool
        Whether it is one of ndx's own.
    in_use : bool
        Whether there was ever a backend of it.
    factory : callable, ndx.engines.Engine, str or None
        Makes the engine, is it, or says where that is: ``"module:name"``.
    engine : ndx.engines.Engine or None
        Made at its first use.
    staging : str
        The backend of the host's memory that copies to its devices are best made from.
    backends : tuple of str
        The backends whose names take the number of a device.
    dlpack : tuple of int
        Its types of device in DLPack; exported arrays have the first.
    interface : str or None
        The attribute by which other libraries' arrays on its devices are known.
    """

    def __init__(self, name: str, place: int) -> None:
        self.name = name
        self.first = place * MOST + 1
        self.of_ndx = self.in_use = False
        self.factory: Any = None
        self.engine: Any = None
        self.staging = "host"
        self.backends: Iterable[str] = (name,)
        self.dlpack: tuple[int, ...] = ()
        self.interface: str | None = None

    def __str__(self) -> str:
        return self.name


# A block carries the number of its device: that of "kind:n" is the kind's first + n.
KINDS: list[DeviceKind] = []
_known = {0: CPU}
_lock = module_lock()  # while a kind gets its numbers


def find_kind(device: str) -> DeviceKind | None:
    """Return the kind of a device, or with a name; None if there is none."""
    name = device.partition(":")[0]
    for kind in KINDS:
        if kind.name == name:
            return kind
    return None


def kind_named(name: str) -> DeviceKind:
    """Return the kind of devices with a name, which is a new one at the first call.

    Raises
    ------
    TypeError
        If `name` is no str.
    ValueError
        If it can't be the name of a kind.
    """
    if not isinstance(name, str):
        msg = f"a kind of devices is named by a str, not {type(name).__name__}"
        raise TypeError(msg)
    kind = find_kind(name)
    if kind is None:
        if not name.isidentifier() or name == CPU:
            msg = (
                f"{name!r} can't be a kind of devices: its name is an identifier, and "
                f"not {str(CPU)!r}"
            )
            raise ValueError(msg)
        with _lock:
            kind = find_kind(name)
            if kind is None:
                kind = DeviceKind(name, len(KINDS))
                KINDS.append(kind)
    return kind


def kind_at(number: int) -> DeviceKind:
    """Return the kind of the device with a number, which is not the CPU's."""
    return KINDS[(number - 1) // MOST]


def kind_of_dlpack(device_type: int) -> DeviceKind | None:
    """Return the kind of devices with a type of DLPack's; None if there is none."""
    for kind in KINDS:
        if device_type in kind.dlpack:
            return kind
    return None


def device_of(number: int) -> Device:
    """Return the device with a number; 0 is the CPU."""
    try:
        return _known[number]
    except KeyError:
        kind = kind_at(number)
        device = Device(f"{kind.name}:{number - kind.first}")
        return _known.setdefault(number, device)


def number_of(device: Device | str) -> int:
    """Return the number of a device that `find_device` returned."""
    if device == CPU:
        return 0
    name, _, index = device.partition(":")
    return kind_named(name).first + int(index)


def find_device(device: DeviceLike) -> Device:
    """Return the device with a name, or for a `Device`; None is the CPU.

    Whether a device exists is checked lazily, at its first use.

    Raises
    ------
    ValueError
        If it is not the name of a device.
    """
    if device is None or device == CPU:
        return CPU
    if isinstance(device, str):
        kind = find_kind(device)
        _, colon, index = device.partition(":")
        if kind and (index or not colon) and _is_index(index or "0"):
            return device_of(kind.first + int(index or "0"))
    others = ", ".join(f"'{kind.name}:0'" for kind in KINDS if kind.factory)
    msg = (
        f"there is no device {device!r}; available: {str(CPU)!r} and, where there is "
        f"such a device, {others} and so on"
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
