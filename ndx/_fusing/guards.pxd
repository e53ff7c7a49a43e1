from cpython.object cimport PyObject

from ndx._fusing.signatures cimport Words

cdef struct Guard:
    int read                     # how the value is found
    int check                    # what is compared
    int parent                   # the guard whose value has this one
    Py_ssize_t index             # of an item, a cell, an argument, ...
    Py_ssize_t defaults          # how many a function has
    PyObject *key
    PyObject *expected
    void *getattro               # of the parent's type
    unsigned int version         # of the class whose attributes were looked at
    bint of_type                 # whether that class is the parent itself
    double number

cdef class Guards:
    cdef int count
    cdef Guard *guards
    cdef bint takes              # whether it adds arguments
    cdef bint alive              # False: an object that is compared by address has died
    cdef list kept
    cdef bytes words             # of the arrays read from outside
    cdef int nwords
    cdef object __weakref__

    cdef bint hold(self, Words *found, PyObject **args, PyObject *function,
                   list owned) except -1
    cdef bint hold_all(self, Words *found, PyObject **args, PyObject *function,
                       list owned) except -1
    cdef bint describe(self, Words *found, list arrays) except -1
    cdef int refer(self, object value) except -1
