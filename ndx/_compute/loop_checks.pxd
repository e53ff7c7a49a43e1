from ndx._compute.numpy_private cimport LoopFunction

# What is called instead of a loop that is wrong for some steps, and its data; both stay
# as they are where the loop is right. MemoryError if there is no room for the data.
cdef int mend(str name, int nin, int in_dtype, int out_dtype, LoopFunction *function,
              void **data) except -1

# Whether a loop over stacks of matrices (as matmul's) or of vectors (as vecdot's) gives
# the same however these lie.
cdef bint stacks_are_right(bint vectors, int dtype, LoopFunction function,
                           void *data) except -1
