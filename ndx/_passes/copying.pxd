from ndx._layout cimport Walk

cdef bint copy_walk(char **data, const Walk *walk, int dtype, int into,
                    str name) except -1
