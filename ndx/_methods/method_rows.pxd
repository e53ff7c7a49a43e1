from ndx._methods.numpy_function_table cimport Row

cdef Row row_of_method(str name)
