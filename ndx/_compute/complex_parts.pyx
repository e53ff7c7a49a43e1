"""Views of the parts of complex numbers."""

from ndx._array.storage cimport BaseArray, same_view, set_layout
from ndx._lib.dtypes cimport COMPLEX64, FLOAT32, FLOAT64, itemsize_of


cdef BaseArray part(BaseArray x, Py_ssize_t offset):
    """Return the real (0) or imaginary (1) parts of a complex array."""
    cdef BaseArray view = same_view(x)
    view.dtype = FLOAT32 if x.dtype == COMPLEX64 else FLOAT64
    view.offset += offset * itemsize_of[view.dtype]
    set_layout(view)
    return view
