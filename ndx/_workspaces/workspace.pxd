from libc.stdint cimport uint64_t

from ndx._arenas.arena cimport Arena
from ndx._context.context cimport Context, Entry, Scope
from ndx._lib.interpreter cimport Here
from ndx._workspaces.siblings cimport Member
from ndx._workspaces.slots cimport Slots
from ndx.backends.persistent_file cimport FileBackend

cdef class Workspace(Member):
    cdef readonly str name
    cdef readonly object config      # type: WorkspaceConfig
    cdef object base                 # the default config of when it was made
    cdef bint follows                # it takes the backend that is current
    cdef Slots slots                 # its arenas
    cdef readonly bint bypassed      # made in the debug mode "bypass": no arena
    cdef FileBackend file            # that the arena lies in; usually None
    cdef Arena arena                 # of the current or last cycle
    cdef uint64_t owner_id           # of the thread that it belongs to
    cdef object owner                # weak reference to that
    cdef object registry             # weak reference to what has it by its name
    cdef Py_ssize_t depth            # how often it is entered, or borrowed, now
    cdef bint busy                   # a cycle starts or ends
    cdef Entry spare                 # of the outermost scope, used again each time
    cdef void *last_home             # the contextvars.Context of the last entry
    cdef object task                 # of that, a weak reference; None outside of tasks
    cdef object __weakref__

    cdef int note_task(self, const Here *here) except -1
    cdef int start(self, Context context) except -1
    cdef Workspace own(self)
    cdef Workspace enter_family(self, Context context, const Here *here)
    cdef Workspace new_sibling(self)
    cdef Workspace enter(self, Context context, const Here *here)
    cdef int check_owner(self, const Here *here) except -1
    cdef int check_closed(self, str what) except -1
    cdef int check_idle(self, str what) except -1
    cdef int end_abandoned(self, str what) except -1

cdef Workspace make_workspace(str name, object backend, object config, bint bypassed,
                              Workspace like)
