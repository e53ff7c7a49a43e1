"""Asking for buffers with any flags, through ctypes."""

import ctypes

SIMPLE, WRITABLE, FORMAT, ND = 0, 1, 4, 8
STRIDES = 0x10 | ND
C_CONTIGUOUS, F_CONTIGUOUS = 0x20 | STRIDES, 0x40 | STRIDES
ANY_CONTIGUOUS = 0x80 | STRIDES
INDIRECT = 0x100 | STRIDES
FULL = FORMAT | STRIDES
FLAGS = {
    "simple": SIMPLE,
    "writable": WRITABLE,
    "nd": ND,
    "nd writable": ND | WRITABLE,
    "strides": STRIDES,
    "strides writable": STRIDES | WRITABLE,
    "format": FORMAT | ND,
    "c": C_CONTIGUOUS,
    "f": F_CONTIGUOUS,
    "any": ANY_CONTIGUOUS,
    "full": FULL,
    "full writable": FULL | WRITABLE,
}


class Py_buffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]  # fmt: skip


def get_buffer(exporter, flags):
    """Return the fields of a buffer as a dict, or the exception that refused it."""
    buffer = Py_buffer()
    api = ctypes.pythonapi
    try:
        api.PyObject_GetBuffer(
            ctypes.py_object(exporter), ctypes.byref(buffer), ctypes.c_int(flags)
        )
    except (BufferError, ValueError) as error:
        return error
    try:
        ndim = buffer.ndim
        return {
            "len": buffer.len,
            "itemsize": buffer.itemsize,
            "ndim": ndim,
            "readonly": buffer.readonly,
            "format": buffer.format,
            "shape": tuple(buffer.shape[:ndim]) if buffer.shape else None,
            "strides": tuple(buffer.strides[:ndim]) if buffer.strides else None,
            "address": buffer.buf,
            "suboffsets": bool(buffer.suboffsets),
        }
    finally:
        api.PyBuffer_Release(ctypes.byref(buffer))


def buffer_object(exporter, flags):
    """Ask for a buffer, give it back, and return the object that it named."""
    buffer = Py_buffer()
    api = ctypes.pythonapi
    api.PyObject_GetBuffer(
        ctypes.py_object(exporter), ctypes.byref(buffer), ctypes.c_int(flags)
    )
    found = buffer.obj
    api.PyBuffer_Release(ctypes.byref(buffer))
    return found
