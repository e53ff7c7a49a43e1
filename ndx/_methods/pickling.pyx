"""Pickles of arrays, with out-of-band buffers in protocol 5.

References
----------
PEP 574, pickle protocol 5 with out-of-band data: https://peps.python.org/pep-0574/
"""

import pickle

import numpy as np

from ndx._array.dispatch cimport answer, engine_of
from ndx._array.storage cimport (
    BaseArray, new_detached, new_empty, numpy_view, require_intact_file, require_live,
    require_usable,
)
from ndx._compute.copies cimport copy_into
from ndx._compute.elementwise cimport as_operand
from ndx._context.context cimport placing_device
from ndx._files.mapping cimport find_mapping
from ndx._lib.dtypes cimport dtype_code, dtype_object
from ndx._lib.layout cimport MAXDIMS, parse_shape, shape_tuple
from ndx._methods.display cimport readable

from ndx._lib.device import device_of


cdef tuple pickled(BaseArray x, int protocol):
    """Return the arguments of `rebuild` for an array, read on the CPU."""
    cdef BaseArray contiguous = x
    if x.block.device:
        require_usable(x)
        return pickled(readable(x), protocol)
    require_live(x)
    if not x.c_contiguous and not x.f_contiguous:
        # `copy` would keep the order of the axes in memory.
        contiguous = new_empty(x.dtype, x.ndim, x.shape)
        copy_into(contiguous, x)
    order = "C" if contiguous.c_contiguous else "F"
    if protocol >= 5 and not find_mapping(contiguous.block.ptr, NULL):
        # Consumers expect a buffer in C order. They read it without checks for lost
        # pages, so arrays in mapped files are copied below.
        data = pickle.PickleBuffer(
            contiguous if order == "C" else numpy_view(contiguous).T)
        in_band = bytes if contiguous.readonly else bytearray
    else:
        data = numpy_view(contiguous).tobytes(order="A")
        in_band = bytes
        require_intact_file(contiguous)
    shape = shape_tuple(x.ndim, x.shape)
    return (data, dtype_object(x.dtype).name, shape, order, in_band)


def rebuild(data, dtype, shape, order, in_band=bytes):
    """Return the array that was pickled.

    Data of the type that pickle has for data in the stream, `in_band`, is copied to the
    current backend. Any other object is a buffer that the caller of `pickle.loads`
    gave: the array is a view of it, unless it is misaligned or the current backend is
    a device.
    """
    cdef int order_of_axes[MAXDIMS]
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int code = dtype_code(dtype), ndim = parse_shape(shape, lengths), i
    cdef BaseArray result
    cdef BaseArray source = as_operand(
        np.frombuffer(data, dtype=dtype_object(code)).reshape(shape, order=order))
    device = placing_device()
    if device:
        engine = engine_of(device)
        return answer(engine, "upload", engine.upload(
            source, device_of(device), detached=True))
    if type(data) is not in_band:
        return source
    for i in range(ndim):
        order_of_axes[i] = i if order == "C" else ndim - 1 - i
    result = new_detached(0, code, ndim, lengths, order_of_axes, False, None)
    copy_into(result, source)
    return result
