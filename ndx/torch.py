"""NDArrays in batches of PyTorch's loaders of data.

Nobody has to import this module: ndx does when ``torch.utils.data`` is imported.
``torch.utils.data.default_collate`` stacks NDArrays to a tensor, as it does NumPy's
arrays. ``torch.as_tensor`` shares the memory of an NDArray without any registration.

Examples
--------
>>> import ndx, torch
>>> from torch.utils.data import default_collate
>>> default_collate([ndx.zeros(3), ndx.ones(3)]).shape
torch.Size([2, 3])
"""

import numpy as np
from torch.utils.data._utils.collate import default_collate_fn_map

from ndx._core import NDArray

__all__ = ["register"]


def _collate(batch, *, collate_fn_map=None):
    views = [np.asarray(x) for x in batch]
    return default_collate_fn_map[np.ndarray](views, collate_fn_map=collate_fn_map)


def register():
    """Register NDArrays with ``default_collate``."""
    default_collate_fn_map[NDArray] = _collate
