"""While a function is captured: whose arrays it reads, and its matrix products."""

import contextlib
from typing import ClassVar

from ndx._cuda import cublas
from ndx._cuda.bridge import address_of, block_of, new_array
from ndx._cuda.capture_state import here
from ndx.backends._capture_lock import waiting
from ndx.backends.cuda import begin_capture, end_capture

__all__ = [
    "Lane",
    "Notes",
    "Owners",
    "Products",
    "Unprepared",
]


class Unprepared(Exception):
    """The function does what it did not do in the call before: that comes again."""


class Lane:
    """What captures on a GPU: a stream, and a handle of cuBLAS's if need be.

    Neither is ever destroyed, which would wait for the GPU; the next call has them.

    Parameters
    ----------
    session : Session
    """

    idle: ClassVar = {}  # session -> lanes

    def __init__(self, session):
        self.session = session
        self.stream = session.cuda.Stream(non_blocking=True)
        self.blas = None

    @classmethod
    @contextlib.contextmanager
    def of(cls, session):
        """Have a lane of a GPU, which is current, in a ``with``."""
        idle = cls.idle.setdefault(session, [])
        try:
            lane = idle.pop()
        except IndexError:
            lane = cls(session)
        try:
            yield lane
        finally:
            idle.append(lane)

    def prepare(self):
        """Make cuBLAS's handle: that takes memory, and may wait for the GPU."""
        if self.blas is None:
            session = self.session
            major = session.runtime.getDeviceProperties(session.index)["major"]
            with waiting():
                self.blas = cublas.Handle(major)


class Products:
    """The matrix products of one call, by cuBLAS in memory of the graph's own.

    Parameters
    ----------
    lane : Lane
    workspace : Workspace
        The graph's, open in the call. If there is a product, cuBLAS works in it.
    """

    def __init__(self, lane, workspace):
        self.lane = lane
        self.workspace = workspace
        self.memory = self.stream = None
        self.used = False

    def handle(self):
        """Return cuBLAS's handle, at work on the current stream."""
        lane, session = self.lane, self.lane.session
        if not here.capturing:
            lane.prepare()
        elif lane.blas is None:
            raise Unprepared
        if self.memory is None:
            # Of its own, also where something else is current.
            with self.workspace.borrow():
                nbytes = lane.blas.nbytes + cublas.ALIGN
                self.memory = new_array(session.index, (nbytes,), "uint8")
            self.used = True
        stream = session.stream()
        if stream != self.stream:
            start = -(-address_of(self.memory) // cublas.ALIGN) * cublas.ALIGN
            lane.blas.work_on(stream, start)
            self.stream = stream
        return lane.blas


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
    products : Products
        Of the call.
    replaying : Stream, optional
        If the function is captured, too: who is to replay it, and to whom all memory
        belongs in the meantime. What no graph can contain is refused then.

    Attributes
    ----------
    outer : dict
        Of pairs of our array and CuPy's, which keeps the bytes in their place.
    """

    def __init__(self, owners, products, replaying=None):
        self.owners = owners
        self.products = products
        self.replaying = replaying
        self.outer = {}

    def __enter__(self):
        here.notes = self
        if self.replaying is not None:
            here.capturing = True
            begin_capture(
                self.products.lane.stream.ptr, self.replaying, self.owners.name
            )
        return self

    def __exit__(self, *exc_info):
        if self.replaying is not None:
            end_capture(self.products.lane.stream.ptr)
            here.capturing = False
        here.notes = None
        # Of the workspace, which ends soon.
        self.products.memory = None

    def take(self, x, export):
        """Keep an array that is used, if it is another's."""
        if self.owners.are_others(x):
            self.outer[address_of(x), x.shape, x.strides] = x, export
