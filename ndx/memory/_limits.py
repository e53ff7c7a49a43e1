"""Limits on the memory of ndx, the process and a GPU; memory reserved in advance."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from ndx._lib.device import device_of, find_device, number_of
from ndx._lib.locks import module_lock
from ndx._lib.sizes import parse_size
from ndx.backends import PooledBackend, _budget, _pressure, get
from ndx.backends._relief import warm_up
from ndx.memory._counters import backend_of

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from ndx._typing import BackendLike, DeviceLike, Size

__all__ = ["headroom", "limit", "limits", "reserve", "set_limit", "set_limits"]


class _Unchanged:
    """The default of arguments for which None has a meaning."""

    def __repr__(self):
        return "<unchanged>"


_UNCHANGED = _Unchanged()


def limit(device: DeviceLike = None) -> int | None:
    """Return the limit on all backends of ndx together; None for none.

    Parameters
    ----------
    device : Device or str, optional
        A GPU: the limit on the memory of it that all backends hold.
    """
    number = number_of(find_device(device))
    if number:
        return _budget.gpu_limits().get(number)
    return _budget.process_limit()


def limits() -> dict[str, int]:
    """Return all limits of `set_limit`, as a dict of bytes.

    Returns
    -------
    dict
        ``"ndx"``: on all backends together; ``"process"``: on the resident memory of
        the process; ``"cuda:0"`` and so on. Only existing limits are included.

    Examples
    --------
    >>> import ndx
    >>> ndx.memory.set_limit(process="50MiB", value="10MiB")
    >>> ndx.memory.limits()
    {'ndx': 10485760, 'process': 52428800}
    >>> ndx.memory.set_limit(None, process=None)
    """
    found = {"ndx": _budget.process_limit(), "process": _budget.resident_bound()}
    found |= {str(device_of(gpu)): each for gpu, each in _budget.gpu_limits().items()}
    return {name: nbytes for name, nbytes in found.items() if nbytes is not None}


def set_limit(
    value: Size | None = _UNCHANGED,
    *,
    process: Size | None = _UNCHANGED,
    device: DeviceLike = None,
) -> None:
    """Set the limit on the memory that all backends of ndx hold together.

    Parameters
    ----------
    value : int or str or None, optional
        Bytes, such as ``"8GiB"``, or a part of the memory that the process may have
        (the machine's memory, or less in a control group), such as ``"50%"``; None for
        no limit. A lower limit holds at once: idle memory above it goes back; where
        arrays are above it, requests are refused until they fit.
    process : int or str or None, optional
        The same for all resident memory of the process, including NumPy's, other
        libraries' and Python's. Beyond it ndx takes no more memory; others may.
    device : Device or str, optional
        A GPU: makes `value` the limit on the memory of it that all backends hold
        together; a percentage is a part of its memory.

    Raises
    ------
    ValueError
        If the size or the device is not valid.
    DeviceError
        If the device can't be used.
    TypeError
        If nothing is given, or `process` is given with a GPU.
    NotImplementedError
        If the system does not report the memory of the process: only Linux does.

    Warns
    -----
    RuntimeWarning
        If a limit exceeds the existing memory.

    Notes
    -----
    Backends have limits of their own, too (``ndx.use("host", limit=...)``). Files
    (``ndx.use("mmap")``) count towards those only, because they are not memory. The
    environment variable ``NDX_LIMIT`` sets `value` at the start.

    With a limit on the process, ndx asks the system for the memory of the process at a
    request, for new or for idle memory, unless the last answer is less than 10 ms old.
    (Of requests that come faster than every 2 ms one of 16 looks at the clock.) What
    others take is noticed then: idle memory goes back, and if that is not enough,
    requests are refused. Pages of files and
    memory shared with other processes don't count. New memory of a pool gets its pages
    at once, and so counts before it is written to; older memory counts as soon as it is
    written to.

    Examples
    --------
    >>> import ndx
    >>> ndx.memory.set_limit("50%")
    >>> ndx.memory.set_limit(None)
    >>> ndx.memory.set_limit(process="80%")
    >>> ndx.memory.set_limit(process=None)
    """
    if value is _UNCHANGED and process is _UNCHANGED:
        msg = "set_limit sets nothing: give a size, None for no limit, or process="
        raise TypeError(msg)
    found = find_device(device)
    number = number_of(found)
    if number:
        if process is not _UNCHANGED or value is _UNCHANGED:
            msg = (
                f"the limit of {str(found)!r} is set_limit(size, device=...); process= "
                "is for the machine's memory, and is set by a call of its own"
            )
            raise TypeError(msg)
        of_gpu = get(str(found))
        _budget.set_gpu_limit(number, value, of_gpu.memory_info()[1])
        _pressure.settle("device", of_gpu)
        return
    before = _budget.resident_bound()
    if process is not _UNCHANGED:
        _budget.set_resident_limit(process)
    if value is not _UNCHANGED:
        try:
            _budget.set_process_limit(value)
        except BaseException:
            # Set both, or neither.
            _budget.set_resident_limit(before)
            raise
    _pressure.settle("process")


def set_limits(limits: dict[str, int], /) -> None:
    """Set all limits to those that `limits` returned, in this process or another.

    Parameters
    ----------
    limits : dict
        As `limits` returns it. Limits that are not in it end.

    Notes
    -----
    It warns of nothing, which `set_limit` did before, and uses no GPU.

    Examples
    --------
    >>> import ndx
    >>> before = ndx.memory.limits()
    >>> ndx.memory.set_limit("1GiB")
    >>> ndx.memory.set_limits(before)
    """
    gpus = {
        number_of(find_device(name)): nbytes
        for name, nbytes in limits.items()
        if ":" in name
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _budget.set_process_limit(limits.get("ndx"))
        _budget.set_resident_limit(limits.get("process"))
    _pressure.settle("process")
    for gpu in gpus.keys() | _budget.gpu_limits().keys():
        _budget.set_gpu_limit(gpu, gpus.get(gpu), None)


def reserve(
    nbytes: Size, backend: BackendLike | None = None, *, touch: bool = False
) -> int:
    """Obtain memory for a backend now, for arrays that are made later.

    Parameters
    ----------
    nbytes : int or str
        Bytes that can then be served without the system. For a pool of type ``round``
        or ``naive``, by one request of exactly this size.
    backend : str or ndx.backends.Backend, optional
        A backend with a pool. Default: the current one.
    touch : bool, default False
        Whether to write to all of it, so that the system provides its pages now instead
        of at the first write to an array.

    Returns
    -------
    int
        Bytes by which the backend's reserve has grown.

    Raises
    ------
    TypeError
        If the backend has no pool.
    OutOfMemoryError
        If the memory is not available.

    Notes
    -----
    The memory stays with the backend while idle, until `trim` or `empty_cache`, or
    until another backend needs it. ``initial=`` of a backend does the same at its
    creation.

    Examples
    --------
    >>> import ndx
    >>> backend = ndx.backends.get("host", limit="64MiB")
    >>> ndx.memory.reserve("16MiB", backend)
    16777216
    """
    found = _pooled(backend)
    size = parse_size(nbytes, "nbytes")
    if found.kind == "unpooled":
        msg = f"{found!r} keeps no memory, so that none can be reserved"
        raise TypeError(msg)
    before = found.kept_nbytes
    # The reserved bytes come on top of the memory in use.
    found.kept_nbytes = max(before, found.stats()["rounded_bytes"] + size)
    try:
        return warm_up(found, size, bool(touch))
    except BaseException:
        found.kept_nbytes = before
        raise


def _pooled(backend):
    """Return the backend with a pool, which adaptors may wrap."""
    found = _pressure.innermost(backend_of(backend))
    if not isinstance(found, PooledBackend):
        msg = f"{found!r} has no pool, which could keep memory or give it back"
        raise TypeError(msg)
    return found


_lock = module_lock()
_rooms = {}


class headroom:
    """Context manager: keep `nbytes` of a backend's source free for others.

    It gives idle memory back until so much is free, for a step that needs memory for
    another library or for one large array. In the scope, the pool gives idle memory
    back before it grows, for the same purpose.

    Parameters
    ----------
    nbytes : int or str
        Bytes of the device, or of the machine.
    backend : str or ndx.backends.Backend, optional
        A backend with a pool. Default: the current one.

    Attributes
    ----------
    released_bytes : int
        Bytes given back at the start.

    Raises
    ------
    TypeError
        If the backend has no pool.

    Examples
    --------
    >>> import ndx
    >>> with ndx.memory.headroom("64MiB", "host"):
    ...     x = ndx.ones(1000)
    """

    def __init__(self, nbytes: Size, backend: BackendLike | None = None) -> None:
        self.backend = _pooled(backend)
        self.nbytes = parse_size(nbytes, "nbytes")
        self.released_bytes = 0
        self._entered = 0

    def __enter__(self) -> Self:
        with _lock:
            # The first value is the room outside of all scopes.
            rooms = _rooms.setdefault(self.backend, [self.backend.headroom_nbytes])
            rooms.append(self.nbytes)
            self.backend.headroom_nbytes = max(rooms)
            self._entered += 1
        try:
            self.released_bytes = self._make_room()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._entered:
            msg = "ndx.memory.headroom was left, but is not entered"
            raise RuntimeError(msg)
        self._leave()

    def _leave(self):
        with _lock:
            self._entered -= 1
            rooms = _rooms[self.backend]
            del rooms[rooms.index(self.nbytes, 1)]
            self.backend.headroom_nbytes = max(rooms)
            if len(rooms) == 1:
                del _rooms[self.backend]

    def _make_room(self):
        """Give idle memory back until there is room: of the backend, then of others."""
        released = 0
        others = [
            other
            for other in _pressure.live_pools()
            if other is not self.backend and other.resource == self.backend.resource
        ]
        for each in (self.backend, *others):
            free = self.backend.memory_info()[0]
            if free is None or free >= self.nbytes:
                break
            held = each.stats()["reserved_bytes"]
            released += each.trim(target=max(0, held - (self.nbytes - free)))
        return released
