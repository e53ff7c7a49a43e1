"""State of a capture: the arrays that the function reads, its matrix products."""

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
    """The captured call needs something that the warm-up call did not prepare."""


class Lane:
    """The stream of a capture on a GPU and, if needed, a handle of cuBLAS.

    They are reused, and never destroyed, because that would wait for the GPU.

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
        """Context manager: a lane of a GPU, which must be the current one."""
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
        """Make cuBLAS's handle, which takes memory and may wait for the GPU."""
        if self.blas is None:
            session = self.session
            major = session.runtime.getDeviceProperties(session.index)["major"]
            with waiting():
                self.blas = cublas.Handle(major)


class Products:
    """The matrix products of one call, by cuBLAS in memory of the graph.

    Parameters
    ----------
    lane : Lane
    workspace : Workspace
        The graph's workspace, open during the call, with cuBLAS's work area.
    """

    def __init__(self, lane, workspace):
        self.lane = lane
        self.workspace = workspace
        self.memory = self.stream = None
        self.used = False

    def handle(self):
        """Return cuBLAS's handle, set to the current stream."""
        lane, session = self.lane, self.lane.session
        if not here.capturing:
            lane.prepare()
        elif lane.blas is None:
            raise Unprepared
        if self.memory is None:
            # In the graph's workspace, even if another is current.
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
    """Tells whether an array has memory of the graph, of an argument, or other memory.

    Parameters
    ----------
    workspace : Workspace
        The graph's workspace.
    arguments : list of NDArray
        The arrays among the call's arguments.
    """

    def __init__(self, workspace, arguments):
        self.name = workspace.name
        self.arguments = {block_of(x) for x in arguments}

    def is_argument(self, x):
        """Whether an array has the memory of an argument."""
        return block_of(x) in self.arguments

    def are_others(self, x):
        """Whether an array has memory of neither an argument nor the graph."""
        return x.workspace != self.name and not self.is_argument(x)


class Notes:
    """Context manager that records the foreign arrays which a function reads.

    Parameters
    ----------
    owners : Owners
        Tells which arrays are foreign.
    products : Products
        The products of the call.
    replaying : Stream, optional
        If the function is captured: the stream that replays it, which owns all memory
        meanwhile. Operations that no graph can contain are then refused.

    Attributes
    ----------
    outer : dict
        Pairs of ndx's array and CuPy's, which keeps the bytes in place.
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
        # The memory belongs to the workspace, whose scope ends soon.
        self.products.memory = None

    def take(self, x, export):
        """Keep an array that the function uses, if it is foreign."""
        if self.owners.are_others(x):
            self.outer[address_of(x), x.shape, x.strides] = x, export
