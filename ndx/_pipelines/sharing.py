"""Arrays that several processes see: files in memory, mapped by each of them.

A folder is locked by the process that made it, and so by the children that it forks.
The system drops the lock when the last of them ends, in whatever way. The next process
that makes such folders removes those that nobody locks any more.

An array that goes to another process is written to a file there, once; the receiver
maps the file and removes its name. An array of `share` has a file for as long as it
lives, and travels by the name of that file.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import itertools
import os
import pickle
import re
import shutil
import tempfile
import threading
import time
import weakref
from typing import Any, NamedTuple

import numpy as np

import ndx
from ndx._files.mapping import make_private
from ndx._lib.weak import members

try:
    import fcntl
except ImportError:  # There are no such locks on Windows.
    fcntl = None  # type: ignore[assignment]

try:
    import resource
except ImportError:  # There are no such limits on Windows.
    resource = None  # type: ignore[assignment]

__all__ = [
    "Exchange",
    "LEAST_NBYTES",
    "MEMORY",
    "close_own",
    "forget_shared",
    "remove_folders_of",
    "share",
]

# ---- Folders -------------------------------------------------------------------------


MEMORY = "/dev/shm"
# What the names of `Folder` are: the number of the process, and random characters.
_NAME = re.compile(r"ndx-\d+-[a-z0-9_]{8}")
# Seconds within which a new folder gets its lock.
_LOCKED_AFTER = 60.0


class Folder:
    """A folder of this process, which only its user may look into, and its lock."""

    def __init__(self, parent: str) -> None:
        self.path = tempfile.mkdtemp(prefix=f"ndx-{os.getpid()}-", dir=parent)
        self._lock: int | None = _lock(self.path)

    def remove(self) -> None:
        """Remove the folder with all that is in it, and drop the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def make_folders() -> list[Folder]:
    """Return new folders where files of shared memory may be, the best first."""
    usable = os.path.isdir(MEMORY) and os.access(MEMORY, os.W_OK | os.X_OK)
    parents = [*([MEMORY] if usable else []), tempfile.gettempdir()]
    if usable:
        # What is left in the other one, the system's own cleaning removes.
        _remove_abandoned(MEMORY)
    made: list[Folder] = []
    try:
        for parent in parents:
            made.append(Folder(parent))
    except BaseException:
        for each in made:
            each.remove()
        raise
    return made


def remove_folders_of(process: int) -> None:
    """Remove what a process has left that was killed, by its number."""
    for parent in (MEMORY, tempfile.gettempdir()):
        _remove_unlocked(parent, f"ndx-{process}-", 0.0)


@functools.cache
def _remove_abandoned(parent: str) -> None:
    """Remove what killed processes of this user have left; once in a process."""
    _remove_unlocked(parent, "ndx-", _LOCKED_AFTER)


