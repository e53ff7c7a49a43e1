"""Mapped files: owned by arrays over a file, and by arenas in a file.

This module knows nothing of the content of files: `_files.replace` makes and replaces
files, `_files.npy` reads and writes their headers.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t

import os
from errno import EFBIG, EINVAL, EIO, ENOSYS, EOPNOTSUPP

from ndx._files.mapping cimport (
    close_file, file_reserve, is_lost, map_file, remap_private, sync_file, unmap_file,
)

from ndx._files.mapping import forget_mapping
from ndx._lib.errors import MappedFileError


@cython.binding(False)
@cython.embedsignature(True)
cdef class MappedFile:
    """A file that is mapped from its start, and its descriptor.

    Parameters
    ----------
    path : str
        The absolute path of the file.
    mode : str
        As for `ndx.open`: ``"r"``, ``"r+"``, ``"w+"`` or ``"c"``.
    fd : int
        A descriptor of the file. The object takes ownership, and closes it.
    """

    def __cinit__(self, str path, str mode, int fd):
        self.path = path
        self.mode = mode
        self.fd = fd

    def __dealloc__(self):
        self.close()

    cdef int map(self, size_t nbytes, bint writable, bint shared,
                 bint own_copy_in_child=False) except -1:
        cdef char *ptr = NULL
        cdef int status
        with nogil:
            status = map_file(self.fd, 0, nbytes, writable, shared, own_copy_in_child,
                              &ptr)
        if status:
            raise OSError(status, f"{os.strerror(status)}: {nbytes} bytes of it can't "
                          "be mapped", self.path)
        self.start = ptr
        self.nbytes = nbytes
        return 0

    cdef void unmap(self) noexcept nogil:
        if self.nbytes:
            unmap_file(self.start, self.nbytes)
            self.nbytes = 0

    cdef void close(self) noexcept nogil:
        """Unmap and close the file, so that it can be deleted or moved."""
        self.unmap()
        if self.fd >= 0:
            close_file(self.fd)
            self.fd = -1

    def close_descriptor(self):
        """Keep the mapping only, of a file in memory that nobody can open any more.

        A process may have few descriptors, and many arrays.
        """
        forget_mapping(<size_t>self.start)
        close_file(self.fd)
        self.fd = -1

    cdef int flush(self) except -1:
        """Wait until all writes to the mapping are on disk."""
        cdef int status
        self.check_whole()
        with nogil:
            status = sync_file(self.start, self.nbytes, self.fd)
        if status:
            raise OSError(
                status, f"{os.strerror(status)}: what was written to it since the last "
                "flush may not be on disk; ndx.save the array to another place",
                self.path)
        return self.check_whole()

    cdef int check_whole(self) except -1:
        """Raise if the file is shorter than its mapping, or pages of it were lost."""
        cdef size_t length = os.fstat(self.fd).st_size
        if length < self.nbytes or is_lost(self.start, self.nbytes):
            raise MappedFileError(
                EIO, "the file can't be read as it was mapped: another process cut it "
                f"short ({length} of {self.nbytes} bytes are left), or the disk "
                "failed", self.path)
        return 0

    cdef int go_on_with(self, int fd) except -1:
        """Back a private mapping by another file, which has the same content."""
        # The descriptor keeps its number, which the table of mappings refers to.
        os.dup2(fd, self.fd, inheritable=False)
        with nogil:
            # If this fails, the memory keeps its content, which is still correct.
            remap_private(self.start, self.nbytes, self.fd)
        return 0


def reserve(int fd, nbytes):
    """Reserve disk space for the first `nbytes` of a file, and keep its content.

    A shorter file is extended with zeros.
    """
    cdef int status
    cdef int64_t length
    if nbytes > INT64_MAX:
        # Possible: a header plus an array that just fits in the address space.
        raise OSError(EFBIG, os.strerror(EFBIG))
    length = nbytes
    with nogil:
        status = file_reserve(fd, 0, length)
    if status in (EINVAL, ENOSYS, EOPNOTSUPP):
        # The file system can't reserve: a full disk is detected at a write.
        if os.fstat(fd).st_size < nbytes:
            os.ftruncate(fd, nbytes)
    elif status:
        raise OSError(status, os.strerror(status))
