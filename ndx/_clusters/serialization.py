"""NDArrays between the processes of distributed.

Nobody has to import this module: ndx does when distributed is imported. An array is
sent as a header and the bytes of its memory, without a copy. It is received into memory
of the current backend, so that a worker's limit counts it.

Two kinds of arrays are copied before they are sent: those of a GPU, and those in mapped
files, whose pages may be lost while others read them.
"""

import pickle

import numpy as np
from distributed.protocol.serialize import dask_deserialize, dask_serialize

import ndx

__all__ = ["deserialize", "register", "serialize"]


def without_repeats(x):
    """Return an array with one element along each axis that repeats its memory."""
    if 0 not in x.strides:
        return x
    return x[tuple(slice(1 if stride == 0 else None) for stride in x.strides)]


def serialize(x):
    """Return the header and the frames of an array: one, over the array's memory."""
    number = type(x) is not ndx.NDArray
    stored = x[...] if number else without_repeats(x)
    _, (data, dtype, shape, order, _) = stored.__reduce_ex__(5)
    header = {"dtype": dtype, "shape": shape, "order": order}
    if x.shape != shape:
        header["broadcast_to"] = x.shape
    if number:
        header["number"] = True
    return header, [pickle.PickleBuffer(data).raw()]


def deserialize(header, frames):
    """Return the array, as a copy in memory of the current backend."""
    (frame,) = frames
    sent = np.frombuffer(frame, dtype=header["dtype"])
    sent = sent.reshape(header["shape"], order=header["order"])
    with ndx.no_workspace():
        x = ndx.asarray(sent, copy=True)
    if "number" in header:
        return x[()]
    if "broadcast_to" in header:
        return ndx.broadcast_to(x, header["broadcast_to"])
    return x


def register():
    """Register NDArrays with distributed."""
    dask_serialize.register(ndx.NDArray, serialize)
    dask_deserialize.register(ndx.NDArray, deserialize)
