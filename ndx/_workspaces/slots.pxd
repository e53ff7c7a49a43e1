from ndx._arenas.base cimport Arena
from ndx._arenas.sizing cimport Sizing
from ndx.backends.base cimport Backend
from ndx.backends.file cimport FileBackend

cdef class Slots:
    cdef str name
    cdef object config
    cdef FileBackend file            # that the arena lies in; usually None
    cdef readonly Sizing sizing
    cdef readonly Backend backend    # of the current or last cycle
    cdef list arenas                 # on it: one, or one for each slot of a ring
    cdef Py_ssize_t turn             # the slot of the current or last cycle
    cdef dict kept                   # arenas and turn on other backends
    cdef Py_ssize_t count
    cdef bint ring
    cdef bint has_memory             # the arenas have the size that was given
    cdef bint gave_back

    cdef int use(self, Backend backend) except -1
    cdef int get_memory(self) except -1
    cdef Arena current(self)
    cdef Arena next(self)
    cdef list all(self)
    cdef int fit(self) except -1
    cdef bint is_read(self)
    cdef size_t size(self)
    cdef int give_back(self) except -1
