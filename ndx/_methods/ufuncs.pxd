cdef object compute_ufunc(object ufunc, str method, tuple inputs, dict kwargs)
