from ndx._compute.numpy_private cimport LoopFunction

# Replaces a loop, and its data, where NumPy's is not the standard's.
cdef int own_loop(str name, int dtype, LoopFunction *function, void **data) except -1
