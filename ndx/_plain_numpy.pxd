from ndx.backends.base cimport Backend

# What NumPy's arrays are made by, in the scope of ``use(numpy=True)`` and all inside.
cdef class PlainNumpy:
    cdef Backend backend
    cdef object refusal              # why it last got no memory; None: it did

cdef int set_numpy_handler(object handler) except -1
cdef object switch_numpy(bint ours)
cdef void restore_numpy(object handler) noexcept
