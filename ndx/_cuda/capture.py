"""While a function is captured: what it may not do, and what it reads."""

import threading

from ndx._cuda.bridge import address_of, block_of
from ndx._errors import DeviceError
from ndx.backends.cuda import allow_allocation

__all__ = ["Notes", "Owners", "current", "is_capturing", "refuse"]


class _Here(threading.local):
    notes = None
    capturing = False


_here = _Here()


def current():
    """Return what takes notes of this thread's arrays, or None."""
    return _here.notes


def refuse(what):
    """Raise DeviceError if this thread is capturing, which can't contain `what`."""
    if _here.capturing:
        msg = (
            f"{what} can't be part of a captured graph, which runs on the GPU alone: "
            "do it before or after the function of ndx.cuda.graph"
        )
        raise DeviceError(msg)


def is_capturing():
    """Whether this thread captures a graph."""
    return _here.capturing


class Owners:
    """Tells whose memory an array has: the graph's, an argument's, or another's.

    Parameters
    ----------
    workspace : Workspace
        In which all is made that the graph has to itself.
    arguments : list of NDArray
        Of the call.
    """

    def __init__(self, workspace, arguments):
        self.name = workspace.name
        self.arguments = {block_of(x) for x in arguments}

    def is_argument(self, x):
        """Whether an array has the memory of an argument."""
        return block_of(x) in self.arguments

    def are_others(self, x):
        """Whether an array has neither that nor the graph's."""
        return x.workspace != self.name and not self.is_argument(x)


class Notes:
    """Takes note of what a function reads of others' memory, in a ``with``.

    Parameters
    ----------
    owners : Owners
        Tells what is others'.
    capturing : bool
        Whether the function is captured, too: what no graph can contain is refused.

    Attributes
    ----------
    outer : dict
        Of pairs of our array and CuPy's, which keeps the bytes in their place.
    """

    def __init__(self, owners, *, capturing):
        self.owners = owners
        self.capturing = capturing
        self.outer = {}

    def __enter__(self):
        _here.notes = self
        _here.capturing = self.capturing
        allow_allocation(not self.capturing)
        return self

    def __exit__(self, *exc_info):
        allow_allocation(True)
        _here.capturing = False
        _here.notes = None

    def take(self, x, export):
        """Keep an array that is used, if it is another's."""
        if self.owners.are_others(x):
            self.outer[address_of(x), x.shape, x.strides] = x, export
