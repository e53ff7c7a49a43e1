"""Device dispatch: functions hand arrays on a device to the device's engine.

The CPU's code cannot read a device's memory. A function of the namespace therefore
checks its arguments, and calls the engine if an operand is on a device. The engine is
in a higher room, which registers its loader, so this module does not import it.
"""

from ndx._array.storage cimport BaseArray, is_array
from ndx.backends.base cimport devices

from ndx._lib.device import CPU, find_device
from ndx.backends import _pressure

__all__ = ["set_engine", "synchronize", "waitall"]

cdef object engine = None        # an `ndx._array.engine.Engine`
cdef object load_engine = None   # returns it


def set_engine(load: Callable[[], Any]) -> None:
    """Register the function that returns the engine; it is called lazily, once."""
    global engine, load_engine
    engine, load_engine = None, load


cdef object device_engine():
    """Return the engine of all devices, an `ndx._array.engine.Engine`."""
    global engine
    if engine is None:
        engine = load_engine()
    return engine


cdef bint is_on_device(object x) noexcept:
    """Whether `x` is an array on a device."""
    return is_array(x) and (<BaseArray>x).block.device != 0


cdef bint any_on_device(tuple values):
    """Whether one of the values is an array on a device, or a sequence with one."""
    if not devices.in_use:
        return False
    for x in values:
        if is_on_device(x):
            return True
        if type(x) is list or type(x) is tuple:
            for item in x:
                if is_on_device(item):
                    return True
    return False


def synchronize(device: DeviceLike = None) -> None:
    """Wait until devices have finished all work that was submitted to them.

    Parameters
    ----------
    device : Device or str, optional
        Default: all that are used. The CPU never has work pending.

    Notes
    -----
    A GPU computes asynchronously: it continues after the call returns. Functions that
    read a result (`float`, `repr`, ``to_device("cpu")``) wait for it by themselves.

    Examples
    --------
    >>> import ndx
    >>> ndx.synchronize()
    """
    if device is not None and find_device(device) == CPU:
        return
    if device is not None or devices.in_use:
        device_engine().synchronize(device)


def waitall(*, trim: bool = False) -> None:
    """Wait until all devices have finished all work that was submitted to them.

    Parameters
    ----------
    trim : bool, default False
        Whether to give the idle memory of all backends back afterwards, as
        `ndx.memory.empty_cache` does.

    Notes
    -----
    MXNet's ``waitall``: `synchronize` for all devices.

    Examples
    --------
    >>> import ndx
    >>> ndx.waitall()
    >>> ndx.waitall(trim=True)
    """
    synchronize()
    if trim:
        for each in _pressure.live_pools():
            each.trim()
