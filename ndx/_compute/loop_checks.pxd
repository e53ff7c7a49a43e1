from ndx._lib.numpy_private cimport LoopFunction

# Replaces a loop that is wrong for some steps, and its data. A loop that is right
# stays. Raises MemoryError if the data can't be allocated.
cdef int mend(str name, int nin, int in_dtype, int out_dtype, LoopFunction *function,
              void **data) except -1

# Whether a loop over stacks of matrices (matmul) or of vectors (vecdot) gives the same
# result for all their layouts.
cdef bint stacks_are_right(bint vectors, int dtype, LoopFunction function,
                           void *data) except -1