def _remove_unlocked(parent: str, prefix: str, age: float) -> None:
    """Remove this user's folders that nobody locks and that are older, in seconds."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if (
                entry.name.startswith(prefix)
                and _NAME.fullmatch(entry.name)
                and _is_older(entry, age)
            ):
                lock = _lock(entry.path)
                if lock is not None:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    os.close(lock)


def _is_older(entry: os.DirEntry[str], age: float) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
        return (
            entry.is_dir(follow_symlinks=False)
            and found.st_uid == os.getuid()
            and time.time() - found.st_mtime >= age
        )
    except (OSError, AttributeError):
        return False


def _lock(path: str) -> int | None:
    """Return a descriptor that locks a folder; None if another one does."""
    if fcntl is None:
        return None
    try:
        found = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(found)
        return None
    return found


# ---- Files ---------------------------------------------------------------------------


# Smaller arrays are pickled: a file costs about as much as this many bytes of a pipe.
LEAST_NBYTES = 1 << 16


class _Shared(NamedTuple):
    """An array that lies in a file, and where it is mapped here."""

    array: weakref.ref[ndx.NDArray]
    start: int
    writable: bool


# By path: the arrays that are shared here, made by this process or by another.
_shared: dict[str, _Shared] = {}
# The paths that a message names which this thread reads.
_reading = threading.local()
_numbers = itertools.count()
_exchanges: weakref.WeakSet[Exchange] = weakref.WeakSet()


def share(x: Any, *, writable: bool = False) -> ndx.NDArray:
    """Return a copy of an array in shared memory, that processes see without a copy.

    Parameters
    ----------
    x : array
        On the CPU.
    writable : bool
        Whether worker processes may write to it, too. What they write is seen here,
        and by the others, in no particular order.

    Returns
    -------
    NDArray
        In no workspace, in Fortran order if `x` is. Its memory is a file in
        ``/dev/shm`` (or, where there is none or no room, in the folder of temporary
        files), which is removed with the array. It goes to processes by name, as do its
        views while it is alive. A worker returns it, or a view, by name if it came with
        the same item or with the function; what it has kept of earlier items, or shares
        itself, it returns by a copy.

    Raises
    ------
    OSError
        If there is no room.

    See Also
    --------
    map : Its ``workers="processes"`` send other arrays by a copy.

    Examples
    --------
    >>> import ndx
    >>> table = ndx.parallel.share(ndx.arange(4.0))
    >>> table[0] = 7.0
    >>> table
    NDArray([7., 1., 2., 3.])
    """
    exchange = Exchange()
    try:
        path = exchange.write(ndx.asarray(x))
        made = ndx.open(path, "r+")
    except BaseException:
        exchange.close()
        raise
    _register(made, path, writable)
    weakref.finalize(made, exchange.close)
    return made


def forget_shared() -> None:
    """Forget, in a forked child, which arrays the parent shares.

    What is sent to it is mapped anew, and can be written if that was allowed. What it
    has by its function, and may not write, becomes a copy of its own when it writes.
    With a limit of data (``ulimit -d``) it does not: all of it would count at once.
    """
    limited = resource is not None and (
        resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY
    )
    for shared in [] if limited else list(_shared.values()):
        array = shared.array()
        if array is None or shared.writable:
            continue
        # The array may have been closed. The system may refuse (strict overcommit).
        with contextlib.suppress(ndx.StaleArrayError, OSError):
            view = np.asarray(array)
            if view.flags.writeable and view.size:
                make_private(_address(view))
    _shared.clear()


def close_own() -> None:
    """Remove the files of all that this process shares, at its end."""
    for each in members(_exchanges):
        each.close()


def _register(x: ndx.NDArray, path: str, writable: bool) -> None:
    _shared[path] = _Shared(weakref.ref(x), _address(np.asarray(x)), writable)
    weakref.finalize(x, _shared.pop, path, None)


def _address(view: np.ndarray) -> int:
    return int(view.__array_interface__["data"][0])


# -------------------------------------------------------------------------- pickles


class _Pickler(pickle.Pickler):
    """Writes large arrays to files, and the names of these to the stream."""

    def __init__(self, file: io.BytesIO, exchange: Exchange, mode: tuple[str, bool]):
        super().__init__(file, protocol=5)
        self._exchange, self._mode = exchange, mode
        self.paths: list[str] = []
        self.named: list[ndx.NDArray] = []

    def reducer_override(self, x: Any) -> Any:
        if type(x) is not ndx.NDArray or str(x.device) != "cpu" or not x.nbytes:
            return NotImplemented
        found = _place_of(x) if _shared else None
        if found is not None and self._exchange.may_name(found[1][0]):
            self.named.append(found[0])
            return _opened_shared, found[1]
        if x.nbytes < LEAST_NBYTES:
            return NotImplemented
        path = self._exchange.write(x)
        self.paths.append(path)
        return _opened, (path, *self._mode)


def _place_of(x: ndx.NDArray) -> tuple[ndx.NDArray, tuple[Any, ...]] | None:
    """Return the shared array that an array is in, its file, and the place there."""
    view = np.asarray(x)
    low, high = np.lib.array_utils.byte_bounds(view)
    for path, shared in list(_shared.items()):
        base = shared.array()
        if base is None or not (
            shared.start <= low and high <= shared.start + base.nbytes
        ):
            continue
        try:
            whole = np.asarray(base)
        except ndx.StaleArrayError:
            # It was closed; another array may be at its address.
            continue
        offset = _address(view) - shared.start
        # A worker may not write to the whole; that says nothing about its sender.
        read_only = whole.flags.writeable and not view.flags.writeable
        layout = offset, x.shape, view.strides, x.dtype.str, read_only
        return base, (path, shared.writable, *layout)
    return None


def _opened_shared(
    path: str,
    writable: bool,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: str,
    read_only: bool,
) -> ndx.NDArray:
    """Return an array in the file of a shared one, which others can perhaps write."""
    if (paths := getattr(_reading, "paths", None)) is not None:
        paths.add(path)
    known = _shared.get(path)
    base = None if known is None else known.array()
    if base is None:
        base = ndx.open(path, "r+" if writable else "r")
        _register(base, path, writable)
    whole = np.asarray(base)
    if (offset, shape, strides) == (0, whole.shape, whole.strides) and (
        dtype == whole.dtype.str and not read_only
    ):
        return base
    flat = (whole if whole.flags.c_contiguous else whole.T).reshape(-1).view(np.uint8)
    view = np.ndarray(shape, dtype, flat, offset, strides)
    view.flags.writeable = view.flags.writeable and not read_only
    return ndx.asarray(view, copy=False)


def _opened(path: str, mode: str, unlink: bool) -> ndx.NDArray:
    """Return the array of a file; `unlink`: for one reader, with which it ends."""
    return ndx.open(path, mode, unlink=unlink)


class Exchange:
    """The folders of files that are on their way between processes.

    The process that makes new ones also removes them, by `close`; `folders` are those
    of another process. Only the same user may look into them.
    """

    def __init__(self, folders: list[str] | None = None):
        self._owner = os.getpid() if folders is None else None
        self._made = make_folders() if folders is None else []
        self.folders = folders or [each.path for each in self._made]
        self._came: set[str] = set()
        self._kept: set[str] = set()
        _exchanges.add(self)

    def may_name(self, path: str) -> bool:
        """Whether who gets a message can still open the file of a shared array.

        For the answer of a worker, only what came with the item or the function is sure
        to be there.
        """
        if self._owner is None:
            return path in self._came or path in self._kept
        return os.path.exists(path)

    def write(self, x: ndx.NDArray) -> str:
        """Write an array to a new file, in its order in memory; return the path."""
        name = f"{os.getpid()}-{next(_numbers)}.npy"
        paths = [os.path.join(each, name) for each in self.folders]
        for path in paths[:-1]:
            try:
                ndx.save(path, x)
            except OSError as error:
                # A container may have little of this memory: 64 MiB is usual.
                if error.errno != errno.ENOSPC:
                    raise
            else:
                return path
        ndx.save(paths[-1], x)
        return paths[-1]

    def dumps(
        self,
        message: Any,
        *,
        for_all: bool = False,
        named: list[ndx.NDArray] | None = None,
    ) -> bytes:
        """Return the pickle of a message, whose large arrays are in files.

        These end when they are read or, if the message is `for_all` processes, with
        `close`. The list `named` gets the shared arrays that the message names. Hold
        them until it is read: their files end with them, and it may have views only.
        """
        file = io.BytesIO()
        if for_all:
            # Others map the file, too: each writes to its own copy.
            mode = "c", False
        else:
            # Forked children of who gets a result get copies of it.
            mode = "c" if self._owner is None else "r+", True
        pickler = _Pickler(file, self, mode)
        try:
            pickler.dump(message)
        except BaseException:
            for path in pickler.paths:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            raise
        if named is not None:
            named += pickler.named
        return file.getvalue()

    def loads(self, message: bytes, *, keep: bool = False) -> Any:
        """Return what a message says, of the process whose folders these are.

        With `keep`, that keeps what it shares for longer than until the answer.
        """
        _reading.paths = paths = set()
        try:
            found = pickle.loads(message)
        finally:
            _reading.paths = None
        self._came = paths
        if keep:
            self._kept = paths
        return found

    def close(self) -> None:
        """Remove the folders, with all that is in them; not in a forked child."""
        if os.getpid() == self._owner:
            for each in self._made:
                each.remove()

    def remove(self) -> None:
        """Remove the folders; for a process that outlives their owner."""
        for each in self.folders:
            shutil.rmtree(each, ignore_errors=True)
