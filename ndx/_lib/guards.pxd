from cpython.object cimport PyObject
from libc.string cimport memcmp, memset

cdef enum:
    GUARD = 64               # bytes of a guard, at least
    SHOWN = 16               # bytes that are kept of what was written
    GUARD_BYTE = 0xFD        # around a range, while it is in use
    DEAD_BYTE = 0xDD         # in memory that was given back
    FRESH_BYTE = 0xFF        # in memory that was asked for, and not yet written: NaN

# What is done about damage: the values of ``NDX_DEBUG_MEMORY``.
cdef enum Mode:
    OFF
    WARN
    RAISE
    ABORT

# Where it was found.
cdef enum Place:
    BEFORE                   # in the guard before a range
    BEHIND
    FREED                    # in memory that was given back

# Bytes that something wrote to which nothing may write.
cdef struct Damage:
    size_t address           # of the range
    size_t nbytes
    Py_ssize_t first         # changed bytes, from the range's first byte on
    Py_ssize_t last
    PyObject *origin         # of the range: str, strong; or NULL
    unsigned char place
    unsigned char found[SHOWN]

ctypedef unsigned int (*FindMaker)() noexcept

cdef struct Guards:
    Mode mode                # set once, at import
    FindMaker find_maker     # NULL: nobody asks who makes a range

cdef Guards guards

cdef void find_change(const char *ptr, size_t nbytes, unsigned char byte,
                      Damage *out) noexcept nogil
cdef object described(const Damage *damage, object backend, object workspace)
cdef void tell(list damages) noexcept
cdef void note_maker(const char *ptr) noexcept
cdef void forget_maker(const char *ptr) noexcept
cdef int set_makers(FindMaker find_maker, object stack_of) except -1


cdef inline bint is_filled(const char *ptr, size_t nbytes,
                           unsigned char byte) noexcept nogil:
    """Whether all bytes of a range have a value; the range is not empty."""
    return <unsigned char>ptr[0] == byte and memcmp(ptr, ptr + 1, nbytes - 1) == 0


cdef inline bint check_fill(char *ptr, size_t nbytes, unsigned char byte,
                            Damage *out) noexcept nogil:
    """Whether something wrote to a range that was filled; it is then filled again.

    `first` and `last` are set as offsets from `ptr`.
    """
    if is_filled(ptr, nbytes, byte):
        return False
    find_change(ptr, nbytes, byte, out)
    memset(ptr, byte, nbytes)
    return True
