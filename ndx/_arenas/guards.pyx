"""Patterns in memory that show who writes or reads where it may not."""

from libc.string cimport memset

from ndx._errors import WorkspaceError

cdef enum:
    GUARD_BYTE = 0xFD        # behind a block, while it lives
    DEAD_BYTE = 0xDD         # in reclaimed memory


cdef void set_guard(char *end) noexcept nogil:
    """Fill the guard bytes behind a block."""
    memset(end, GUARD_BYTE, GUARD)


cdef Py_ssize_t check_guard(char *end) noexcept nogil:
    """Return the first guard byte that was written to, and mend it; -1: none was."""
    cdef Py_ssize_t i
    for i in range(GUARD):
        if <unsigned char>end[i] != GUARD_BYTE:
            set_guard(end)
            return i
    return -1


cdef void fill_dead(char *ptr, size_t nbytes) noexcept nogil:
    """Fill reclaimed memory."""
    memset(ptr, DEAD_BYTE, nbytes)


cdef object damage_error(str name, list damage):
    return WorkspaceError(
        f"in workspace {name!r} something wrote past the end of "
        + "; of ".join(damage) + ". The scope has ended all the same. Look for "
        "foreign code (C, Cython, Numba, ctypes) that got the address of it.")


cdef int check_for_device(str name, str backend, config, home) except -1:
    """Refuse policies by which the CPU would touch a device's memory."""
    for policy, wanted in (("debug=True", config.debug), ("path=", home is not None),
                           ("spill='mmap'", config.spill == "mmap")):
        if wanted:
            raise WorkspaceError(
                f"workspace {name!r}: {policy} is for memory that the CPU can reach, "
                f"not for that of {backend!r}")
    return 0
