"""NDArrays as arguments of PyTorch's constructors, and in batches of its loaders.

Nobody has to import this module: ndx does when ``torch`` is imported.

``torch.asarray``, ``as_tensor``, ``tensor`` and ``from_numpy`` take NDArrays as they
take NumPy's arrays, with the same warnings and errors: PyTorch would take the bytes of
an NDArray for numbers of another type. ``torch.from_dlpack`` warns if an array is
read-only, which PyTorch does not respect. ``torch.utils.data.default_collate`` stacks
NDArrays to a tensor.

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
from ndx._core import NDArray
from ndx._lib.first_arguments import convert_first
from ndx._methods.exports import bear_writes

__all__ = ["register"]


def _collate(batch, *, collate_fn_map=None):
    views = [np.asarray(x) for x in batch]
    return default_collate_fn_map[np.ndarray](views, collate_fn_map=collate_fn_map)


def _copied(x):
    """Return the object from which PyTorch copies an array's elements."""
    return np.asarray(x) if x.device == "cpu" else torch.from_dlpack(x)


def _shared(x):
    """Return the object whose memory PyTorch shares for an array; writes are borne."""
    bear_writes(x)
    return _copied(x)


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
    convert_first(torch.asarray, "obj", NDArray, _shared)
    convert_first(torch.as_tensor, "data", NDArray, _shared)
    convert_first(torch.tensor, "data", NDArray, _copied)
    convert_first(torch.from_numpy, "ndarray", NDArray, _shared)
    convert_first(torch.frombuffer, "buffer", NDArray, _bytes)
    capsule = type(np.empty(0).__dlpack__())
    convert_first(torch._C._from_dlpack, "capsule", capsule, _exported)
