"""The contract of engines, which compute on devices: the methods of one class."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ndx._array.interchange import imported
from ndx._lib.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ndx._lib.device import DeviceKind

__all__ = ["Engine", "check_engine", "load_engine"]


class Engine:
    """Computes on the devices of one kind, and copies to and from them.

    Base class of engines; `ndx.engines.register` makes one known. The functions of the
    namespace check their arguments, and then call the engine if an operand or the new
    array is on a device. All arrays of a call are on one device then; others raise
    ValueError before.

    An engine has to override `compute`, `elementwise`, `get_item`, `set_item`, `fill`,
    `copy_into`, `upload` and `to_device`. It makes new arrays on the device of the
    operands (``ndx.empty(..., device=...)``), in whose current workspace or backend
    they so are, and finds the memory of arrays by `ndx.engines.export`. What it can't
    compute raises NotImplementedError, with what to do instead.

    See Also
    --------
    ndx.engines.register : with an example.
    """

    # ------------------------------------------------------------ computing

    def compute(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Compute a function of the namespace.

        Parameters
        ----------
        name : str
            Its name after ``ndx.``: ``"sum"``, ``"linalg.inv"``.
        *args, **kwargs
            The function's arguments, checked: arrays (in sequences, too), axes as
            ints or tuples of ints, dtypes as NumPy's.
        """
        raise NotImplementedError

    def elementwise(self, name: str, operands: Any, dtype: Any, out: Any = None) -> Any:
        """Compute an elementwise operation.

        Parameters
        ----------
        name : str
            The name of the function.
        operands : tuple
            Arrays and NumPy scalars, all of the dtype of the computation; they
            broadcast together.
        dtype : dtype
            Of the result.
        out : NDArray, optional
            Receives the result. It has the result's shape and dtype, and may be an
            operand.
        """
        raise NotImplementedError

    def matmul(self, x1: Any, x2: Any, out: Any = None) -> Any:
        """Compute a product of arrays of one dtype, none 0-d; see `elementwise`.

        By default that is `compute`, and a copy for `out`.
        """
        result = self.compute("matmul", x1, x2)
        if out is None:
            return result
        if out.shape != result.shape:
            msg = (
                f"matmul: the output has shape {out.shape}, but the product has shape "
                f"{result.shape}"
            )
            raise ValueError(msg)
        self.copy_into(out, result)
        return out

    def numpy_function(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Compute a function, or a method of `numpy.ndarray`, that only NumPy has.

        Parameters
        ----------
        name : str
            Its name after ``numpy.``: ``"nanmean"``, ``"add.reduce"``,
            ``"ndarray.repeat"``.
        args : tuple
            The arguments as they were given. A method's first one is its array.
        kwargs : dict
            The same.

        Raises
        ------
        TypeError
            By default: the engine has no such function.
        """
        msg = (
            f"{type(self).__name__} has no numpy.{name}; compute on the CPU: "
            "x.to_device('cpu')"
        )
        raise TypeError(msg)

    def fused(self, program: Any) -> Any:
        """Return a function that computes a program of `ndx.fuse`.

        Parameters
        ----------
        program : ndx._fusing.device_lowering.DeviceProgram

        Returns
        -------
        callable
            Of the list of arrays among the arguments of a call, and of its scalars.

        Raises
        ------
        NotImplementedError
            If it has a step that can't be fused; the message says which. The function
            then runs as it is. By default always.
        """
        msg = f"{type(self).__name__} fuses nothing"
        raise NotImplementedError(msg)

    # ------------------------------------------------------------ elements

    def get_item(self, x: Any, key: Any) -> Any:
        """Return ``x[key]`` for a key whose result is a copy."""
        raise NotImplementedError

    def set_item(self, x: Any, key: Any, value: Any) -> Any:
        """Write ``x[key] = value``; the value's kind fits."""
        raise NotImplementedError

    def fill(self, x: Any, value: Any) -> Any:
        """Set all elements of `x` to `value`, a 0-d NumPy array of its dtype."""
        raise NotImplementedError

    # ------------------------------------------------------------ copies

    def copy_into(self, out: Any, x: Any) -> Any:
        """Copy the elements of `x`, broadcast and cast, into `out`."""
        raise NotImplementedError

    def upload(self, x: Any, device: Any, *, detached: bool = False) -> Any:
        """Copy an array on the CPU, an NDArray or a NumPy array, to a device.

        Parameters
        ----------
        x : NDArray or numpy.ndarray
        device : Device
        detached : bool
            Whether the copy is outside of all workspaces.
        """
        raise NotImplementedError

    def to_device(self, x: Any, device: Any, *, stream: Any = None) -> Any:
        """Return a copy on another device or, once `x` is computed, on the CPU.

        Parameters
        ----------
        x : NDArray
            On the CPU, or on a device of this kind.
        device : Device
            The CPU, or a device of this kind.
        stream : optional
            What the user gave; an engine without streams refuses all but None.
        """
        raise NotImplementedError

    # ------------------------------------------------------------ other libraries

    def from_other(self, x: Any) -> Any:
        """Return an array over the memory of another library's array on a device.

        By default by DLPack, whose consumers on devices without streams wait for none.
        """
        return imported(x)

    def interface(self, x: Any) -> Any:
        """Return ``__cuda_array_interface__``."""
        msg = "the array is not on a GPU of NVIDIA's"
        raise AttributeError(msg)

    def hand_to_stream(self, x: Any, stream: Any) -> Any:
        """Let the stream of a DLPack consumer wait until `x` is computed."""
        if stream not in (None, -1):
            msg = f"{type(self).__name__} has no streams; got stream={stream!r}"
            raise BufferError(msg)

    # ------------------------------------------------------------ devices

    def device_count(self) -> int:
        """Return the number of devices, which are numbered from 0."""
        return 1

    def synchronize(self, device: Any = None) -> Any:
        """Wait until a device, or each device in use, is done.

        By default nothing: the other methods return when they are done.
        """


_REQUIRED = (
    "compute",
    "elementwise",
    "get_item",
    "set_item",
    "fill",
    "copy_into",
    "upload",
    "to_device",
)


def check_engine(kind: str, engine: object) -> None:
    """Raise TypeError if an engine, or a class, lacks a part of the contract."""
    of = engine if isinstance(engine, type) else type(engine)
    if not issubclass(of, Engine):
        msg = (
            f"the engine of {kind!r} must derive from ndx.engines.Engine, which "
            f"{of.__name__} does not"
        )
        raise TypeError(msg)
    lacks = [name for name in _REQUIRED if getattr(of, name) is getattr(Engine, name)]
    if lacks:
        msg = (
            f"the engine of {kind!r}, {of.__name__}, lacks {', '.join(lacks)}: "
            "ndx.engines.Engine says what each has to do"
        )
        raise TypeError(msg)


# By kind: which thread makes its engine now, and what the others wait for.
_under_way: dict[DeviceKind, tuple[int, threading.Event]] = {}
_PATIENCE = 10.0  # seconds; the maker may itself wait for one that waits

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_under_way.clear)


