"""Device dispatch: functions hand arrays on a device to the device's engine.

The CPU's code cannot read a device's memory. A function of the namespace therefore
checks its arguments, and calls the engine if an operand is on a device. There is one
for each kind of devices, which is loaded at its first use (`_array.engine`).
"""

from numpy cimport ndarray

from ndx._array.storage cimport BaseArray, is_array
from ndx._lib.dtypes cimport DEEPEST
from ndx.backends.base cimport devices

from ndx._array.engine import load_engine
from ndx._lib.device import CPU, KINDS, device_of, find_device, kind_at, number_of
from ndx.backends import _pressure

__all__ = ["synchronize", "waitall"]


cpdef object engine_of(int device):
    """Return the engine of a device by its number, an `ndx._array.engine.Engine`."""
    kind = kind_at(device)
    engine = kind.engine
    return load_engine(kind) if engine is None else engine


cdef object engine_for(object name, tuple values):
    """Return the engine of the one device on which all arrays among the values are."""
    return engine_of(one_device(name, values))


cdef object answer(object engine, object name, object found, bint is_one=True):
    """Return what an engine's method returned: an array, or at least not None.

    Callers read it as an array, which would crash if it were none.
    """
    if found is None or is_one and not is_array(found):
        raise TypeError(
            f"{name}: {type(engine).__name__} returned {type(found).__name__}, not an "
            "array; ndx.engines.Engine says what each method returns")
    return found


cpdef int one_device(object name, object values) except -1:
    """Return the number of the one device on which all arrays among the values are.

    Raises
    ------
    ValueError
        If some are on the CPU, or on another device.
    """
    cdef set found = set()
    cdef list where
    collect(values, found)
    if len(found) == 1:
        (number,) = found
        if number:
            return number
    where = sorted([str(device_of(number)) for number in found])
    raise ValueError(
        f"{name}: the arrays are on different devices ({', '.join(where)}), and none "
        "is moved by itself: bring them together by "
        f"x.to_device({where[len(where) - 1]!r})")


cdef int collect(object value, set found, int depth=0) except -1:
    """Add the numbers of the devices of the arrays in an argument; 0 is the CPU."""
    if depth == DEEPEST:
        return 0
    if is_array(value):
        found.add((<BaseArray>value).block.device)
    elif isinstance(value, ndarray):
        found.add(0)
    elif isinstance(value, (tuple, list)):
        for item in value:
            collect(item, found, depth + 1)
    elif isinstance(value, dict):
        collect(tuple(value.values()), found, depth + 1)
    return 0


cpdef int device_among(object value, int depth=0) except -1:
    """Return the number of the device of an array in an argument; 0: none is on one."""
    cdef int found
    if is_array(value):
        return (<BaseArray>value).block.device
    if isinstance(value, dict):
        value = tuple(value.values())
    if depth < DEEPEST and isinstance(value, (tuple, list)):
        for item in value:
            found = device_among(item, depth + 1)
            if found:
                return found
    return 0


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
    if device is not None:
        device = find_device(device)
        if device != CPU:
            engine_of(number_of(device)).synchronize(device)
    elif devices.in_use:
        for kind in KINDS:
            if kind.in_use and kind.factory is not None:
                engine_of(kind.first).synchronize()


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
