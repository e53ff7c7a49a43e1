from ndx._arenas.arena cimport Arena
from ndx._arenas.sizing cimport Sizing
from ndx.backends.base cimport Backend
from ndx.backends.persistent_file cimport FileBackend

# The arenas on one backend: one, or one for each slot of a ring.
cdef class Row:
    cdef Backend backend
    cdef list arenas
    cdef Py_ssize_t turn             # the slot of the current or last cycle
    cdef bint has_memory             # the arenas have the size that was given

    cdef int next(self) noexcept
    cdef int drop(self) except -1

cdef class Slots:
    cdef str name
    cdef object config
    cdef FileBackend file            # that the arena lies in; usually None
    cdef readonly Sizing sizing
    cdef Row now                     # of the current or last cycle
    cdef dict rows                   # by backend, `now` too; the last used is last
    cdef dict past                   # counters of arenas that are gone
    cdef Py_ssize_t count
    cdef bint ring
    cdef bint gave_back

    cdef Arena prepare(self, Backend backend)
    cdef Row on(self, Backend backend)
    cdef int use(self, Row row) except -1
    cdef int get_memory(self, Row row) except -1
    cdef Arena current(self)
    cdef list all(self)
    cdef int fit(self) except -1
    cdef int reserve(self, Backend backend, size_t nbytes) except -1
    cdef bint is_read(self)
    cdef size_t size(self)
    cdef int give_back(self) except -1
    cdef int drop_row(self, Row row) except -1
