from ndx._compute.numpy_private cimport LoopFunction

# Replaces a loop that is slow where one operand is a constant, and its data.
cdef int spread_constants(str name, int dtype, LoopFunction *function,
                          void **data) except -1
