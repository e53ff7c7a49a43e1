"""An arena in a file: each cycle finds what the one before left at a place."""

from ndx._arenas.bump cimport BumpArena
from ndx._blocks.block cimport Block
from ndx.backends.persistent_file cimport FileBackend

from ndx._lib.errors import WorkspaceError


cdef class FileArena(BumpArena):
    """An arena whose memory is a file; what has no room in it spills to a backend.

    The same requests in the same order get the same places, in each cycle and each
    process. So nothing but arrays may take a place, and nothing but arrays is written.
    """

    def __cinit__(self, *args):
        self.guarded = False

    cdef int prepare(self) except -1:
        (<FileBackend>self.home).check_process()
        if self.is_read():
            raise WorkspaceError(
                f"workspace {self.clock.name!r} can't be entered: a NumPy view, a "
                "buffer or a DLPack tensor of an array of a past cycle is alive, "
                "around which new arrays would not find what is theirs in "
                f"{(<FileBackend>self.home).path!r}. Drop it, or take a copy of it")
        return BumpArena.prepare(self)

    cdef int fit(self) except -1:
        # The file can't be mapped a second time, at a larger size, while it is read.
        return 0 if self.is_read() else BumpArena.fit(self)

    cdef int resize(self, size_t size) except -1:
        if self.is_read():
            raise WorkspaceError(
                f"workspace {self.clock.name!r} can't be enlarged: a NumPy view, a "
                "buffer or a DLPack tensor of an array of a past cycle is alive. Drop "
                "it, or take a copy of it")
        return BumpArena.resize(self, size)

    cdef bint is_read(self) noexcept:
        """Whether any block of a past cycle still has a place in the file."""
        cdef Block *block = self.pinned.next
        while block != &self.pinned:
            if self.holds(block):
                return True
            block = block.next
        return False
