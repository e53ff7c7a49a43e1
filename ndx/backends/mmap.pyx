"""Memory in files, for arrays larger than RAM.

Each range of the pool is an unnamed file: no other process can open it, and the system
removes it however the process ends. Address space is reserved with the range. Space on
disk is reserved when memory is first handed out, so that a full disk raises an error
at that point. Idle space is given back as a hole in the file.
"""

cimport cython

import os

from cpython.exc cimport PyErr_SetObject
from libc.errno cimport EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM, ENOSPC
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memset

from ndx._files.mapping cimport (
    Mapped, any_lost, begin_freezing, close_file, end_freezing, file_punch,
    file_reserve, file_space, file_zero, find_mapping, freeze_mapping, is_lost,
    map_file, open_unnamed, restore_lost, unmap_file,
)
from ndx.backends._pool.index cimport PoolSegment
from ndx.backends._pool.store cimport ndx_lock_acquire, ndx_lock_release
from ndx.backends._pool.trim cimport pool_shrink
from ndx.backends.base cimport ALLOCATED, Memory
from ndx.backends.pooled cimport PooledBackend
from ndx.backends.source cimport NO_RANGE, NO_ROOM, RAISED, RESERVED, Source

from ndx._lib.sizes import parse_size
from ndx._lib.system import address_space_is_rationed, default_directory
from ndx.backends._pool.options import OptionsSignature, PoolOptions, options_class

__all__ = ["FileSource", "MmapBackend"]

cdef extern from *:
    """
    #include <errno.h>
    /* Where there are no quotas, a number that no error has. */
    #if !defined(EDQUOT)
    #define EDQUOT (-1)
    #endif
    """

cdef extern from "ndx/lock.h" nogil:
    long ndx_process_id()

cdef extern from "ndx/internal/arithmetic.h" nogil:
    size_t ndx_round_up(size_t nbytes, size_t step)
    size_t ndx_round_down(size_t nbytes, size_t step)

cdef extern from "ndx/internal/poison.h":
    bint NDX_POISONS

cdef enum:
    # Unit in which space is requested from a file system and given back. Most have
    # pages of 4 KiB, but each request takes several microseconds.
    STEP = 65536
    # Zeros from here on are made by the file system, which writes none. Smaller ones
    # cost less to write than to map again.
    ZERO_FROM = 33554432


cdef class FileSource(Source):
    """Files without names in a directory.

    Parameters
    ----------
    directory : str or os.PathLike
        A folder that exists.
    """

    def __cinit__(self, directory: TextPath, *args: Any, **options: Any) -> None:
        self.directory = os.path.abspath(os.fsdecode(directory))
        self.place = self.directory
        self.resource = ("disk", disk_of(self.directory))
        self.path_bytes = os.fsencode(self.directory)
        self.path = self.path_bytes
        self.process = ndx_process_id()
        self.granularity = STEP
        self.paged = True
        self.zeroed = True
        self.unattended = True
        self.budgeted = False
        self.fork_safe = False
        # ASan needs shadow memory for an eighth of the address space.
        rationed = sizeof(void *) < 8 or address_space_is_rationed() or NDX_POISONS
        self.extent = (1 << 26) if rationed else (1 << 34)

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        cdef int fd = -1
        cdef int status = open_unnamed(self.path, &fd)
        if status != 0:
            return refuse(self, status)
        if whole:
            status = file_reserve(fd, 0, nbytes)
        if status == 0:
            status = map_file(
                fd, 0, nbytes, self.granularity, True, True, True, <char **>ptr)
        if status != 0:
            close_file(fd)
            return refuse(self, status)
        cookie[0] = <void *><uintptr_t>fd
        return RESERVED

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        unmap_file(<char *>ptr, nbytes)
        close_file(<int><uintptr_t>cookie)

    cdef int commit(self, void *ptr, size_t nbytes) noexcept nogil:
        cdef Mapped mapped
        cdef int status
        find_mapping(ptr, &mapped)
        status = file_reserve(mapped.fd, <char *>ptr - mapped.start, nbytes)
        if status == 0 and any_lost() and is_lost(ptr, nbytes):
            status = restore_lost(ptr, nbytes)
        if status == 0:
            return RESERVED
        # A file system may have given a part before it found that it has not the rest.
        file_punch(mapped.fd, <char *>ptr - mapped.start, nbytes)
        return refuse(self, status)

    cdef bint purge(self, void *ptr, size_t nbytes) noexcept nogil:
        cdef Mapped mapped
        # A forked child has the file of its parent.
        if self.frozen or ndx_process_id() != self.process \
                or not find_mapping(ptr, &mapped):
            return False
        return file_punch(mapped.fd, <char *>ptr - mapped.start, nbytes) == 0

    cdef void clear(self, void *ptr, size_t nbytes, size_t stream) noexcept nogil:
        cdef Mapped mapped
        cdef size_t start = <size_t>ptr
        cdef size_t low = ndx_round_up(start, STEP)
        cdef size_t high = ndx_round_down(start + nbytes, STEP)
        if nbytes < ZERO_FROM or self.frozen or ndx_process_id() != self.process \
                or not find_mapping(ptr, &mapped) or not mapped.shared \
                or file_zero(mapped.fd, <char *>low - mapped.start, high - low) != 0:
            memset(ptr, 0, nbytes)
            return
        memset(ptr, 0, low - start)
        memset(<void *>high, 0, start + nbytes - high)

    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil:
        cdef uint64_t free_bytes = 0, all_bytes = 0
        if file_space(self.path, &free_bytes, &all_bytes) != 0:
            return False
        total[0] = <size_t>all_bytes
        if idle != NULL:
            idle[0] = <size_t>free_bytes
        return True


