"""Mappings of files: space on disk, and what becomes of pages that can't be read.

A page of a mapping can be refused at any access: another process cut the file short,
or the disk failed. The system then sends SIGBUS, which ends a process. Here a handler
maps zeros over the page and counts the loss (`losses`), so that who has just computed
can look whether it was with real data (`is_lost`), and raise `MappedFileError`.
"""

import os

from libc.stdint cimport int64_t, uint64_t, uintptr_t

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
    int ndx_ranges_at_fork()
    int ndx_open_unnamed(const char *directory, int *fd)
    int ndx_file_reserve(int fd, int64_t offset, size_t nbytes)
    int ndx_file_punch(int fd, int64_t offset, size_t nbytes)
    int ndx_map_file(int fd, int64_t offset, size_t nbytes, int writable, int shared,
                     void **out)
    void ndx_unmap(void *ptr, size_t nbytes)
    int ndx_sync(void *ptr, size_t nbytes, int fd)
    int ndx_remap_private(void *ptr, size_t nbytes, int fd)
    void ndx_close_file(int fd)
    int ndx_space(const char *path, uint64_t *idle, uint64_t *total)

losses = &ndx_losses

if ndx_ranges_at_fork() != 0:
    raise MemoryError("ndx: no memory to register its fork handlers")


cdef int open_unnamed(const char *directory, int *fd) noexcept nogil:
    """Open a new file for its owner alone, which no folder shows."""
    return ndx_open_unnamed(directory, fd)


cdef int file_reserve(int fd, int64_t offset, size_t nbytes) noexcept nogil:
    """Have space on disk for a range, which keeps its content; the file may grow."""
    return ndx_file_reserve(fd, offset, nbytes)


cdef int file_punch(int fd, int64_t offset, size_t nbytes) noexcept nogil:
    """Give the space of a range back to the disk: it reads as zeros."""
    return ndx_file_punch(fd, offset, nbytes)


cdef int map_file(int fd, int64_t offset, size_t nbytes, bint writable, bint shared,
                  bint own_copy_in_child, char **out) noexcept nogil:
    """Map a range of a file, which must stay open as long; `offset` is of a page.

    A forked child shares it or, `own_copy_in_child`, has what it writes to itself.
    """
    cdef void *ptr = NULL
    cdef int status = ndx_map_file(fd, offset, nbytes, writable, shared, &ptr)
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
    """Wait until what was written to a shared mapping is on disk."""
    return ndx_sync(ptr, nbytes, fd)


cdef int remap_private(char *ptr, size_t nbytes, int fd) noexcept nogil:
    """Let a private mapping go on with a file of the same content: its memory is free.

    The table's entry stays as it is.
    """
    return ndx_remap_private(ptr, nbytes, fd)


cdef void close_file(int fd) noexcept nogil:
    ndx_close_file(fd)


cdef int file_space(const char *path, uint64_t *idle, uint64_t *total) noexcept nogil:
    """Say how many bytes the file system of a path has."""
    return ndx_space(path, idle, total)


cdef bint find_mapping(const void *ptr, Mapped *out) noexcept nogil:
    """Describe the mapping (out may be NULL) that an address is in, if it is in one."""
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
    """Whether a page of this range was lost, and is zeros now."""
    return ndx_range_lost(ptr, nbytes)


cdef int restore_lost(void *ptr, size_t nbytes) noexcept nogil:
    """Map a shared file again over whole pages, of whose content nothing is needed."""
    return ndx_range_restore(ptr, nbytes)


cdef str mapping_name(const void *ptr):
    """Return the path of the file that is mapped at an address, as far as known."""
    cdef Mapped mapped
    if not find_mapping(ptr, &mapped):
        return "a file"
    try:
        return os.readlink(f"/proc/self/fd/{mapped.fd}").removesuffix(" (deleted)")
    except OSError:
        return "a file"
