from cpython.object cimport PyObject

from ndx._array.storage cimport BaseArray
from ndx._methods.numpy_function_table cimport Row

cdef class Call:
    cdef Row row
    cdef tuple args              # as given
    cdef dict kwargs
    cdef tuple taken             # `args` and `kwargs` with views in place of NDArrays
    cdef dict named
    cdef list made               # if asked for: views, and what objects have returned
    cdef list foreign            # the memory of NumPy's arrays among the arguments
    cdef dict entered            # sequences within others, and what stands for each
    cdef Py_ssize_t elements     # of all operands
    cdef Py_ssize_t spread       # the product of their sizes
    cdef Py_ssize_t largest      # elements of the largest
    cdef Py_ssize_t product      # of all integers, at most SMALL
    cdef bint any_view           # whether NumPy gets a view of an NDArray
    cdef bint any_array          # whether an argument is an NDArray, or has one
    cdef bint asks               # whether other objects are asked for their arrays
    cdef bint keeps              # whether arrays in sequences stay, as objects
    cdef bint on_device
    cdef bint is_wide            # whether an operand has more axes than one
    cdef bint many               # whether there are several operands
    cdef bint is_odd             # whether an argument may compute itself
    cdef bint shares             # whether a result may share memory of others
    cdef tuple unwrap_all(self, tuple args)
    cdef int scale(self, object x) except -1
    cdef void forget_parameters(self) noexcept
    cdef bint is_small(self) noexcept
    cdef void count(self, Py_ssize_t size) noexcept
    cdef object unwrap(self, object x, int depth)
    cdef object wrap(self, object result, int depth)
    cdef object operand_of(self, object result)

cdef object call_function(object function, tuple args, dict kwargs)
cdef object dispatch_function(object function, object types, tuple args, dict kwargs)
cdef object compute_method(Row row, PyObject **given, dict kwargs)
cdef object call_method(str name, tuple args, dict kwargs)
cdef object compute_function(object function, tuple args, dict kwargs)
cdef object compute_call(Row row, PyObject **args, Py_ssize_t count, object names)
cdef object like_operand(BaseArray x, object result)
