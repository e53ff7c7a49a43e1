from ndx._array.storage cimport BaseArray

cdef class Call:
    cdef list views              # NumPy views of NDArrays,
    cdef list arrays             # and the NDArrays
    cdef list foreign            # the memory of NumPy's arrays among the arguments
    cdef tuple outs              # `out=`, which the call returns
    cdef dict entered            # sequences within others, and what stands for each
    cdef bint any_array          # whether an argument is an NDArray, or has one
    cdef bint asks               # whether other objects are asked for their arrays
    cdef bint keeps              # whether arrays in sequences stay, as objects
    cdef bint on_device
    cdef object function
    cdef tuple args
    cdef object unwrap(self, object x, int depth)
    cdef object wrap(self, object result, int depth)
    cdef bint is_output(self, object result) except -1

cdef object call_function(object function, tuple args, dict kwargs)
cdef object dispatch_function(object function, object types, tuple args, dict kwargs)
cdef object call_method(str name, tuple args, dict kwargs)
cdef object compute_function(object function, tuple args, dict kwargs)
cdef object like_operand(BaseArray x, object result)
