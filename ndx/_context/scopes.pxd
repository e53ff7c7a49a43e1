from ndx._context.context cimport Context, Entry, Scope
from ndx._lib.interpreter cimport Here

cdef int enter_context(Context context) except -1
cdef Context own_context()
cdef Context ready_context()
cdef int push(Context context, Entry entry, Scope owner, const Here *here) noexcept
cdef bint has_ended(Entry entry) noexcept
cdef bint has_gone(object reference)
cdef int abandon(Scope scope, Entry entry) except -1
cdef int leave_scope(Scope scope, object kind) except -1
