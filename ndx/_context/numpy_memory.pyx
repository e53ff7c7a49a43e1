"""The backend of NumPy's own arrays within a scope of ``use(numpy=True)``."""

from ndx._lib.refusals cimport Refusals
from ndx.backends.base cimport Backend


cdef class PlainNumpy:
    """A backend that allocates the data of NumPy's new arrays."""

    def __cinit__(self, Backend backend not None):
        self.backend = backend
        self.refusals = Refusals()
