"""The memory of one file, for an arena whose content is found again.

The file is locked for as long as this has it, keeps what is in it, and only grows.
"""

cimport cython
from libc.string cimport memset

import contextlib
import os
from errno import EDQUOT, EFBIG, ENOENT, ENOSPC

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:
    flock = None

from ndx._files.mapping cimport MappedFile, unlock_file
from ndx._lib.free_threading cimport ndx_get_flag, ndx_set_flag, ndx_swap_flag
from ndx.backends.base cimport ALLOCATED, SOURCE_FULL, Backend, Memory, counters_lift

from ndx._files.mapping import reserve
from ndx._files.replace import as_path, open_regular, sync_folder
from ndx._lib.errors import WorkspaceError
from ndx._lib.sizes import format_size

cdef extern from "ndx/lock.h":
    long ndx_process_id() nogil

cdef enum:
    LINE = 64                            # bytes; the unit of arenas


# no_gc_clear: an arena that dies with the file gives its memory back to it.
@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class FileBackend(Backend):
    """A file, of which one range is lent at a time: from its start on.

    Parameters
    ----------
    path : str
        The file; it is made if a size is given. Links are followed.
    size : int
        Bytes that it must have at least; a shorter one grows, by zeros. 0: those that
        it has.
    most : int, optional
        The most bytes to use of it.

    Raises
    ------
    WorkspaceError
        If it is in use already.
    OSError
        If it can't be opened or made, or the disk has no space for it.
    ValueError
        If it has no bytes and no size is given.
    """

    def __cinit__(self, str path, size_t size, most=None):
        self.name = "file"
        self.path = as_path(path)
        self.open(size, most)

    def __init__(self, path, size, most=None):
        pass

    cdef int open(self, size_t size, object most) except -1:
        """Lock the file, and set aside the space for it; nothing is lent yet."""
        fd, made = self.locked(size)
        self.file = MappedFile(self.path, "r+", fd)
        self.process = ndx_process_id()
        self.leaving = False
        try:
            length = os.fstat(fd).st_size
            usable = max(-(-size // LINE) * LINE, length // LINE * LINE)
            if most is not None:
                usable = min(usable, most // LINE * LINE)
            if not usable:
                raise ValueError(
                    f"the file {self.path!r} has {length} bytes, too few for a "
                    "workspace; give a size=, and it grows to that")
            self.set_aside(fd, usable)
            if not length:
                sync_folder(self.path)
        except BaseException:
            if made:
                # Before another can lock it.
                with contextlib.suppress(OSError):
                    os.unlink(self.path)
            self.let_go()
            raise
        self.size = usable
        return 0

    def locked(self, size):
        """Lock the file; return its descriptor, and whether this call created it."""
        while True:
            fd, made = self.descriptor(size)
            try:
                self.lock(fd)
                # Another workspace may have deleted the file, or another program moved
                # it.
                if self.is_at_path(fd):
                    # Other processes may have created the file, too, and written to it.
                    return fd, made and not os.fstat(fd).st_size
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def is_at_path(self, fd):
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self.path))
        except FileNotFoundError:
            return False

    def descriptor(self, size):
        """Return a descriptor of the file, and whether this call created the file."""
        try:
            return open_regular(self.path, os.O_RDWR), False
        except FileNotFoundError:
            if not size:
                raise FileNotFoundError(
                    ENOENT, "there is no such file for a workspace; give a size=, and "
                    "it is made", self.path) from None
        return open_regular(self.path, os.O_RDWR | os.O_CREAT), True

    def lock(self, fd):
        """Lock the file against other workspaces, of this or another process."""
        if flock is None:
            return
        try:
            flock(fd, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise WorkspaceError(
                f"the file {self.path!r} is in use by another workspace, of this or "
                "another process; each needs a file of its own. ws.close() lets go of "
                "it") from None

    def set_aside(self, fd, nbytes):
        """Reserve disk space for all of the file, holes included."""
        try:
            reserve(fd, nbytes)
        except OSError as error:
            raise OSError(
                error.errno, f"{os.strerror(error.errno)}: {format_size(nbytes)} were "
                "asked for; what is in it is as it was", self.path) from error

    @property
    def place(self):
        """The file, as messages name it."""
        return self.path

    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil:
        with gil:
            return self.lend(nbytes, zero, out)

    cdef int lend(self, size_t nbytes, bint zero, Memory *out) except -1:
        if self.lent:
            raise WorkspaceError(
                f"the memory of the file {self.path!r} is still read, by a NumPy view, "
                "a buffer or a DLPack tensor of an array in it; it can be used again "
                "when that is gone")
        if self.file.fd < 0:
            self.open(nbytes, None)
        elif nbytes > self.size:
            try:
                self.set_aside(self.file.fd, nbytes)
            except OSError as error:
                if error.errno in (ENOSPC, EDQUOT, EFBIG):
                    return SOURCE_FULL
                raise
            self.size = nbytes
        self.file.map(nbytes, True, True, True)
        if zero:
            memset(self.file.start, 0, nbytes)
        out.ptr = self.file.start
        out.nbytes = nbytes
        out.cookie = NULL
        out.purged = 0
        self.lent = True
        self.counters.allocations += 1
        self.counters.lent += nbytes
        self.counters.system_allocations += 1
        self.counters.live = 1
        self.counters.allocated = self.counters.reserved = nbytes
        counters_lift(&self.counters, nbytes, 1, nbytes)
        return ALLOCATED

    cdef void release(self, Memory *memory) noexcept nogil:
        self.file.unmap()
        self.counters.system_frees += 1
        self.counters.live = 0
        self.counters.allocated = self.counters.reserved = 0
        ndx_set_flag(&self.lent, False)
        self.go()

    cdef int check_process(self) except -1:
        """Raise in a forked child: the lock is its parent's, and so is the content."""
        if self.process != ndx_process_id():
            raise WorkspaceError(
                f"the file {self.path!r} belongs to the workspace of process "
                f"{self.process}, of which this one is a forked child; use a file of "
                "its own here")
        return 0

    cdef int flush(self) except -1:
        """Wait until all that was written to the memory is on disk."""
        self.check_process()
        self.file.flush()
        return 0

    cdef int leave(self) except -1:
        """Let go of the file: now, or when the last use of its memory ends."""
        ndx_set_flag(&self.leaving, True)
        self.go()
        return 0

    cdef void go(self) noexcept nogil:
        """Let go of the file if that is due: once, whichever thread comes last."""
        if not ndx_get_flag(&self.lent) and ndx_swap_flag(&self.leaving, True, False):
            self.let_go()

    cdef void let_go(self) noexcept nogil:
        """Close the file and unlock it, for another workspace."""
        self.file.unmap()
        if self.file.fd >= 0 and self.process == ndx_process_id():
            # Children that were forked meanwhile keep the lock with the descriptor.
            # There the file is the parent's, and stays locked.
            unlock_file(self.file.fd)
        self.file.close()

    def __dealloc__(self):
        if self.file is not None:
            self.let_go()
