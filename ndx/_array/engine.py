"""The contract of engines, which compute on devices: the methods of one class."""

from typing import Any

__all__ = ["Engine"]


class Engine:
    """Computes on the devices of one kind, and copies to and from them.

    The functions of the namespace check their arguments, and then call the engine if an
    operand or the new array is on a device. All methods raise ValueError if arrays are
    on different devices, and OutOfMemoryError if memory is short. New arrays are
    allocated from the device's current workspace or backend.
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
        """Compute a product of arrays of one dtype, none 0-d; see `elementwise`."""
        raise NotImplementedError

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
        """
        raise NotImplementedError

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
            If it has a step that can't be fused; the message says which.
        """
        raise NotImplementedError

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

    def upload(self, x: Any, device: int, *, detached: bool = False) -> Any:
        """Copy an array on the CPU, an NDArray or a NumPy array, to a device.

        Parameters
        ----------
        x : NDArray or numpy.ndarray
        device : int
            The device's number.
        detached : bool
            Whether the copy is outside of all workspaces.
        """
        raise NotImplementedError

    def to_device(self, x: Any, device: Any, *, stream: Any = None) -> Any:
        """Return a copy on another device or, once `x` is computed, on the CPU."""
        raise NotImplementedError

    # ------------------------------------------------------------ other libraries

    def from_other(self, x: Any) -> Any:
        """Return an array over the memory of another library's array on a device."""
        raise NotImplementedError

    def interface(self, x: Any) -> Any:
        """Return ``__cuda_array_interface__``."""
        raise NotImplementedError

    def hand_to_stream(self, x: Any, stream: Any) -> Any:
        """Let the stream of a DLPack consumer wait until `x` is computed."""
        raise NotImplementedError

    def synchronize(self, device: Any = None) -> Any:
        """Wait until a device, or each device in use, is done."""
        raise NotImplementedError
