"""The contract of what computes on devices: one class, whose methods are all of it."""

from typing import Any

__all__ = ["Engine"]


class Engine:
    """Computes on the devices of one kind, and copies to and from them.

    The functions of the namespace check their arguments, and then ask the engine if an
    operand, or the new array, is on a device. All methods raise ValueError where
    arrays are on different devices, and OutOfMemoryError where there is no memory.
    New arrays are where the device's new arrays are: in its workspace or backend.
    """

    # ------------------------------------------------------------ computing

    def compute(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Compute a function of the namespace.

        Parameters
        ----------
        name : str
            As users write it behind ``ndx.``: ``"sum"``, ``"linalg.inv"``.
        *args, **kwargs
            As the function got them, checked: arrays (in sequences, too), axes as
            ints or tuples of ints, dtypes as NumPy's.
        """
        raise NotImplementedError

    def elementwise(self, name: str, operands: Any, dtype: Any, out: Any = None) -> Any:
        """Compute an operation.

        Parameters
        ----------
        name : str
            Of the elementwise function.
        operands : tuple
            Arrays, and NumPy's scalars, all of the dtype in which it computes; they
            broadcast together.
        dtype : dtype
            Of the result.
        out : NDArray, optional
            Receives the result; it has its shape and dtype, and may be an operand.
        """
        raise NotImplementedError

    def matmul(self, x1: Any, x2: Any, out: Any = None) -> Any:
        """Compute a product of arrays of one dtype, with axes; see `elementwise`."""
        raise NotImplementedError

    # ------------------------------------------------------------ elements

    def get_item(self, x: Any, key: Any) -> Any:
        """Return ``x[key]`` for a key that selects no view."""
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
        """Return a copy on a device of an array on the CPU, ours or NumPy's.

        Parameters
        ----------
        x : NDArray or numpy.ndarray
        device : int
            Its number.
        detached : bool
            Whether the copy is in no workspace.
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
        """Let the stream of a DLPack consumer wait for what computes `x`."""
        raise NotImplementedError

    def synchronize(self, device: Any = None) -> Any:
        """Wait until a device, or each one that is used, is done."""
        raise NotImplementedError
