# Replaces a loop, and its data, where NumPy's is not the standard's.
cdef int own_loop(str name, int dtype, void **function, void **data) except -1
