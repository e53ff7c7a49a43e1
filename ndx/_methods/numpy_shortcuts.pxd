# NumPy's function -> ``f(args, kwargs)``, which computes it, or NotImplemented.
cdef dict SHORTCUTS

cdef object shortcut(object function, tuple args, dict kwargs)
