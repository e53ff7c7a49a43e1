"""Memory of arrays that other libraries use: the buffer protocol, and DLPack."""

cimport cython
from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS, PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_F_CONTIGUOUS,
    PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE,
)
from cpython.object cimport PyObject
from cpython.pycapsule cimport (
    PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName,
)
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdint cimport (
    int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t, uintptr_t,
)
from libc.stdlib cimport free, malloc

import numpy as np

from ndx._array.storage cimport (
    BaseArray, bare_array, data_of, export_array, guard_export, is_array,
    require_live, require_usable, set_base, set_layout,
)
from ndx._blocks.block cimport Export, block_set_device, block_wrap, export_free
from ndx._lib.dtypes cimport (
    KIND_BOOL, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_UINT, NDTYPES, dtype_object,
    itemsize_of, kind_of,
)
from ndx._lib.layout cimport (
    MAXDIMS, check_reach, count_elements, fill_c_strides, shape_tuple,
)

from ndx._lib.device import KINDS, MOST, kind_at, kind_of_dlpack

__all__ = ["export", "is_read_only_export"]

# ---- The buffer protocol -------------------------------------------------------------
# Each buffer pins the bytes under the array until its consumer releases it. Two kinds
# of consumers release it at once, and go on reading. Those that ask for plain bytes may
# keep the buffer's `obj` (PyTorch's ``frombuffer``): there, it owns the export. NumPy's
# ``ndarray(shape, dtype, buffer)`` keeps the array: then, the array owns the export.

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


# ---- Engines -------------------------------------------------------------------------

def export(x: NDArray, /) -> tuple[int, object]:
    """Return where an array's memory is, and what keeps it in place.

    Parameters
    ----------
    x : NDArray
        On any device.

    Returns
    -------
    address : int
        Of the first element, on the array's device.
    held : object
        The memory stays what it is while this object lives, as that of a NumPy view.

    Raises
    ------
    StaleArrayError
        If the scope that `x` was made in has ended.
    TypeError
        If `x` is no array.

    Notes
    -----
    For engines, which compute on that memory. ``x.strides`` are in bytes.

    Examples
    --------
    >>> import ctypes
    >>> import ndx
    >>> x = ndx.arange(3)
    >>> address, held = ndx.engines.export(x)
    >>> ctypes.c_int64.from_address(address + 2 * x.itemsize).value
    2
    """
    if not is_array(x):
        raise TypeError(f"export takes an NDArray, not {type(x).__name__}")
    require_usable(x)
    guard = guard_export(x)
    return <uintptr_t>data_of(x), guard


# ---- DLPack --------------------------------------------------------------------------
# Each capsule pins the bytes under the array until its consumer releases it.
#
# References ---------- DLPack: https://dmlc.github.io/dlpack/latest/python_spec.html

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "ndx/internal/arithmetic.h":
    bint ndx_multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) nogil

# The structs of DLPack 1.x: https://dmlc.github.io/dlpack/latest/c_api.html
cdef struct DLDevice:
    int32_t device_type
    int32_t device_id

cdef struct DLDataType:
    uint8_t code
    uint8_t bits
    uint16_t lanes

cdef struct DLPackVersion:
    uint32_t major
    uint32_t minor

cdef struct DLTensor:
    void *data
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t *shape
    int64_t *strides             # in elements
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor dl_tensor
    void *manager_ctx
    void (*deleter)(DLManagedTensor *self) noexcept

cdef struct DLManagedTensorVersioned:
    DLPackVersion version
    void *manager_ctx
    void (*deleter)(DLManagedTensorVersioned *self) noexcept
    uint64_t flags
    DLTensor dl_tensor

cdef enum:
    DL_CPU = 1
    DL_CODE_INT = 0
    DL_CODE_UINT = 1
    DL_CODE_FLOAT = 2
    DL_CODE_COMPLEX = 5
    DL_CODE_BOOL = 6
    DL_FLAG_READ_ONLY = 1
    DL_FLAG_IS_COPIED = 2


