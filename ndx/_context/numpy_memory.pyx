"""What NumPy's own arrays are made by, in the code of a scope."""

from ndx.backends.base cimport Backend


cdef class PlainNumpy:
    """A backend that NumPy's new arrays come from."""

    def __cinit__(self, Backend backend not None):
        self.backend = backend