cdef int refuse(FileSource self, int status) noexcept nogil:
    """Return the status for an error of the file system; raise if it has none."""
    if status in (ENOSPC, EDQUOT, EFBIG):
        return NO_ROOM
    if status == ENOMEM:
        return NO_RANGE
    with gil:
        set_error(self, status)
    return RAISED


cdef int set_error(FileSource self, int status) noexcept:
    try:
        advice = "to hold memory, a folder must exist and be writable: " \
            "ndx.use('mmap', directory=...)"
        if status in (EMFILE, ENFILE):
            advice = "each large range is a file: raise the limit (ulimit -n)"
        raise OSError(
            status, f"{os.strerror(status)}, when ndx made room for an array in a "
            f"file; {advice}", self.directory)
    except BaseException as error:
        PyErr_SetObject(type(error), error)
    return 0


def disk_of(directory):
    """Return the file system of a folder, as a number; the folder if it can't tell."""
    try:
        return os.stat(directory).st_dev
    except OSError:
        return directory


@options_class
class MmapOptions(PoolOptions):
    """The options of a pool of files."""

    directory: str | os.PathLike[str] | None = None
    keep_idle: int | str = "256MiB"


@cython.binding(False)
@cython.embedsignature(True)
cdef class MmapBackend(PooledBackend):
    """Memory in files of a directory: it may be larger than the machine's.

    Pages are in the machine's memory while they are used; the system writes the others
    to their files, and reads them again. The files have no names, belong to the user
    alone, and end with the process, however that ends.

    Parameters
    ----------
    directory : str or os.PathLike, optional
        Where the files are: a folder on a fast disk with much room. Default: that of
        ``TMPDIR``, or ``/var/tmp``.
    limit : int or str, optional
        Upper bound on the bytes of disk that are held, idle ones included, such as
        ``"200GiB"`` or, of the whole file system, ``"60%"``; None for no bound.
    keep_idle : int or str, default "256MiB"
        Bytes that the pool keeps when arrays are freed. Space beyond it is given back
        at once, so that the system does not write bytes that will not be read.
    pool, initial, idle_release, reserve_fraction, fallback, cutoff : optional
        As for `ndx.backends.PooledBackend`.

    Raises
    ------
    FileNotFoundError, NotADirectoryError, PermissionError
        If `directory` is no folder, or files can't be made in it.

    Notes
    -----
    A process that was forked has the arrays as copies of its own, and gets no new ones:
    its parent sees nothing of what it writes. Pages that the child has not written yet
    are those of the parent's file, and show what the parent writes there, also as zeros
    or as other arrays when it has freed them: `freeze` before the fork keeps them. If a
    child may not have as much memory as there is in the files (``ulimit -d``), it can
    only read them, and ends where it writes. The limit of the process
    (`ndx.memory.set_limit`) is for memory; it does not count files.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use("mmap", limit="1GiB"):
    ...     x = ndx.zeros((1000, 1000))
    >>> x.backend.name
    'mmap'
    """

    _options = MmapOptions
    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[MmapKeywords]) -> None:
        options = self.take_options(given)
        self.name = "mmap"
        self.keep_idle = parse_size(options.keep_idle, "keep_idle")
        self.setup(file_source(options.directory), options)

    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil:
        cdef int status
        while True:
            status = PooledBackend.allocate(self, nbytes, zero, out)
            if status != ALLOCATED:
                return status
            # A range that can't be read is never handed out again: try another.
            if not any_lost() or not is_lost(out.ptr, nbytes):
                return ALLOCATED

    cdef void release(self, Memory *memory) noexcept nogil:
        if any_lost() and is_lost(memory.ptr, memory.nbytes):
            return
        PooledBackend.release(self, memory)
        if self.pool.idle() > self.keep_idle:
            pool_shrink(self.pool, self.pool.idle() - self.keep_idle, False)

    @property
    def directory(self) -> str:
        """The folder that the files are in."""
        return (<FileSource>self.pool.source).directory

    def freeze(self) -> None:
        """Let a child that is forked next have the arrays as they are now.

        The files are not written any more, by no process: what is written to their
        arrays from now on is in the memory of the process that writes, and space of
        arrays that are freed is not given back before all of a file is free. Use
        another backend for new arrays.

        Raises
        ------
        OSError
            If the system refuses.
        """
        cdef PoolSegment *segment
        cdef int status = 0
        (<FileSource>self.pool.source).frozen = True
        # A thread that uses the files may need the GIL before it leaves them.
        with nogil:
            begin_freezing()
        # The GIL keeps `os.fork` out, which takes the pool's lock and that of the
        # table of mappings in the other order.
        ndx_lock_acquire(&self.pool.lock)
        segment = self.pool.segments
        while segment != NULL and status == 0:
            status = freeze_mapping(segment.ptr)
            segment = segment.next
        ndx_lock_release(&self.pool.lock)
        end_freezing()
        if status != 0:
            raise OSError(status, os.strerror(status), self.directory)


cdef FileSource file_source(object directory):
    """Return a source of files in a folder, the default one for None, or raise."""
    if directory is None:
        directory = default_directory()
    check_directory(directory)
    return FileSource.__new__(FileSource, directory)


cdef int check_directory(object directory) except -1:
    """Raise the OSError that says why no files can be made in a folder."""
    cdef int fd = -1
    cdef bytes path = os.fsencode(directory)
    cdef int status = open_unnamed(path, &fd)
    if status == 0:
        close_file(fd)
        return 0
    advice = "directory= must be a folder in which files can be made"
    if status in (EMFILE, ENFILE):
        advice = "close files, or raise the limit (ulimit -n)"
    raise OSError(status, f"{os.strerror(status)}; {advice}", os.fspath(directory))