# ---------------------------------------------------------------- DLPack, out

# The context of an exported tensor; `export` keeps the memory in place.
cdef struct Exported:
    DLManagedTensorVersioned versioned
    DLManagedTensor unversioned
    Export *export
    PyObject *owner              # of foreign memory, strong; else NULL
    int64_t dims[2 * MAXDIMS]


cdef tuple dlpack_device(BaseArray x):
    if x.block.device:
        kind = kind_at(x.block.device)
        if not kind.dlpack:
            raise BufferError(
                f"devices of kind {kind.name!r} have no type in DLPack (it is given to "
                "ndx.engines.register); x.to_device('cpu') returns a copy that has one")
        return (kind.dlpack[0], x.block.device - kind.first)
    return (DL_CPU, 0)


cdef object to_dlpack(BaseArray x, bint versioned, bint copied, bint any_strides):
    """Return a capsule that pins the bytes under `x` until the consumer is done.

    `any_strides` says that the consumer takes negative strides, too.
    """
    cdef Exported *exported
    cdef DLTensor *tensor
    cdef int axis
    if x.readonly and not versioned:
        raise BufferError(
            "the array is read-only, which only a versioned DLPack capsule can say; "
            "ask with max_version=(1, 0) or copy=True")
    for axis in range(x.ndim):
        if x.shape[axis] > 1 and x.strides[axis] % itemsize_of[x.dtype]:
            raise BufferError(
                f"the array's strides {shape_tuple(x.ndim, x.strides)} are not whole "
                "elements (it is one field of records), which DLPack can't say; ask "
                "with copy=True")
        if x.shape[axis] > 1 and x.strides[axis] < 0 and not any_strides:
            raise BufferError(
                f"the array is reversed: its strides {shape_tuple(x.ndim, x.strides)} "
                "are negative, which not every consumer of DLPack takes (PyTorch ends "
                "the process); ask with copy=True, or give it ndx.asarray(x, "
                "copy=True)")
    device = dlpack_device(x) if x.block.device else None
    exported = <Exported *>malloc(sizeof(Exported))
    if exported == NULL:
        raise MemoryError("no memory for a DLPack capsule")
    try:
        exported.export = export_array(x)
    except BaseException:
        free(exported)
        raise
    exported.owner = <PyObject *>x.base
    Py_XINCREF(exported.owner)
    tensor = &exported.versioned.dl_tensor if versioned \
        else &exported.unversioned.dl_tensor
    tensor.data = data_of(x)
    tensor.device.device_type = DL_CPU if device is None else device[0]
    tensor.device.device_id = 0 if device is None else device[1]
    tensor.ndim = x.ndim
    tensor.dtype.code = dlpack_code(x.dtype)
    tensor.dtype.bits = <uint8_t>(8 * itemsize_of[x.dtype])
    tensor.dtype.lanes = 1
    tensor.shape = exported.dims
    tensor.strides = exported.dims + x.ndim
    tensor.byte_offset = 0
    for axis in range(x.ndim):
        tensor.shape[axis] = x.shape[axis]
        tensor.strides[axis] = x.strides[axis] // itemsize_of[x.dtype]
        if x.shape[axis] <= 1 and tensor.strides[axis] < 0:
            tensor.strides[axis] = 1  # it means nothing, but consumers look at it
    if versioned:
        exported.versioned.version.major = 1
        exported.versioned.version.minor = 0
        exported.versioned.manager_ctx = exported
        exported.versioned.deleter = delete_versioned
        exported.versioned.flags = (DL_FLAG_READ_ONLY if x.readonly else 0) | (
            DL_FLAG_IS_COPIED if copied else 0)
        return PyCapsule_New(&exported.versioned, "dltensor_versioned",
                             drop_versioned_capsule)
    exported.unversioned.manager_ctx = exported
    exported.unversioned.deleter = delete_unversioned
    return PyCapsule_New(&exported.unversioned, "dltensor", drop_unversioned_capsule)


