from ndx._compute.numpy_private cimport LoopFunction

# Replaces a loop and its data by a faster one for an operand that is a constant.
cdef int spread_constants(str name, int dtype, LoopFunction *function,
                          void **data) except -1
