cdef enum:
    DEEPEST = 64                 # NumPy takes no sequences that are nested more deeply

cdef bint is_numpy_scalar(object x) noexcept
cdef bint is_numpy_bool(object x) noexcept
cdef bint is_refused_array(object error) except -1