def is_read_only_export(capsule: object) -> bool:
    """Whether a capsule is a new one of ours, over a read-only array."""
    cdef DLManagedTensorVersioned *tensor
    if not PyCapsule_IsValid(capsule, "dltensor_versioned"):
        return False
    tensor = <DLManagedTensorVersioned *>PyCapsule_GetPointer(
        capsule, "dltensor_versioned")
    return tensor.deleter == delete_versioned and tensor.flags & DL_FLAG_READ_ONLY != 0


cdef uint8_t dlpack_code(int dtype) noexcept:
    cdef int kind = kind_of[dtype]
    if kind == KIND_BOOL:
        return DL_CODE_BOOL
    if kind == KIND_INT:
        return DL_CODE_INT
    if kind == KIND_UINT:
        return DL_CODE_UINT
    return DL_CODE_FLOAT if kind == KIND_FLOAT else DL_CODE_COMPLEX


# Consumers may call these from any thread, with or without the GIL.

cdef void delete_versioned(DLManagedTensorVersioned *tensor) noexcept with gil:
    delete_exported(<Exported *>tensor.manager_ctx)


cdef void delete_unversioned(DLManagedTensor *tensor) noexcept with gil:
    delete_exported(<Exported *>tensor.manager_ctx)


cdef void delete_exported(Exported *exported) noexcept:
    cdef PyObject *owner = exported.owner
    export_free(exported.export)
    free(exported)
    Py_XDECREF(owner)


# Consumers rename a capsule. One with its original name still owns the tensor.

cdef void drop_versioned_capsule(object capsule) noexcept:
    cdef DLManagedTensorVersioned *tensor
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        tensor = <DLManagedTensorVersioned *>PyCapsule_GetPointer(
            capsule, "dltensor_versioned")
        tensor.deleter(tensor)


cdef void drop_unversioned_capsule(object capsule) noexcept:
    cdef DLManagedTensor *tensor
    if PyCapsule_IsValid(capsule, "dltensor"):
        tensor = <DLManagedTensor *>PyCapsule_GetPointer(capsule, "dltensor")
        tensor.deleter(tensor)


# ---------------------------------------------------------------- DLPack, in

# A tensor may belong to an array over another imported tensor, and so on. CPython's
# trashcan bounds how deep the destructors of such a chain nest. It works only for types
# that the collector tracks: Cython tracks this one because of the object `capsule`.
@cython.final
@cython.no_gc_clear
@cython.trashcan(True)
cdef class Imported:
    """Owns a tensor that another library exported."""
    cdef DLManagedTensorVersioned *versioned
    cdef DLManagedTensor *unversioned
    cdef object capsule

    def __dealloc__(self):
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)
        if self.unversioned != NULL and self.unversioned.deleter != NULL:
            self.unversioned.deleter(self.unversioned)


cpdef BaseArray imported(object x):
    """Return an array over memory that another library exports by DLPack."""
    try:
        capsule = x.__dlpack__(max_version=(1, 0), copy=None)
    except TypeError:
        # An exporter from before DLPack 1.0.
        capsule = x.__dlpack__()
    return from_dlpack_capsule(capsule)


