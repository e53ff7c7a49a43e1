"""Mappings of files: reservation of disk space, and pages that can't be read.

Any access to a mapped page can fail: another process truncated the file, or the disk
failed. The system then sends SIGBUS, which ends a process by default. A handler maps
zeros over the page and counts the loss (`losses`). After an operation the caller checks
whether its range was lost (`is_lost`), and raises `MappedFileError`.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t, uint64_t, uintptr_t

import os
from errno import EFBIG, EINVAL, EIO, ENOSYS, EOPNOTSUPP

from ndx._lib.errors import MappedFileError

cdef extern from "ndx/_files/mappings.h" nogil:
    ctypedef struct ndx_range:
        uintptr_t start
        uintptr_t end
        int64_t offset
        int fd
        int shared
    const volatile uint64_t ndx_losses
    int ndx_range_add(void *ptr, size_t nbytes, int fd, int64_t offset, int shared,
                      int is_private)
    void ndx_range_remove(void *ptr)
    bint ndx_range_find(const void *ptr, ndx_range *out)
    bint ndx_range_lost(const void *ptr, size_t nbytes)
    int ndx_range_restore(void *ptr, size_t nbytes)
    int ndx_range_freeze(void *ptr)
    const volatile uint64_t ndx_frozen
    void ndx_files_enter()
    void ndx_files_leave()
    void ndx_freeze_begin()
    void ndx_freeze_end()
    int ndx_ranges_at_fork()
    int ndx_open_unnamed(const char *directory, int *fd)
    int ndx_file_reserve(int fd, int64_t offset, size_t nbytes)
    int ndx_file_punch(int fd, int64_t offset, size_t nbytes)
    int ndx_file_zero(int fd, int64_t offset, size_t nbytes)
    int ndx_map_file(int fd, int64_t offset, size_t nbytes, size_t step, int writable,
                     int shared, void **out)
    void ndx_unmap(void *ptr, size_t nbytes)
    int ndx_sync(void *ptr, size_t nbytes, int fd)
    int ndx_remap_private(void *ptr, size_t nbytes, int fd)
    void ndx_unlock_file(int fd)
    void ndx_close_file(int fd)
    int ndx_space(const char *path, uint64_t *idle, uint64_t *total)

losses = &ndx_losses
frozen = &ndx_frozen

if ndx_ranges_at_fork() != 0:
    raise MemoryError("ndx: no memory to register its fork handlers")


cdef int open_unnamed(const char *directory, int *fd) noexcept nogil:
    """Open a new file that has no name in any folder; only its owner may open it."""
    return ndx_open_unnamed(directory, fd)


cdef int file_reserve(int fd, int64_t offset, size_t nbytes) noexcept nogil:
    """Reserve disk space for a range, and keep its content; the file may grow."""
    return ndx_file_reserve(fd, offset, nbytes)


cdef int file_punch(int fd, int64_t offset, size_t nbytes) noexcept nogil:
    """Give the disk space of a range back; the range then reads as zeros."""
    return ndx_file_punch(fd, offset, nbytes)


cdef int file_zero(int fd, int64_t offset, size_t nbytes) noexcept nogil:
    """Let a range read as zeros, without writing them; its space stays reserved."""
    return ndx_file_zero(fd, offset, nbytes)


cdef int map_file(int fd, int64_t offset, size_t nbytes, size_t step, bint writable,
                  bint shared, bint own_copy_in_child, char **out) noexcept nogil:
    """Map a range of a file; `offset` is a multiple of the page size.

    The address is a multiple of `step`, a power of two. The file must stay open while
    it is mapped. A forked child shares the mapping or, with `own_copy_in_child`, has a
    private copy.
    """
    cdef void *ptr = NULL
    cdef int status = ndx_map_file(
        fd, offset, nbytes, step, writable, shared, &ptr)
    if status == 0:
        status = ndx_range_add(ptr, nbytes, fd, offset, shared, own_copy_in_child)
        if status != 0:
            ndx_unmap(ptr, nbytes)
    out[0] = <char *>ptr
    return status


cdef void unmap_file(char *ptr, size_t nbytes) noexcept nogil:
    """Undo `map_file`."""
    ndx_range_remove(ptr)
    ndx_unmap(ptr, nbytes)


cdef int sync_file(char *ptr, size_t nbytes, int fd) noexcept nogil:
    """Wait until all writes to a shared mapping are on disk."""
    return ndx_sync(ptr, nbytes, fd)


cdef int remap_private(char *ptr, size_t nbytes, int fd) noexcept nogil:
    """Back a private mapping by a file of the same content, which frees its memory.

    The entry in the table of mappings is unchanged.
    """
    return ndx_remap_private(ptr, nbytes, fd)


cdef void unlock_file(int fd) noexcept nogil:
    """Give up a lock of `flock`, which a forked child may hold, too."""
    ndx_unlock_file(fd)


cdef void close_file(int fd) noexcept nogil:
    ndx_close_file(fd)


cdef int file_space(const char *path, uint64_t *idle, uint64_t *total) noexcept nogil:
    """Set the free and the total bytes of the file system of a path."""
    return ndx_space(path, idle, total)


cdef bint find_mapping(const void *ptr, Mapped *out) noexcept nogil:
    """Find the mapping that contains an address; describe it in `out`, if not NULL."""
    cdef ndx_range found
    if not ndx_range_find(ptr, &found):
        return False
    if out == NULL:
        return True
    out.start = <char *>found.start
    out.end = <char *>found.end
    out.offset = found.offset
    out.fd = found.fd
    out.shared = found.shared
    return True


cdef bint is_lost(const void *ptr, size_t nbytes) noexcept nogil:
    """Whether a page of this range was lost, and replaced by zeros."""
    return ndx_range_lost(ptr, nbytes)


cdef int restore_lost(void *ptr, size_t nbytes) noexcept nogil:
    """Map a shared file again over whole pages, whose content is not needed."""
    return ndx_range_restore(ptr, nbytes)


cdef void enter_files() noexcept nogil:
    """Let no other thread freeze mappings until `leave_files`; can be nested.

    For code that uses a file by its descriptor, and relies on the mapping being a
    shared one. Waits for a thread that freezes mappings.
    """
    ndx_files_enter()


cdef void leave_files() noexcept nogil:
    ndx_files_leave()


cdef void begin_freezing() noexcept nogil:
    """Wait for the threads that have entered files; let others wait."""
    ndx_freeze_begin()


cdef void end_freezing() noexcept nogil:
    ndx_freeze_end()


cdef int freeze_mapping(char *start) noexcept nogil:
    """Keep later writes to a mapping out of its file, for ever.

    Call it between `begin_freezing` and `end_freezing`.
    """
    return ndx_range_freeze(start)


def make_private(size_t address) -> None:
    """Keep this process's later writes to a mapping out of its file, for ever.

    Parameters
    ----------
    address : int
        Of any byte in the mapping.

    Raises
    ------
    OSError
        If the system refuses.
    """
    cdef Mapped mapped
    cdef int status
    if not find_mapping(<const void *>address, &mapped):
        raise ValueError(f"no file is mapped at {address:#x}")
    # A thread that uses the files may need the GIL before it leaves them.
    with nogil:
        begin_freezing()
    status = freeze_mapping(mapped.start)
    end_freezing()
    if status != 0:
        raise OSError(status, os.strerror(status))


def forget_mapping(size_t address) -> None:
    """Take a mapping out of the table, which then needs its file's descriptor no more.

    For a file in memory that nobody can open: none of its pages can be lost.

    Parameters
    ----------
    address : int
        Of any byte in the mapping.
    """
    ndx_range_remove(<void *>address)


cdef str mapping_name(const void *ptr):
    """Return the path of the file that is mapped at an address, if it is known."""
    cdef Mapped mapped
    if not find_mapping(ptr, &mapped):
        return "a file"
    try:
        return os.readlink(f"/proc/self/fd/{mapped.fd}").removesuffix(" (deleted)")
    except OSError:
        return "a file"


# ---- Files whose mapping arrays and arenas own ---------------------------------------
# This module knows nothing of the content of files: `_files.replace` makes and replaces
# files, `_files.npy` reads and writes their headers.

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
            status = map_file(self.fd, 0, nbytes, 1, writable, shared,
                              own_copy_in_child, &ptr)
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
