"""Functions that are captured once as a graph of kernels, and replayed.

A graph is a list of kernels with addresses. So all memory that it reads or writes must
exist, with the same meaning, at every replay:

- its own arrays are in a workspace of its own, which has no other cycle;
- it is replayed only if the arguments have the addresses of the capture;
- other arrays that it reads are exported, and so stay in place.
"""

import collections
import contextlib
import functools
import sys
import threading
import types
import weakref

import numpy as np

from ndx._api.manipulation import reshape
from ndx._array.dispatch import one_device
from ndx._context.context import current_backend
from ndx._core import NDArray
from ndx._cuda import capture
from ndx._cuda.bridge import address_of, device_index, hold, index_of, mapped
from ndx._cuda.capture_state import current
from ndx._cuda.session import session_of
from ndx._cuda.transfer import wait_for
from ndx._lib.device import device_of
from ndx._lib.errors import DeviceError, StaleArrayError, WorkspaceError
from ndx._workspaces.registry import debug_mode, workspace
from ndx.backends import _cupy
from ndx.backends._capture_lock import capturing
from ndx.backends._gpus import KIND

__all__ = ["Graph"]

_CAPTURE_ERRORS = range(900, 909)  # cudaErrorStreamCaptureUnsupported and its like


class Graph:
    """A captured function, returned by `ndx.cuda.graph`.

    Parameters
    ----------
    function : callable
        The function to capture.
    max_graphs : int
        The number of graphs that each thread keeps.
    """

    def __init__(self, function, max_graphs):
        if not callable(function):
            msg = f"a graph is of a callable, not of {type(function).__name__}"
            raise TypeError(msg)
        if max_graphs < 1:
            msg = f"max_graphs={max_graphs} is not valid; valid are 1 and more"
            raise ValueError(msg)
        self._max_graphs = max_graphs
        self._threads = weakref.WeakKeyDictionary()
        self._replays = self._eager = 0
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        if current() is not None or debug_mode() != "off":
            return self.__wrapped__(*args, **kwargs)
        mine = self._mine()
        mine.calls += 1
        # Arguments stay where they are until the graph is launched.
        arrays, held = [], []
        key = _key((args, kwargs), arrays, held)
        session = _session_of(arrays)
        key = session.index, key
        captured = mine.captured.get(key)
        if captured is not None and captured.is_usable():
            self._replays += 1
            return captured.replay(arrays)
        if captured is not None:
            # The graph reads a stale array: an eager call raises the error.
            del mine.captured[key]
        call = functools.partial(self.__wrapped__, *args, **kwargs)
        if key in mine.warm:
            return self._capture(key, session, mine.warm.pop(key), call, arrays)
        self._eager += 1
        if len(mine.captured) < self._max_graphs and mine.admits(self._max_graphs):
            return self._warm_up(key, session, call, arrays)
        return call()

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self):
        return f"<ndx.cuda.graph of {self.__wrapped__!r}>"

    def stats(self):
        """Return counts of the calls, and of this thread's graphs, as a dict of ints.

        Returns
        -------
        dict
            ``"replays"`` and ``"eager"``: calls so far that were replayed (or
            captured, which includes a replay), or run eagerly; ``"graphs"``, and
            ``"bytes"`` of their workspaces.
        """
        captured = self._mine().captured.values()
        return {
            "replays": self._replays,
            "eager": self._eager,
            "graphs": len(captured),
            "bytes": sum(each.workspace.size for each in captured),
        }

    def reset(self):
        """Forget the graphs of this thread: later calls are captured anew."""
        self._threads.pop(threading.current_thread(), None)

    def _mine(self):
        """Return the state of this thread."""
        thread = threading.current_thread()
        found = self._threads.get(thread)
        if found is None:
            found = self._threads[thread] = _OfThread()
        return found

    def _warm_up(self, key, session, call, arrays):
        """Run eagerly in a workspace, which learns how much memory the call needs.

        CuPy compiles its kernels meanwhile, which a capture can't contain.
        """
        own = _own_workspace(session)
        owners = capture.Owners(own, arrays)
        with session.device, capture.Lane.of(session) as lane, own:
            products = capture.Products(lane, own)
            with capture.Notes(owners, products):
                results = _Results(session, call(), arrays, owners)
        mine = self._mine()
        mine.warm[key] = _Warm(own, products.used, mine.calls)
        return results.copies(arrays)

    def _capture(self, key, session, warm, call, arrays):
        try:
            found = self._captured(session, warm, call, arrays)
        except (WorkspaceError, MemoryError, capture.Unprepared):
            found = None
        # Not in the handler, where the failed attempt still holds its memory.
        del warm
        if found is None:
            # The call differs from the warm-up, and nothing was computed yet.
            self._eager += 1
            return self._warm_up(key, session, call, arrays)
        self._mine().captured[key] = found
        self._replays += 1
        return found.replay(arrays)

    def _captured(self, session, warm, call, arrays):
        """Return the graph of a call."""
        own = warm.workspace
        owners = capture.Owners(own, arrays)
        replaying = session.cuda.get_current_stream(session.index)
        ended = _Ended()
        try:
            with session.device, capture.Lane.of(session) as lane, own:
                if warm.multiplies:
                    lane.prepare()
                products = capture.Products(lane, own)
                notes = capture.Notes(owners, products, replaying)
                with capturing(), lane.stream, ended.always(lane.stream), notes:
                    results = _Results(session, call(), arrays, owners)
        except (WorkspaceError, MemoryError, capture.Unprepared):
            raise
        except Exception as error:
            if not ended.is_refusal(error):
                raise
            msg = (
                f"{self.__wrapped__!r} can't be captured as a graph ({error}): a graph "
                "has work of the GPU only, of one stream. Values that the CPU needs, "
                "shapes that depend on values, and linalg's decompositions and "
                "solvers belong outside of the function"
            )
            raise DeviceError(msg) from error
        return _Captured(
            session, ended.graph, own, list(notes.outer.values()), results, replaying
        )


