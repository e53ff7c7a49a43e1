from cpython.object cimport PyObject

from ndx._lib.free_threading cimport ndx_get_address

cdef enum:
    MOST_PARAMETERS = 8
    SMALL = 1024                 # elements

# Computes a function for its arguments by parameter (borrowed; NULL: not given), or
# returns NotImplemented, also for wrong ones: NumPy then computes, or raises its error.
ctypedef object (*Compute)(Row row, PyObject **given)

# What ndx knows of one of NumPy's functions.
cdef class Row:
    cdef object function             # NumPy's
    cdef object without_dispatch     # the same for arrays of NumPy alone

    # How ndx computes it, if it does:
    cdef Compute compute             # by a function of ndx; NULL: none
    cdef tuple names                 # whose parameters these are,
    cdef Py_ssize_t positional       # and how many of them have a place
    cdef object data                 # what it needs besides; for rows that share one
    cdef bint is_method              # what computes takes arrays of any kind,
    cdef object whole                # by a function of all arguments and keywords
    cdef bint is_composite           # by NumPy's own code over functions of ndx,
    cdef object composite            # which is made at the first call
    cdef object known                # of a ufunc: the `KnownUfunc` that computes it
    cdef object recorder             # how `ndx.fuse` records it, and with which options

    # How NumPy computes it:
    cdef Py_ssize_t output           # place of its parameter `out`; -1: none; `UNKNOWN`
    cdef bint stores                 # it stores values, which must fit
    cdef bint calls_back             # it calls functions of the caller's with arrays
    cdef bint repeats                # it visits each element, or needs memory for each
    cdef bint runs                   # its output must have axes
    cdef bint exact                  # `_methods.exact` may replace it
    cdef bint is_linalg              # it can't read arrays with steps within elements
    cdef bint shuffles               # it changes a sequence of the caller's in place
    cdef bint bounded                # its arrays are about as large as its operands
    cdef bint spreads                # or as large as the product of their sizes
    cdef bint scaled                 # so they are, times the numbers that are given
    cdef bint silent                 # without keywords: it computes and casts no floats
    cdef bint draws                  # it draws random numbers: its keywords are silent
    cdef object owner                # the class of generators that it is a method of

    cdef object compute_call(self, PyObject **args, Py_ssize_t count, object names)
    cdef object compute_list(self, PyObject **args, Py_ssize_t count, object names)
    cdef object compute_steps(self, PyObject **args, Py_ssize_t count, object names)
    cdef object compute_tuple(self, tuple args, dict kwargs)

cdef inline Compute compute_of(Row row) noexcept:
    """Return what computes a row, whose fields are filled before it is there."""
    return <Compute>ndx_get_address(<const void *const *>&row.compute)

cdef enum:
    UNKNOWN = -2                     # nobody has asked yet

# NumPy's functions that call functions of the caller's.
cdef dict CALLING_BACK

cdef Row row_of(object function)
cdef int add_function(object function, str names, Compute compute, object data=*) \
    except -1
cdef int add_late(str module, object add) except -1
cdef int add_whole(object function, object whole) except -1
cdef int add_method(object function, str names, Compute compute, object data=*) \
    except -1
