"""Engines: what computes on the memory of devices, by kind of device.

`ndx.backends` give memory, also that of a device; an engine computes on it. The one for
NVIDIA's GPUs is ndx's own. Others are registered by their packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ndx._api.public import name_functions
from ndx._array.dispatch import device_among
from ndx._array.dispatch import engine_of as _engine_of
from ndx._array.engine import Engine, check_engine
from ndx._array.interchange import export
from ndx._lib.device import (
    CPU,
    KINDS,
    device_of,
    find_device,
    kind_named,
    kind_of_dlpack,
    number_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ndx._lib.device import Device
    from ndx._typing import DeviceLike

__all__ = [
    "Engine",
    "available",
    "common_device",
    "engine_of",
    "export",
    "register",
    "unregister",
]


def available() -> list[str]:
    """Return the kinds of devices that have an engine, sorted.

    Examples
    --------
    >>> import ndx
    >>> ndx.engines.available()
    ['cuda']
    """
    return sorted(kind.name for kind in KINDS if kind.factory is not None)


def register(
    kind: str,
    engine: Engine | Callable[[], Engine],
    *,
    dlpack: int | None = None,
) -> None:
    """Let an engine compute on the devices of a kind.

    Parameters
    ----------
    kind : str
        The name of its devices before the colon, an identifier: ``"toy"`` for
        ``"toy:0"``. Their memory is given by the backend that is registered under this
        name, whose class says ``device_kind = "toy"``.
    engine : Engine or callable
        The engine, or a function that returns it, such as its class. That is called
        when the engine is first used.
    dlpack : int, optional
        The type of these devices in DLPack. Without one, arrays on them are not
        exported by DLPack, nor taken.

    Raises
    ------
    ValueError
        If the kind has an engine, or its name is none; if another kind has the type.
    TypeError
        If `engine` can't be called, or lacks a part of the contract.

    Examples
    --------
    >>> import ndx
    >>> ndx.engines.register("toy", lambda: my_package.ToyEngine())
    >>> ndx.engines.available()
    ['cuda', 'toy']
    >>> ndx.engines.unregister("toy")
    """
    if isinstance(engine, (Engine, type)):
        check_engine(kind, engine)
    elif not callable(engine):
        msg = (
            f"the engine of {kind!r} must be an ndx.engines.Engine, or a callable that "
            f"returns one, not {type(engine).__name__}"
        )
        raise TypeError(msg)
    found = kind_named(kind)
    if found.factory is not None:
        msg = f"devices of kind {kind!r} have an engine already"
        if found.of_ndx:
            msg += ", ndx's own: register yours for another kind"
        else:
            msg += (
                ": take another name, or forget that one first by "
                f"ndx.engines.unregister({kind!r})"
            )
        raise ValueError(msg)
    if dlpack is not None:
        other = CPU if dlpack == 1 else kind_of_dlpack(dlpack)
        if other is not None:
            msg = f"dlpack={dlpack} is the type of {str(other)!r} already"
            raise ValueError(msg)
        found.dlpack = (dlpack,)
    found.factory = engine


def unregister(kind: str) -> None:
    """Forget an engine that `register` made known.

    Arrays on its devices stay, but nothing is computed on them any more.

    Raises
    ------
    ValueError
        If `register` did not make it known.
    """
    for found in KINDS:
        if found.name == kind and found.factory is not None and not found.of_ndx:
            found.factory = found.engine = None
            found.dlpack = ()
            return
    known = ", ".join(map(repr, available()))
    msg = (
        f"no engine was registered for devices of kind {kind!r}; there are those of "
        f"{known}, of which ndx's own stay"
    )
    raise ValueError(msg)


def engine_of(device: DeviceLike) -> Engine:
    """Return the engine that computes on a device; the first call makes it.

    Parameters
    ----------
    device : Device or str

    Raises
    ------
    ValueError
        If it is the CPU, or the name of no device.
    DeviceError
        If no engine is registered for its kind.
    """
    number = number_of(find_device(device))
    if not number:
        msg = f"{str(CPU)!r} has no engine: ndx itself computes there"
        raise ValueError(msg)
    return _engine_of(number)


def common_device(*values: Any) -> Device:
    """Return the device of the arrays among arguments of an engine, which have one.

    Parameters
    ----------
    *values
        Arguments of a call: arrays, also in tuples, lists and dicts, and other values.

    Returns
    -------
    Device
        That of the first array; the CPU if there is none.
    """
    return device_of(device_among(values))


def __dir__():
    return __all__


name_functions(globals())
