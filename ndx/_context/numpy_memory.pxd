from ndx.backends.base cimport Backend

# Allocates NumPy's arrays within a scope of ``use(numpy=True)``.
cdef class PlainNumpy:
    cdef Backend backend
    cdef object refusal              # error of the last allocation, if it failed
