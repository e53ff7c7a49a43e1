"""The buffer protocol: `memoryview` and the like over the memory of arrays.

Each buffer pins the bytes under the array until its consumer releases it. Two kinds of
consumers release it at once, and go on reading. Those that ask for plain bytes may keep
the buffer's `obj` (PyTorch's ``frombuffer``): there, it owns the export. NumPy's
``ndarray(shape, dtype, buffer)`` keeps the array: then, the array owns the export.
"""

import numpy as np

from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS, PyBUF_C_CONTIGUOUS, PyBUF_F_CONTIGUOUS, PyBUF_FORMAT,
    PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE,
)

from ndx._array.storage cimport (
    BaseArray, data_of, export_array, guard_export, require_live,
)
from ndx._blocks.block cimport Export, export_free
from ndx._lib.dtypes cimport NDTYPES, dtype_object, itemsize_of
from ndx._lib.layout cimport shape_tuple

# As NumPy says it: "l" and "q" may be one dtype, and are two classes of scalars.
cdef list formats = [
    memoryview(np.empty(0, dtype=dtype_object(code))).format.encode()
    for code in range(NDTYPES)]
cdef const char *FORMATS[NDTYPES]
for code in range(NDTYPES):
    FORMATS[code] = formats[code]


cdef int fill_buffer(BaseArray x, object exporter, Py_buffer *buffer,
                     int flags) except -1:
    """Serve ``PyObject_GetBuffer``; `release_buffer` ends it."""
    cdef bint wants_c, wants_f, wants_any
    require_live(x)
    if flags & PyBUF_WRITABLE and x.readonly:
        raise BufferError("the array is read-only; ask for a read-only buffer")
    wants_c = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS
    wants_f = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS
    wants_any = (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS
    if (wants_c and not x.c_contiguous) or (wants_f and not x.f_contiguous) or (
            (wants_any or (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
            and not (x.c_contiguous or (x.f_contiguous and wants_any))):
        raise BufferError(
            f"the array of shape {shape_tuple(x.ndim, x.shape)} and strides "
            f"{shape_tuple(x.ndim, x.strides)} is not contiguous as asked; give one "
            f"that is: ndx.asarray(x, order='{'CF'[wants_f and not wants_c]}')")
    if wants_any and not flags & PyBUF_FORMAT and x.own_export == NULL:
        x.own_export = export_array(x)
    if flags & PyBUF_ND:
        buffer.internal = <void *>export_array(x)
        buffer.obj = exporter
    else:
        buffer.internal = NULL
        buffer.obj = guard_export(x)
    buffer.buf = data_of(x)
    buffer.itemsize = itemsize_of[x.dtype]
    buffer.len = x.size * buffer.itemsize
    buffer.readonly = x.readonly
    # A consumer that asks for no shape gets one axis of bytes.
    buffer.ndim = x.ndim if flags & PyBUF_ND else 1
    buffer.format = <char *>FORMATS[x.dtype] if flags & PyBUF_FORMAT else NULL
    buffer.shape = x.shape if flags & PyBUF_ND and x.ndim else NULL
    buffer.strides = x.strides if (flags & PyBUF_STRIDES) == PyBUF_STRIDES and x.ndim \
        else NULL
    buffer.suboffsets = NULL
    return 0


cdef void release_buffer(Py_buffer *buffer) noexcept:
    """End a buffer whose `obj` is the array; guards end the other buffers."""
    export_free(<Export *>buffer.internal)
