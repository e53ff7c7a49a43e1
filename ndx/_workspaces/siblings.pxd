from ndx._context.context cimport Scope

# One of the workspaces of a name: the one that the name finds, or a sibling of it.
cdef class Member(Scope):
    cdef object first                # of the family, a weak reference; None: this
    cdef list siblings               # of the first
    cdef int place                   # among them; 0: the first
    cdef bint related                # it has siblings, or is one

    cdef list family(self)
    cdef Member entered_here(self)
    cdef bint is_entered_here(self)
    cdef int add_sibling(self, Member made) except -1
    cdef int leave_family(self) except -1
    cdef int stand_alone(self) except -1
