"""DLPack capsules from outside: made and read through ctypes."""

import ctypes

VERSIONED, UNVERSIONED = b"dltensor_versioned", b"dltensor"
CPU, CUDA = 1, 2
INT, UINT, FLOAT, COMPLEX, BOOL = 0, 1, 2, 5, 6
READ_ONLY, COPIED = 1, 2


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [
        ("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetName.argtypes = [ctypes.py_object]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


def name_of(capsule):
    return api.PyCapsule_GetName(capsule)


def managed_of(capsule):
    """Return the structure that a capsule points at."""
    name = name_of(capsule)
    kind = ManagedVersioned if b"versioned" in name else Managed
    return kind.from_address(api.PyCapsule_GetPointer(capsule, name))


def consume(capsule):
    """Take a capsule over, as a consumer does; return what ends the tensor."""
    managed = managed_of(capsule)
    api.PyCapsule_SetName(capsule, USED[name_of(capsule)])
    address = ctypes.addressof(managed)
    return lambda: DELETER(managed.deleter)(address)


# The name is not copied: it must outlive the capsule.
USED = {VERSIONED: b"used_dltensor_versioned", UNVERSIONED: b"used_dltensor"}


class Exporter:
    """Exports a NumPy array of any kind, counting the calls of its deleter."""

    def __init__(self, array, *, versioned=True, deleter=True, **fields):
        self.array = array
        self.deleted = 0
        self.asked = None
        self.versioned = versioned
        self.managed = (ManagedVersioned if versioned else Managed)()
        tensor = self.managed.tensor
        tensor.data = array.__array_interface__["data"][0]
        tensor.device_type = CPU
        tensor.ndim = array.ndim
        kind = array.dtype.kind
        tensor.code = {"i": INT, "u": UINT, "f": FLOAT, "c": COMPLEX, "b": BOOL}[kind]
        tensor.bits = 8 * array.itemsize
        tensor.lanes = 1
        self.shape = (ctypes.c_int64 * 8)(*array.shape)
        self.strides = (ctypes.c_int64 * 8)(
            *(s // array.itemsize for s in array.strides)
        )
        tensor.shape, tensor.strides = self.shape, self.strides
        if versioned:
            self.managed.major = 1
        self.callback = DELETER(self.delete)
        if deleter:
            self.managed.deleter = ctypes.cast(self.callback, ctypes.c_void_p).value
        for name, value in fields.items():
            owner = tensor if name in dict(Tensor._fields_) else self.managed
            setattr(owner, name, value)

    def delete(self, address):
        self.deleted += 1

    def capsule(self):
        name = VERSIONED if self.versioned else UNVERSIONED
        return api.PyCapsule_New(ctypes.addressof(self.managed), name, None)

    def __dlpack_device__(self):
        tensor = self.managed.tensor
        return tensor.device_type, tensor.device_id

    def __dlpack__(self, **kwargs):
        self.asked = kwargs
        return self.capsule()
