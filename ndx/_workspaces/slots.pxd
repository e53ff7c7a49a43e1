from ndx._arenas.arena cimport Arena
from ndx._lib.sizing cimport Sizing
from ndx.backends.base cimport Backend
from ndx.backends.persistent_file cimport FileBackend

# The arenas on one backend: one, or one for each slot of a ring.
cdef class Row:
    cdef Backend backend
    cdef list arenas
    cdef Py_ssize_t turn             # slot of the current or last cycle
    cdef bint has_memory             # the arenas have their initial size

    cdef int next(self) noexcept
    cdef int drop(self) except -1

cdef class Slots:
    cdef str name
    cdef object config
    cdef FileBackend file            # holds a persistent arena; usually None
    cdef readonly Sizing sizing
    cdef Row now                     # row of the current or last cycle
    cdef dict rows                   # by backend, with `now`; most recently used last
    cdef dict past                   # counters of destroyed arenas
    cdef Py_ssize_t count
    cdef bint ring
    cdef bint gave_back

    cdef Arena prepare(self, Backend backend)
    cdef Row on(self, Backend backend)
    cdef int use(self, Row row) except -1
    cdef int get_memory(self, Row row) except -1
    cdef Arena current(self)
    cdef Row row(self)
    cdef list all(self)
    cdef int fit(self) except -1
    cdef int reserve(self, Backend backend, size_t nbytes) except -1
    cdef bint is_read(self)
    cdef size_t size(self)
    cdef int give_back(self) except -1
    cdef int drop_row(self, Row row) except -1

cdef dict counters_of(Slots slots, bint is_open)
