"""Device dispatch: a function that meets a device's arrays asks the device's engine.

The CPU's code cannot read a device's memory. A function of the namespace therefore
checks its arguments, looks where its operands are, and calls the engine if that is a
device. The engine is in a higher room, which registers how it is loaded.
"""

from ndx._array.storage cimport BaseArray, is_array
from ndx.backends.base cimport devices

from ndx._lib.device import CPU, find_device
from ndx.backends import _pressure

__all__ = ["set_engine", "synchronize", "waitall"]

cdef object engine = None        # an `ndx._array.engine.Engine`
cdef object load_engine = None   # returns it


def set_engine(load: Callable[[], Any]) -> None:
    """Register the function that returns the engine; it is called at the first use."""
    global engine, load_engine
    engine, load_engine = None, load


cdef object device_engine():
    """Return the engine of all devices, an `ndx._array.engine.Engine`."""
    global engine
    if engine is None:
        engine = load_engine()
    return engine


cdef bint is_on_device(object x) noexcept:
    """Whether `x` is an array of a device."""
    return is_array(x) and (<BaseArray>x).block.device != 0


cdef bint any_on_device(tuple values):
    """Whether one of the values is a device's array, or a sequence with one in it."""
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
    """Wait until what devices were given to compute is done.

    Parameters
    ----------
    device : Device or str, optional
        Default: all that are used. The CPU is always done.

    Notes
    -----
    Computing on a GPU goes on after the call that started it. What reads a result
    (`float`, `repr`, ``to_device("cpu")``) waits for it by itself.

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
    """Wait until all devices are done with what they were given to compute.

    Parameters
    ----------
    trim : bool, default False
        Whether to give idle memory back then: of all backends, as
        `ndx.memory.empty_cache` does.

    Notes
    -----
    MXNet's ``waitall``: `synchronize`, of all devices.

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
