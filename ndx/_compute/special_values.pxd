from ndx._compute.numpy_private cimport LoopFunction

cdef frozenset SPECIAL

# Replaces NumPy's loop, and its data, if its results differ from the standard's.
cdef int own_loop(str name, int dtype, LoopFunction *function, void **data) except -1
