"""Export of arrays to other libraries: array interfaces and DLPack."""

from itertools import islice
from operator import index

import numpy as np

from ndx._array.dispatch cimport engine_of
from ndx._array.interchange cimport dlpack_device, to_dlpack
from ndx._array.storage cimport (
    BaseArray, ExportGuard, array_words, export_array, guard_export, new_detached_like,
    numpy_view, require_live, require_usable,
)
from ndx._blocks.block cimport block_part
from ndx._compute.copies cimport copy_into
from ndx._files.mapping cimport Mapped, MappedFile, find_mapping
from ndx._lib.dtypes cimport BOOL, INT32, INT64, dtype_object
from ndx._methods.display cimport readable

from ndx._files.mapping import make_private


cdef object as_numpy(BaseArray x, object dtype, object copy):
    """Return a NumPy array, over the same memory unless a copy is needed."""
    view = numpy_view(x)
    if dtype is not None and np.dtype(dtype) != view.dtype:
        if copy is False:
            raise ValueError(
                f"an array of {dtype_object(x.dtype)} can't be seen as {dtype} "
                "without a copy")
        return view.astype(dtype)
    return view.copy() if copy else view


cdef object array_interface(BaseArray x):
    """Return ``__array_interface__``; the export lasts until the array dies."""
    if x.block.device:
        raise AttributeError(
            "the CPU can't read a device's memory; x.to_device('cpu') returns a copy "
            "that it can")
    require_live(x)
    if x.own_export == NULL:
        x.own_export = export_array(x)
    return numpy_view(x).__array_interface__


cdef object device_interface(BaseArray x):
    """Return the interface of an array on a device; exports it until it dies."""
    if not x.block.device:
        raise AttributeError("the array is not on a GPU")
    # It stays where it is from now on.
    cdef ExportGuard guard = guard_export(x)
    found = engine_of(x.block.device).interface(x)
    if x.own_export == NULL:
        x.own_export, guard.export = guard.export, NULL
    return found


# What PyTorch's functions ask of NDArrays, once PyTorch is imported.
cdef object called_by_torch = None


def answer_torch(function):
    """Have NDArrays return a function as ``__torch_function__``."""
    global called_by_torch
    called_by_torch = function


cdef object torch_function(BaseArray x):
    """Return ``__torch_function__`` of numbers, masks and index arrays.

    Others lack it: PyTorch's old constructors (``torch.Tensor(x)``) refuse what has it.
    """
    if called_by_torch is None or (x.ndim and x.dtype not in (BOOL, INT32, INT64)):
        raise AttributeError("the array is no number or index, or there is no PyTorch")
    return called_by_torch


cdef object export_dlpack(BaseArray x, object stream, object max_version,
                          object dl_device, object copy):
    """Return a DLPack capsule on the device that the consumer asks for."""
    cdef BaseArray exported = x
    # The protocol does not tell whether a consumer takes any strides and respects
    # read-only memory. NumPy and ndx do: they pass an explicit None, which PyTorch,
    # which does neither, never does.
    cdef bint careful = dl_device is None or copy is None
    cdef bint copied = copy is not ... and bool(copy)
    cdef tuple device = None if dl_device is None or dl_device is ... else pair(
        dl_device, "dl_device")
    cdef bint versioned = max_version is not None and pair(
        max_version, "max_version") >= (1, 0)
    require_usable(x)
    if device is not None and device != dlpack_device(x):
        if device != (1, 0):
            raise BufferError(
                f"the array is on DLPack device {dlpack_device(x)}, and can't be "
                f"exported to {device}")
        if copy is False:
            raise BufferError("copy=False, but the CPU can't read a device's memory")
        exported = readable(x)
        copied, stream = True, None
    elif copied:
        exported = new_detached_like(x, None)
        copy_into(exported, x)
    if stream is not None and not exported.block.device:
        raise BufferError(f"the CPU has no streams; got stream={stream!r}")
    if versioned and not careful:
        bear_writes(exported)
    capsule = to_dlpack(exported, versioned, copied, careful)
    if exported.block.device:
        # Now that it stays where it is.
        engine_of(exported.block.device).hand_to_stream(exported, stream)
    return capsule


def bear_writes(BaseArray x not None):
    """Let consumers that write to read-only memory neither crash nor change a file.

    A file that is open with mode ``"r"`` is mapped without the right to write. Its
    mapping becomes a private one, so that what is written stays in this process.

    Raises
    ------
    BufferError
        If the system refuses.
    """
    cdef Mapped mapped
    owner = block_part(x.block, &x.block.memory_owner)
    if not x.block.readonly or not isinstance(owner, MappedFile) \
            or not find_mapping((<MappedFile>owner).start, &mapped) \
            or not mapped.shared:
        return
    try:
        make_private(<size_t>mapped.start)
    except OSError as error:
        raise BufferError(
            f"the {array_words(x)} is read-only, and its file can't be mapped so that "
            f"others may write to it in memory ({error}); give them a copy: "
            "ndx.asarray(x, copy=True)") from error


cdef tuple pair(object value, str what):
    """Return a consumer's argument as a pair of ints."""
    cdef tuple found
    try:
        found = tuple([index(item) for item in islice(value, 3)])
    except TypeError:
        found = ()
    if len(found) != 2:
        raise TypeError(f"{what} must be a pair of ints, not {value!r}")
    return found
