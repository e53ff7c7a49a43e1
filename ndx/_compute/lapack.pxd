cdef object decompose(str name, tuple args, dict kwargs)
