from ndx._array.storage cimport BaseArray
from ndx._blocks.block cimport Block

cdef object call_numpy(object function, tuple args, dict kwargs)
cdef object run_numpy(object function, tuple args, dict kwargs, bint ours,
                      bint computes, bint by_steps)
cdef int recheck_views(object views) except -1
cdef BaseArray own_result(object array)
cdef object own_or_keep(object array, operands, foreign, bint shares)
cdef object root_of(object array)
cdef object backend_of_block(const Block *block)
