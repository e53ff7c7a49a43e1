cdef object shortcut(object function, tuple args, dict kwargs)