def load_engine(kind: DeviceKind) -> Engine:
    """Return the engine of a kind of devices; the first call makes it.

    Other threads wait for it, without a lock, since it runs code of others.

    Raises
    ------
    DeviceError
        If none is registered.
    TypeError
        If what was registered makes none.
    """
    me = threading.get_ident(), threading.Event()
    thread, done = _under_way.setdefault(kind, me)
    if done is not me[1] and thread != me[0]:
        done.wait(_PATIENCE)
    try:
        return _made_engine(kind) if kind.engine is None else kind.engine
    finally:
        if done is me[1]:
            _under_way.pop(kind, None)
            done.set()


def _made_engine(kind: DeviceKind) -> Engine:
    made: Any = kind.factory
    if made is None:
        msg = (
            f"there is no engine for devices of kind {kind.name!r}, so nothing is "
            f"computed on {kind.name + ':0'!r}, and nothing copied to it or from it: "
            f"give one to ndx.engines.register({kind.name!r}, ...), or import the "
            "package that does"
        )
        raise DeviceError(msg)
    if isinstance(made, str):
        module, _, name = made.partition(":")
        made = getattr(import_module(module), name)
    if not isinstance(made, Engine):
        maker: Callable[[], Engine] = made
        made = maker()
        check_engine(kind.name, made)
    # The first that is done is taken.
    if kind.engine is None:
        kind.engine = made
    return kind.engine
