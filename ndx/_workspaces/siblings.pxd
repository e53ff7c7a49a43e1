from ndx._context.context cimport Scope

# One of the workspaces of a name: the one in the registry (the first), or a sibling.
cdef class Member(Scope):
    cdef object first                # weak reference to the first; None: it is this
    cdef list siblings               # only of the first; may be None
    cdef int place                   # number in the family; 0: the first
    cdef bint related                # it has siblings, or is one

    cdef list family(self)
    cdef Member entered_here(self)
    cdef bint is_entered_here(self)
    cdef int add_sibling(self, Member made) except -1
    cdef int leave_family(self) except -1
    cdef int stand_alone(self) except -1
