"""Devices: where arrays lie and are computed on."""

__all__ = ["CPU", "Device", "as_device"]


class Device(str):
    """A device, such as ``Device("cpu")``: a string with a telling ``repr``.

    It is hashable and equal to its name, so that ``x.device == "cpu"`` holds.
    """

    __slots__ = ()

    def __repr__(self):
        return f"Device({str(self)!r})"


CPU = Device("cpu")


def as_device(device):
    """Return the device that a name or a `Device` stands for; None is the CPU.

    Raises
    ------
    ValueError
        If there is no such device; it lists those that there are.
    """
    if device is None or device == CPU:
        return CPU
    msg = f"there is no device {device!r}; available: {str(CPU)!r}"
    raise ValueError(msg)
