"""Regular files: opened safely, and replaced atomically."""

import contextlib
import errno
import os
import stat

from ndx._files.mapping import reserve
from ndx._lib.errors import MappedFileError
from ndx._lib.sizes import format_size

# Bytes of one read or write. Ctrl-C is handled between them.
BLOCK = 1 << 24

_BINARY = getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)


def as_path(path):
    """Return a path as an absolute str, with symbolic links resolved."""
    return os.path.realpath(os.fsdecode(path))


def open_regular(path, flags, permissions=0o666):
    """Return a descriptor of a regular file; raise, without waiting, for all else."""
    fd = os.open(path, flags | _BINARY | _NO_WAIT, permissions)
    try:
        _check_regular(os.fstat(fd).st_mode, path)
    except OSError:
        os.close(fd)
        raise
    return fd


def _check_regular(mode, path):
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        msg = "not a regular file, but a pipe, a device or a socket"
        raise OSError(errno.EINVAL, msg, path)


def write_all(fd, data):
    """Write a buffer of bytes at the position of a descriptor."""
    data = memoryview(data)
    while data.nbytes:
        data = data[os.write(fd, data[:BLOCK]) :]


def sync_folder(path):
    """Wait until the name of a new file is on disk."""
    folder = _open_folder(path)
    if folder >= 0:
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _open_folder(path):
    """Return a descriptor of a file's folder; -1 if the system can't open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return -1
    return os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)


@contextlib.contextmanager
def written_whole(path, nbytes, when_full):
    """Open a path to write bytes, as ``open(path, "wb")``; replace the file at the end.

    The old file is replaced when the ``with`` ends without an error, and is unchanged
    until then: the data that is written may be an array that is mapped from it. What is
    no regular file, such as a device or a pipe, is opened as it is.

    Parameters
    ----------
    path : str, bytes or os.PathLike
        The file to replace or to make.
    nbytes : int
        About so many bytes will be written; their disk space is reserved.
    when_full : callable
        As of `Replacement`.
    """
    path = as_path(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
        return
    with Replacement(path, nbytes, when_full) as new:
        with open(new.fd, "wb", closefd=False) as file:
            yield file
        os.ftruncate(new.fd, os.lseek(new.fd, 0, os.SEEK_CUR))
        new.install()


class Replacement:
    """A new file that replaces another one atomically, or not at all.

    It lies in the same folder. It has the permissions of the old file, or the default
    ones if there is no old file. Until `install` the old file is unchanged, whatever
    happens. If it was not installed, it is deleted at the end of the ``with``.

    Parameters
    ----------
    path : str
        The file to replace or to make, from `as_path`.
    nbytes : int
        Its length. It starts as zeros, and its disk space is reserved.
    when_full : callable
        Called with the number of the disk's device when the disk is full. Returns
        whether it gave space back, so that a retry may succeed.
    """

    def __init__(self, path, nbytes, when_full):
        self.path = path
        self.nbytes = nbytes
        self.fd = self._folder = -1
        self._when_full = when_full
        self._name = None
        self._installed = False

    def __enter__(self):
        try:
            self._make()
        except BaseException as error:
            self._discard()
            self._explain(error)
            raise
        return self

    def __exit__(self, kind, error, traceback):
        self._discard()
        self._explain(error)

    def write(self, data):
        """Append bytes to those that were written before."""
        write_all(self.fd, data)

    def install(self):
        """Move the complete file to its path, and wait until it is on disk."""
        os.fsync(self.fd)
        if self._name is None:
            self._name = self._new_name()
            # `src_dir_fd` makes `os.link` follow the symbolic link to the open file.
            os.link(f"/proc/self/fd/{self.fd}", self._name, src_dir_fd=self._folder)
        os.replace(self._name, self.path)
        self._name = None
        self._installed = True
        if self._folder >= 0:
            os.fsync(self._folder)

    def reopen(self):
        """Reopen an installed file by its path, so that `fd` has a name in /proc.

        If others have moved or replaced the file already, nothing happens.
        """
        try:
            fd = os.open(self.path, os.O_RDWR | _BINARY | _NO_WAIT)
        except OSError:
            return
        try:
            if os.path.samestat(os.fstat(fd), os.fstat(self.fd)):
                os.dup2(fd, self.fd, inheritable=False)
        finally:
            os.close(fd)

    def _make(self):
        self._folder = _open_folder(self.path)
        self.fd = self._open_unnamed()
        if self.fd < 0:
            self._name = self._new_name()
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY
            self.fd = os.open(self._name, flags, 0o666)
        self._take_permissions()
        try:
            reserve(self.fd, self.nbytes)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            if not self._when_full(os.fstat(self.fd).st_dev):
                raise
            reserve(self.fd, self.nbytes)

    def _open_unnamed(self):
        """Return an unnamed file, which a crash deletes; -1 if it is not supported."""
        if not hasattr(os, "O_TMPFILE") or not os.path.exists("/proc/self/fd"):
            return -1
        try:
            folder = os.path.dirname(self.path)
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                return -1
            raise

    def _new_name(self):
        return os.path.join(
            os.path.dirname(self.path), f".ndx-{os.urandom(8).hex()}.tmp"
        )

    def _take_permissions(self):
        """Copy the old file's owner and permissions; raise if it can't be replaced."""
        try:
            old = os.lstat(self.path)
        except FileNotFoundError:
            return
        if stat.S_ISLNK(old.st_mode):
            # `as_path` resolves links, so only a loop of links is left.
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self.path)
        _check_regular(old.st_mode, self.path)
        if not os.access(
            self.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids
        ):
            # A rename would not check this.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self.path)
        new = os.fstat(self.fd)
        permissions = stat.S_IMODE(old.st_mode) & 0o777
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            try:
                os.fchown(self.fd, old.st_uid, old.st_gid)
            except PermissionError:
                # The group differs, so it gets the permissions of all others.
                permissions = (permissions & 0o707) | (permissions & 0o007) << 3
        if hasattr(os, "fchmod"):
            os.fchmod(self.fd, permissions)

    def _discard(self):
        for fd in (self.fd, self._folder):
            if fd >= 0:
                os.close(fd)
        self.fd = self._folder = -1
        if self._name is not None:
            # The file may not exist yet, or be unreachable, as after the first error.
            with contextlib.suppress(OSError):
                os.unlink(self._name)
            self._name = None

    def _explain(self, error):
        """Raise an OSError again, with the file's name and state."""
        if not isinstance(error, OSError) or isinstance(error, MappedFileError):
            return
        if error.filename == self.path or error.errno is None:
            return
        what = os.strerror(error.errno)
        if self.nbytes and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            what += f" for its {format_size(self.nbytes)}"
        if self._installed:
            what += (
                "; it was replaced, but after a power failure the old one may be back"
            )
        else:
            what += "; nothing was written, and what was there is as it was"
        raise OSError(error.errno, what, self.path) from error
