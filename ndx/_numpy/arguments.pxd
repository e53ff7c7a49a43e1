from cpython.object cimport PyObject

from ndx._array.storage cimport BaseArray

cdef BaseArray array_in(PyObject *given)
cdef BaseArray any_array_in(PyObject *given)
cdef bint read_int(PyObject *given, Py_ssize_t *out) except -1
cdef int read_axis(PyObject *given, int ndim, int otherwise) except -2
cdef bint is_plain_number(object x) noexcept
cdef bint are_numbers(PyObject **given, int count) noexcept
cdef object found_or_not(object found)
cdef object reduced(object found)
