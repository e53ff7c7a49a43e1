"""Sessions: calls of CuPy on one GPU, with ndx's memory."""

from ndx._array.dispatch import device_among
from ndx._cuda.bridge import Bridge
from ndx._cuda.staging import Staging
from ndx.backends import _cupy
from ndx.backends._gpus import KIND

__all__ = ["Session", "current_session", "session_for", "session_of"]

_sessions = {}


class Session:
    """One GPU: converts arrays for CuPy, and gives CuPy memory.

    Parameters
    ----------
    index : int
        The number of the GPU.
    """

    def __init__(self, index):
        cupy = _cupy.check_device(index)
        self.index = index
        self.cuda = cupy.cuda
        self.runtime = cupy.cuda.runtime
        self.ndarray = cupy.ndarray
        self.device = cupy.cuda.Device(index)
        self.bridge = Bridge(cupy, index)
        # The bridge's compiled methods, which need no Python frame.
        self.at_work, self.compute = self.bridge.at_work, self.bridge.compute
        self.unwrap, self.wrap = self.bridge.unwrap, self.bridge.wrap
        self.staging = Staging(self.runtime)

    def stream(self):
        """Return the handle of CuPy's current stream."""
        return self.cuda.get_current_stream(self.index).ptr


def session_of(index):
    """Return the session of a GPU."""
    key = index, id(_cupy.load())
    if key not in _sessions:
        _sessions[key] = Session(index)
    return _sessions[key]


def current_session():
    """Return the session of the GPU that is CuPy's current one."""
    return session_of(_cupy.load().cuda.Device().id)


def session_for(*values):
    """Return the session of the GPU on which the arrays among the arguments are."""
    return session_of(device_among(values) - KIND.first)
