"""NDArrays as arguments of PyTorch's constructors, and in batches of its loaders.

Nobody has to import this module: ndx does when ``torch`` is imported.

``torch.asarray``, ``as_tensor``, ``tensor`` and ``from_numpy`` take NDArrays as they
take NumPy's arrays, with the same warnings and errors: PyTorch would take the bytes of
an NDArray for numbers of another type. NDArrays in lists, too: PyTorch would take their
elements for Python's floats, and make float32 of them. ``torch.from_dlpack`` warns if
an array is read-only, which PyTorch does not respect.

All other functions, methods, operators and indices of tensors ask numbers, masks and
index arrays for their protocol, ``__torch_function__``. It calls them with NumPy's.

``torch.utils.data.default_collate`` stacks NDArrays to a tensor, and
``default_convert`` makes tensors of them.

Examples
--------
>>> import ndx, torch
>>> torch.asarray(ndx.ones(2))
tensor([1., 1.], dtype=torch.float64)
>>> from torch.utils.data import default_collate
>>> default_collate([ndx.zeros(3), ndx.ones(3)]).shape
torch.Size([2, 3])
"""

import warnings

import numpy as np
import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from ndx._array.interchange import is_read_only_export
from ndx._borders import VALUE, Border, calling_with_numpys, convert, install
from ndx._core import NDArray
from ndx._lib.first_arguments import convert_first
from ndx._methods.exports import answer_torch, bear_writes

__all__ = ["register"]

# It asks for the name of an argument's module, "numpy", and leaves all else as it is.
BORDERS = (
    Border("torch.utils.data._utils.collate", "default_convert", {"data": VALUE}),
)


def broadcast(*values):
    """Broadcast tensors and numbers, which distributions take for tensors, too."""
    dtypes = [each.dtype for each in values if isinstance(each, torch.Tensor)]
    dtype = dtypes[0] if dtypes else torch.get_default_dtype()
    tensors = [
        torch.tensor(each.item(), dtype=dtype) if isinstance(each, np.generic) else each
        for each in values
    ]
    return torch.broadcast_tensors(*tensors)


def _collate(batch, *, collate_fn_map=None):
    views = [np.asarray(x) for x in batch]
    return default_collate_fn_map[np.ndarray](views, collate_fn_map=collate_fn_map)


def _copied(x):
    """Return the object from which PyTorch copies an array's elements."""
    if isinstance(x, list | tuple):
        return _without_ndarrays(x)
    return np.asarray(x) if x.device == "cpu" else torch.from_dlpack(x)


def _without_ndarrays(value):
    """Return lists of NumPy's arrays and numbers for those of NDArrays."""
    if type(value) in (list, tuple):
        return [_without_ndarrays(item) for item in value]
    return convert(value, VALUE)


def _shared(x):
    """Return the object whose memory PyTorch shares for an array; writes are borne."""
    if isinstance(x, NDArray):
        bear_writes(x)
    return _copied(x)


def _size(x):
    """Return the number for an array without dimensions, which is a length."""
    return np.asarray(x)[()]


def _bytes(x):
    """Return an array for `torch.frombuffer`, whose memory bears writes."""
    bear_writes(x)
    return x


def _exported(capsule):
    """Warn of a capsule of a read-only array, which PyTorch would take for writable."""
    if is_read_only_export(capsule):
        warnings.warn(
            "the array is read-only, and PyTorch has no read-only tensors: what is "
            "written to this one may change the array (but not the file that it is "
            "open over); torch.from_dlpack(x, copy=True) gives a copy",
            UserWarning,
            stacklevel=3,
        )
    return capsule


def register():
    """Have PyTorch's constructors and ``default_collate`` know NDArrays."""
    default_collate_fn_map[NDArray] = _collate
    convert_first(torch.asarray, "obj", NDArray, _shared, nested=True)
    convert_first(torch.as_tensor, "data", NDArray, _shared, nested=True)
    convert_first(torch.tensor, "data", NDArray, _copied, nested=True)
    # Of sizes one by one, PyTorch refuses a first one that has the protocol.
    for function in (torch.empty, torch.ones, torch.rand, torch.randn, torch.zeros):
        convert_first(function, "size", NDArray, _size)
    convert_first(torch.from_numpy, "ndarray", NDArray, _shared)
    convert_first(torch.frombuffer, "buffer", NDArray, _bytes)
    capsule = type(np.empty(0).__dlpack__())
    convert_first(torch._C._from_dlpack, "capsule", capsule, _exported)
    answer_torch(calling_with_numpys({torch.broadcast_tensors: broadcast}))
    install("torch", BORDERS)
