from ndx.backends.base cimport Backend

# What NumPy's arrays are made by, in the scope of ``use(numpy=True)`` and all inside.
cdef class PlainNumpy:
    cdef Backend backend
    cdef object refusal              # why it last got no memory; None: it did
