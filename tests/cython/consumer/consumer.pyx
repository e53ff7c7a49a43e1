"""What a package may do with ndx's arrays in Cython."""

cimport ndx as cndx
from libc.string cimport memset

# So that an ndx that won't do shows here, and not at the first call.
cndx.import_ndx()

FLAGS = {"writable": cndx.WRITABLE, "c_contiguous": cndx.C_CONTIGUOUS}
DTYPES = {
    "bool": cndx.BOOL, "int8": cndx.INT8, "int16": cndx.INT16, "int32": cndx.INT32,
    "int64": cndx.INT64, "uint8": cndx.UINT8, "uint16": cndx.UINT16,
    "uint32": cndx.UINT32, "uint64": cndx.UINT64, "float32": cndx.FLOAT32,
    "float64": cndx.FLOAT64, "complex64": cndx.COMPLEX64,
    "complex128": cndx.COMPLEX128, "float16": cndx.FLOAT16,
}


cdef double add_up(const cndx.ArrayView *view, int axis,
                   const char *data) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t i
    if axis == view.ndim:
        return (<const double *>data)[0]
    for i in range(view.shape[axis]):
        total += add_up(view, axis + 1, data + i * view.strides[axis])
    return total


def total(x):
    """Return the sum of a float64 array of any layout, computed without the GIL."""
    cdef cndx.ArrayView view
    cdef double result
    cndx.acquire(x, &view, 0)
    try:
        if view.dtype != cndx.FLOAT64:
            raise TypeError("total takes float64")
        with nogil:
            result = add_up(&view, 0, <const char *>view.data)
    finally:
        cndx.release(&view)
    return result


def doubled(x):
    """Return a new array: twice a contiguous float64 array."""
    cdef cndx.ArrayView source, target
    cdef Py_ssize_t i
    cndx.acquire(x, &source, cndx.C_CONTIGUOUS)
    try:
        if source.dtype != cndx.FLOAT64:
            raise TypeError("doubled takes float64")
        result = cndx.empty(source.ndim, source.shape, cndx.FLOAT64)
        cndx.acquire(result, &target, cndx.WRITABLE | cndx.C_CONTIGUOUS)
        with nogil:
            for i in range(source.size):
                (<double *>target.data)[i] = 2 * (<const double *>source.data)[i]
        cndx.release(&target)
    finally:
        cndx.release(&source)
    return result


def empty(shape, int dtype, ndim=None):
    """Return a new array, with whatever arguments."""
    cdef Py_ssize_t lengths[64]
    for axis, length in enumerate(shape[:64]):
        lengths[axis] = length
    return cndx.empty(len(shape) if ndim is None else ndim, lengths, dtype)


def is_array(x):
    return cndx.is_array(x)


def release_empty():
    """Release views that hold nothing: a zeroed one, and a failed one, twice."""
    cdef cndx.ArrayView view
    memset(&view, 0, sizeof(view))
    cndx.release(&view)
    memset(&view, 255, sizeof(view))
    try:
        cndx.acquire(None, &view, 0)
    except TypeError:
        cndx.release(&view)
        cndx.release(&view)


def release_while_raising(x):
    """Release in C, with an exception pending."""
    cdef cndx.ArrayView view
    cndx.acquire(x, &view, 0)
    x = None
    try:
        raise KeyError("pending")
    finally:
        cndx.release(&view)


cdef class Held:
    """A view that is held until `release`, or until the object goes."""

    cdef cndx.ArrayView view

    def __init__(self, x, int flags=0):
        if self.view.data != NULL:
            raise RuntimeError("held already")
        cndx.acquire(x, &self.view, flags)

    def __dealloc__(self):
        cndx.release(&self.view)

    def release(self):
        cndx.release(&self.view)

    @property
    def address(self):
        return <size_t>self.view.data

    @property
    def shape(self):
        return tuple([self.view.shape[i] for i in range(self.view.ndim)])

    @property
    def strides(self):
        return tuple([self.view.strides[i] for i in range(self.view.ndim)])

    @property
    def info(self):
        return {
            "size": self.view.size, "itemsize": self.view.itemsize,
            "ndim": self.view.ndim, "dtype": self.view.dtype,
            "kind": chr(self.view.kind), "bits": self.view.bits,
            "readonly": self.view.readonly, "c_contiguous": self.view.c_contiguous,
            "device": (self.view.device_type, self.view.device_id),
        }

    def values(self):
        """Return the doubles of a contiguous array as they are in memory now."""
        return [(<double *>self.view.data)[i] for i in range(self.view.size)]
