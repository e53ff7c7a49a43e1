from cpython.object cimport PyObject
from libc.stdint cimport int32_t

# The tables of lines and stacks, and the numbers of the entries of these and of others.
cdef class CallStacks:
    cdef readonly Py_ssize_t depth   # the most lines of a stack
    cdef readonly list lines         # "file:line in function"
    cdef readonly list stacks        # tuples of indices of lines, innermost first
    # The address of a code object -> a weak reference to it, and {instruction: number}.
    cdef dict codes
    cdef dict numbers                # key of an entry -> its index in its table

    cdef int32_t add(self, object key, list table, object entry) except -2
    cdef int32_t stack_number(self) except -2
    cdef object line_number(self, PyObject *code, int instruction)
    cdef tuple known_code(self, object address, object code)