# The state after one eager call: the workspace, whether there were matrix products, and
# the number of the call.
_Warm = collections.namedtuple("_Warm", "workspace multiplies call")


class _OfThread:
    """The state of a thread: workspaces and current streams belong to one."""

    def __init__(self):
        self.captured = {}
        self.warm = {}  # the oldest first
        self.calls = 0

    def admits(self, count):
        """Whether one more call may become warm; calls made only once give way."""
        if len(self.warm) < count:
            return True
        oldest = next(iter(self.warm))
        if self.calls - self.warm[oldest].call <= 16 * count:
            return False
        del self.warm[oldest]
        return True


class _Captured:
    """A graph, and all objects that it keeps in place."""

    def __init__(self, session, graph, own, outer, results, stream):
        self.session = session
        self.graph = graph
        self.workspace = own
        self.outer = outer
        self.results = results
        # CuPy's object, so that no other stream gets its handle.
        self.last = stream
        # Captured transforms use the tables and the memory of CuPy's plans, which CuPy
        # drops when there are too many.
        with session.device:
            cache = _cupy.load().fft.config.get_plan_cache()
            self.plans = [node.plan for _, node in cache]

    def is_usable(self):
        """Whether the other arrays that the graph reads are still valid."""
        try:
            for x, _ in self.outer:
                address_of(x)
        except StaleArrayError:
            return False
        return True

    def replay(self, arrays):
        """Launch the graph on the current stream; return the results."""
        session = self.session
        with session.at_work():
            stream = session.cuda.get_current_stream(session.index)
            if stream.ptr != self.last.ptr:
                wait_for(session, stream.ptr, self.last.ptr)
                self.last = stream
                for x, _ in self.outer:
                    session.bridge.use_here(x)
            for x in arrays:
                session.bridge.use_here(x)
            self.graph.launch(stream)
            return self.results.copies(arrays)

    def __del__(self, is_finalizing=sys.is_finalizing, is_forked=_cupy.is_forked):
        # The memory is freed only after the graph. At exit, modules may be empty.
        if not is_finalizing() and not is_forked() and hasattr(self, "session"):
            with self.session.device:
                self.last.synchronize()


