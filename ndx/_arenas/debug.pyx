"""Patterns in memory that show writes and reads out of bounds."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.string cimport memset

from ndx._blocks.block cimport Block, BlockParent, Note, block_note, block_origin
from ndx._lib.guards cimport (
    ABORT, BEHIND, GUARD, GUARD_BYTE, WARN, Damage, check_fill, described, guards,
)
from ndx.backends.base cimport Backend

from ndx._lib.call_site import current_line
from ndx._lib.device import find_kind
from ndx._lib.errors import WorkspaceError
from ndx._lib.guards import act


cdef void set_guard(char *end) noexcept nogil:
    """Fill the guard bytes behind a block."""
    memset(end, GUARD_BYTE, GUARD)


cdef bint is_damaged(Block *block, Damage *out) noexcept:
    """Whether something wrote behind a guarded block; the guard is mended.

    The caller owns the block's origin.
    """
    if block.nbytes == 0 or block.memory_owner != NULL or not check_fill(
            block.ptr + block.nbytes, GUARD, GUARD_BYTE, out):
        return False
    out.address = <size_t>block.ptr
    out.nbytes = block.nbytes
    out.first += block.nbytes
    out.last += block.nbytes
    out.place = BEHIND
    out.origin = block_origin(block)
    Py_XINCREF(out.origin)
    return True


cdef class Watcher(BlockParent):
    """Base class of arenas: records where blocks were made, checks guard bytes."""

    cdef int record_line(self, Block *block) except -1:
        """Take note of which line makes a block, in debug mode."""
        where = current_line()
        cdef Note *note = block_note(block)
        if note == NULL:
            raise MemoryError("no memory for the line that makes an array")
        Py_INCREF(where)
        note.origin = <PyObject *>where

    cdef void inspect(self, Block *block) noexcept:
        """Check the guard bytes behind a block, in debug mode.

        Damage is only noted: its text is written later. The block is half-way out of
        its arena, and a new object may start the collector, which may free the block.
        """
        cdef Damage other
        if self.damaged < MOST_TOLD:
            self.damaged += is_damaged(block, &self.damage[self.damaged])
        elif is_damaged(block, &other):
            # A str, which the block has, too: nothing runs.
            Py_XDECREF(other.origin)
            self.damaged += 1

    cdef int raise_damage(self) except -1:
        """Raise the error that reports, once, the writes beyond the ends of blocks."""
        cdef Damage *found
        cdef Py_ssize_t i
        cdef list told = [], damages = []
        try:
            for i in range(min(self.damaged, MOST_TOLD)):
                found = &self.damage[i]
                made = "" if found.origin == NULL else \
                    f"made at {<object>found.origin}, "
                told.append(f"an array of {found.nbytes} bytes, {made}at its end + "
                            f"{found.first - found.nbytes}")
                damages.append(described(
                    found, self.owning_backend().name, self.clock.name))
            if self.damaged > MOST_TOLD:
                told.append(f"{self.damaged - MOST_TOLD} more")
        finally:
            self.forget_damage()
        if guards.mode == WARN or guards.mode == ABORT:
            act(damages)
            return 0
        raise WorkspaceError(
            f"in workspace {self.clock.name!r} something wrote past the end of "
            + "; of ".join(told) + ". The scope has ended all the same. Look for "
            "foreign code (C, Cython, Numba, ctypes) that got the address of it.")

    cdef void forget_damage(self) noexcept:
        cdef Py_ssize_t i
        for i in range(min(self.damaged, MOST_TOLD)):
            # A str: nothing runs at its end.
            Py_XDECREF(self.damage[i].origin)
        self.damaged = 0

    def __dealloc__(self):
        self.forget_damage()


cdef int check_policies(str name, Backend backend, config, home) except -1:
    """Refuse policies by which the CPU would touch a device's memory, and others."""
    if not backend.device_number:
        for policy, wanted in (("spill='host'", config.spill == "host"),
                               ("mirror='host'", config.mirror == "host")):
            if wanted:
                raise WorkspaceError(
                    f"workspace {name!r}: {policy} is for the memory of a GPU, and "
                    f"that of {backend.name!r} is the host's already")
        return 0
    if config.mirror == "host" and find_kind(backend.device).staging == "host":
        raise WorkspaceError(
            f"workspace {name!r}: mirror='host' is for devices that copy from "
            f"page-locked memory, not for {backend.device!r}")
    for policy, wanted in (("debug=True", config.debug), ("path=", home is not None)):
        if wanted:
            raise WorkspaceError(
                f"workspace {name!r}: {policy} is for memory that the CPU can reach, "
                f"not for that of {backend.name!r}")
    return 0
