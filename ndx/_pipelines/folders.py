"""Folders of files in shared memory, and what a process that was killed has left.

A folder is locked by the process that made it, and so by the children that it forks.
The system drops the lock when the last of them ends, in whatever way. The next process
that makes such folders removes those that nobody locks any more.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
import time

try:
    import fcntl
except ImportError:  # There are no such locks on Windows.
    fcntl = None  # type: ignore[assignment]

__all__ = ["Folder", "make_folders", "remove_folders_of"]

MEMORY = "/dev/shm"
# What the names of `Folder` are: the number of the process, and random characters.
_NAME = re.compile(r"ndx-\d+-[a-z0-9_]{8}")
# Seconds within which a new folder gets its lock.
_LOCKED_AFTER = 60.0


class Folder:
    """A folder of this process, and its lock.

    Attributes
    ----------
    path : str
        Only the same user may look into it.
    """

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
                _remove_if_unlocked(entry.path)


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


def _remove_if_unlocked(path: str) -> None:
    lock = _lock(path)
    if lock is not None:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


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