class _Results:
    """The value of a call, whose arrays in the workspace are copied for each caller.

    Made in the scope of the workspace; the memory is exported, and so stays in place.

    Parameters
    ----------
    session : Session
    value : object
        The value that the call returned.
    arguments : list of NDArray
        The arrays among its arguments.
    owners : Owners
    """

    def __init__(self, session, value, arguments, owners):
        self.session = session
        places = {id(x): i for i, x in enumerate(arguments)}

        def kept(value):
            if not isinstance(value, NDArray):
                return mapped(value, kept)
            if id(value) in places:
                return _Argument(places[id(value)])
            if device_index(value) is None or owners.are_others(value):
                return value
            if owners.is_argument(value):
                # A view of memory that the next call overwrites.
                value = reshape(value, value.shape, copy=True)
            return _Copied(session.unwrap(value))

        self.value = kept(value)

    def copies(self, arguments):
        """Return the value with new arrays, in the caller's workspace or backend."""

        def given(value):
            if isinstance(value, _Argument):
                return arguments[value.place]
            if isinstance(value, _Copied):
                return self.session.wrap(value.array.copy())
            return mapped(value, given)

        with self.session.at_work():
            return given(self.value)


_Argument = collections.namedtuple("_Argument", "place")
_Copied = collections.namedtuple("_Copied", "array")


def _key(value, arrays, held):
    """Return the key of a call's arguments for a capture; collect and hold arrays."""
    if isinstance(value, NDArray):
        if device_index(value) is None:
            msg = (
                "an argument of the function of ndx.cuda.graph is an array on the CPU, "
                "which no graph can read: x.to_device('cuda:0') first"
            )
            raise TypeError(msg)
        arrays.append(value)
        held.append(hold(value))
        return address_of(value), value.shape, value.strides, value.dtype
    if isinstance(value, (tuple, list)):
        return type(value), *[_key(item, arrays, held) for item in value]
    if isinstance(value, dict):
        return dict, *[(key, _key(item, arrays, held)) for key, item in value.items()]
    if isinstance(value, (float, complex, np.inexact)):
        # 0.0 and -0.0 are equal, and NaN is not equal to itself.
        return type(value), repr(value)
    try:
        hash(value)
    except TypeError:
        kind = "NumPy's array" if isinstance(value, np.ndarray) else repr(type(value))
        msg = (
            f"an argument of the function of ndx.cuda.graph is {kind}, which can't be "
            "hashed: calls are told apart by arrays on the GPU and by such values"
        )
        raise TypeError(msg) from None
    return type(value), value


def _session_of(arrays):
    """Return the session of the arrays' GPU; without arrays, of the current one."""
    device = current_backend().device
    if arrays:
        device = device_of(one_device("a captured graph", arrays))
    if device.partition(":")[0] != KIND.name:
        msg = (
            "a captured graph runs on a GPU: give it arrays that are on one, or call "
            "it under ndx.use('cuda:0')"
        )
        raise DeviceError(msg)
    return session_of(index_of(device))


def _own_workspace(session):
    """Return a new workspace on a GPU, of the current backend if that is on it."""
    name = str(device_of(KIND.first + session.index))
    backend = current_backend()
    return workspace(
        None,
        backend=backend if backend.device == name else name,
        learn="liveness",
        spill="fail",
    )


class _Ended:
    """The end of a capture, and its result.

    Attributes
    ----------
    graph : cupy.cuda.Graph or None
        The captured graph.
    error : Exception or None
        The reason why there is none, although the function succeeded.
    """

    graph = error = None

    @contextlib.contextmanager
    def always(self, stream):
        """Context manager: capture a stream, and restore its state afterwards."""
        stream.begin_capture()
        try:
            yield
        except BaseException:
            # The call raises if the failure invalidated the capture, but ends it all
            # the same.
            try:
                stream.end_capture()
            except Exception as error:
                self.error = error
            raise
        self.graph = stream.end_capture()

    def is_refusal(self, error):
        """Whether an error says that a graph can't contain something."""
        if isinstance(error, (DeviceError, StaleArrayError)):
            return False
        return any(
            getattr(each, "status", None) in _CAPTURE_ERRORS
            for each in (error, self.error)
        ) or _cupy.is_refused_capture(error)
