from ndx._compute.loops cimport Ufunc


cdef class KnownUfunc:
    cdef Ufunc ufunc
    cdef bint narrow             # NumPy has float16 for small integers, ndx float64
    cdef bint only_inexact
    cdef bint is_matmul
    cdef bint is_vecdot

cdef object compute_ufunc(object ufunc, str method, tuple inputs, dict kwargs)
cdef KnownUfunc known_ufunc(object ufunc)
cdef object compute_known(KnownUfunc known, tuple inputs)
cdef object compute_outer(KnownUfunc known, tuple inputs)
cdef object compute_number(KnownUfunc known, object x)
cdef object compute_over(object ufunc, str method, object x, object axis)
