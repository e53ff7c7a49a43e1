"""Devices: where arrays lie and are computed on."""

__all__ = ["CPU", "Device", "as_device"]

class Device(str): ...

CPU: Device

def as_device(device: Device | str | None) -> Device: ...