cdef BaseArray from_dlpack_capsule(object capsule):
    """Return an array over the memory of a capsule, which is consumed.

    Raises BufferError for tensors that ndx does not support: on another device, of a
    dtype that is not in the standard, with vector lanes, or with unaligned elements.
    """
    cdef Imported owner = Imported.__new__(Imported)
    cdef DLTensor *tensor
    cdef bint readonly = False
    cdef int dtype, device = 0
    cdef BaseArray x
    owner.capsule = capsule
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        owner.versioned = <DLManagedTensorVersioned *>PyCapsule_GetPointer(
            capsule, "dltensor_versioned")
        if owner.versioned.version.major > 1:
            major = owner.versioned.version.major
            owner.versioned = NULL
            raise BufferError(f"DLPack version {major} is not supported; 1 is")
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        tensor = &owner.versioned.dl_tensor
        readonly = owner.versioned.flags & DL_FLAG_READ_ONLY
    elif PyCapsule_IsValid(capsule, "dltensor"):
        owner.unversioned = <DLManagedTensor *>PyCapsule_GetPointer(
            capsule, "dltensor")
        PyCapsule_SetName(capsule, "used_dltensor")
        tensor = &owner.unversioned.dl_tensor
    else:
        raise BufferError(
            "not a DLPack capsule, or one that was consumed already; ask "
            "__dlpack__() for another")
    if tensor.device.device_type != DL_CPU:
        kind = kind_of_dlpack(tensor.device.device_type)
        if kind is None or not 0 <= tensor.device.device_id < MOST:
            raise unknown_device(tensor.device.device_type, tensor.device.device_id)
        device = kind.first + tensor.device.device_id
    dtype = code_of_dlpack(tensor.dtype)
    if tensor.ndim > MAXDIMS or tensor.ndim < 0:
        raise BufferError(f"the tensor has {tensor.ndim} axes; at most {MAXDIMS}")
    if tensor.ndim and tensor.shape == NULL:
        raise BufferError(f"the tensor has {tensor.ndim} axes, but no shape")
    x = bare_array(tensor.ndim)
    x.dtype = <unsigned char>dtype
    lay_out_tensor(x, tensor)
    if x.size and tensor.data == NULL:
        raise BufferError(f"the tensor has {x.size} elements, but no data")
    x.readonly = readonly
    if (<size_t>tensor.data + tensor.byte_offset) % (
            itemsize_of[dtype] // (2 if kind_of[dtype] == KIND_COMPLEX else 1)):
        raise BufferError(
            f"the tensor's elements ({dtype_object(dtype)}) are not aligned; copy it "
            "on the exporting side")
    x.block = block_wrap(<char *>tensor.data + tensor.byte_offset,
                         x.size * itemsize_of[dtype], readonly, None)
    if device:
        block_set_device(x.block, device)
    set_base(x, owner)
    return x


cdef object unknown_device(object kind, object number):
    return BufferError(
        f"the array is on DLPack device ({kind}, {number}); only the CPU, (1, 0)"
        + "".join([f", and {each}, ({each.dlpack[0]}, n)" for each in KINDS
                   if each.dlpack]) + ", can be taken")


cdef int lay_out_tensor(BaseArray x, const DLTensor *tensor) except -1:
    """Give an array the layout of a tensor; ValueError if the layout is invalid."""
    cdef Py_ssize_t itemsize = itemsize_of[x.dtype]
    cdef int axis
    cdef bint fits = tensor.byte_offset <= <uint64_t>PY_SSIZE_T_MAX
    for axis in range(tensor.ndim):
        x.shape[axis] = tensor.shape[axis]
    count_elements(x.ndim, x.shape, itemsize)
    if tensor.strides == NULL:
        fill_c_strides(x.ndim, x.shape, itemsize, x.strides)
    else:
        for axis in range(tensor.ndim):
            fits = fits and not ndx_multiply(tensor.strides[axis], itemsize,
                                             &x.strides[axis])
    if not fits:
        raise ValueError(
            f"the tensor of shape {shape_tuple(x.ndim, x.shape)} has strides or an "
            "offset beyond the address space (2**63 bytes)")
    set_layout(x)
    return check_reach(x.ndim, x.shape, x.strides, itemsize)


cdef int code_of_dlpack(DLDataType found) except -1:
    cdef int dtype
    if found.lanes == 1:
        for dtype in range(NDTYPES):
            if dlpack_code(dtype) == found.code \
                    and 8 * itemsize_of[dtype] == found.bits:
                return dtype
    raise BufferError(
        f"DLPack dtype (code {found.code}, {found.bits} bits, {found.lanes} lanes) is "
        "not a dtype of the array API")
