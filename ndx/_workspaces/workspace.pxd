from libc.stdint cimport uint64_t

from ndx._arenas.arena cimport Arena
from ndx._context.context cimport Entry, Scope
from ndx._lib.free_threading cimport (
    NDX_FREE_THREADED, ndx_load_count, ndx_set_time, ndx_swap_time,
)
from ndx._lib.interpreter cimport Here, PyThreadState_Get, PyThreadState_GetID
from ndx._workspaces.slots cimport Slots
from ndx.backends.base cimport Backend
from ndx.backends.persistent_file cimport FileBackend

# One of the workspaces of a name: the one in the registry (the first), or a sibling.
cdef class Member(Scope):
    cdef object first                # weak reference to the first; None: it is this
    cdef list siblings               # only of the first; may be None
    cdef int place                   # number in the family; 0: the first
    cdef bint related                # it has siblings, or is one

    cdef tuple family(self)
    cdef Member entered_here(self)
    cdef bint is_entered_here(self)
    cdef int add_sibling(self, Member made) except -1
    cdef int leave_family(self) except -1
    cdef int stand_alone(self) except -1

cdef class Workspace(Member):
    cdef readonly str name
    cdef readonly object config      # type: WorkspaceConfig
    cdef object base                 # default config at the time it was made
    cdef bint follows                # it uses the current backend
    cdef Slots slots                 # its arenas
    cdef readonly bint bypassed      # made in the debug mode "bypass": no arena
    cdef FileBackend file            # holds a persistent arena; usually None
    cdef Arena arena                 # of the current or last cycle
    cdef uint64_t owner_id           # id of the owner thread
    cdef object owner                # weak reference to the owner thread
    cdef object registry             # weak reference to the registry that has its name
    cdef Py_ssize_t depth            # nested entries, borrowing included
    cdef uint64_t busy               # thread that starts or ends a cycle, or none: 0
    cdef Entry spare                 # of the outermost scope, reused each time
    cdef void *last_home             # the contextvars.Context of the last entry
    cdef object task                 # weak reference to its task; None outside of tasks
    cdef object __weakref__

    cdef int claim(self, str what) except -1
    cdef int note_task(self, const Here *here) except -1
    cdef int start(self) except -1
    cdef int end_cycle(self, Backend outside) except -1
    cdef Workspace own(self)
    cdef Workspace enter_family(self, const Here *here)
    cdef Workspace new_sibling(self)
    cdef Workspace enter(self, const Here *here)
    cdef int check_owner(self, const Here *here) except -1
    cdef int claim_closed(self, str what) except -1
    cdef list entries(self)
    cdef int end_abandoned(self, str what) except -1

cdef Workspace make_workspace(str name, object backend, object config, bint bypassed,
                              Workspace like)
cdef Workspace workspace_of(Entry entry)


cdef inline Py_ssize_t depth_of(Workspace workspace) noexcept:
    """Return its `depth`, in any thread: others enter and leave."""
    return ndx_load_count(&workspace.depth)

cdef inline uint64_t claimant() noexcept:
    return PyThreadState_GetID(PyThreadState_Get()) if NDX_FREE_THREADED else 1

cdef inline bint try_claim(Workspace workspace) noexcept:
    return ndx_swap_time(&workspace.busy, 0, claimant())

cdef inline void unclaim(Workspace workspace) noexcept:
    ndx_set_time(&workspace.busy, 0)
