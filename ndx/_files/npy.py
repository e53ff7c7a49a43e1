"""NumPy's file format: the header, and the elements after it.

NumPy's own `numpy.lib.format` reads and writes the headers. The content of a file is
never trusted, and never unpickled. Each error names the file and the problem.

References
----------
https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

import io
import math
import os
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from ndx._files.replace import BLOCK, write_all
from ndx._lib.dtypes import is_known

__all__ = [
    "Header",
    "check_length",
    "make_header",
    "read_array",
    "read_header",
    "write_array",
]

_MOST_HEADER = 10_000
_MOST_AXES = 64


class Header(NamedTuple):
    """The description of the array in a file."""

    shape: tuple
    dtype: np.dtype
    fortran: bool
    offset: int  # of the first element
    nbytes: int  # of all elements


def make_header(shape, dtype, fortran):
    """Return the bytes before the elements of an array."""
    text = io.BytesIO()
    npy.write_array_header_1_0(
        text,
        {
            "descr": npy.dtype_to_descr(dtype),
            "fortran_order": bool(fortran),
            "shape": shape,
        },
    )
    return text.getvalue()


def read_header(fd, path):
    """Return the header of an open file, after checking it against the file's length.

    Raises
    ------
    ValueError
        If it is not such a file, if it is truncated, or its elements are not numbers.
    """
    length = os.fstat(fd).st_size
    with open(fd, "rb", closefd=False) as file:
        start = file.read(8)
        if len(start) < 8 or not start.startswith(npy.MAGIC_PREFIX):
            raise _bad(path, _what_else(start))
        version = tuple(start[6:8])
        # Version 3 differs from 2 in names of fields, which ndx's arrays don't have.
        read, width = {
            (1, 0): (npy.read_array_header_1_0, 2),
            (2, 0): (npy.read_array_header_2_0, 4),
            (3, 0): (npy.read_array_header_2_0, 4),
        }.get(version, (None, 0))
        if read is None:
            found = ".".join(map(str, version))
            msg = f"version {found} of the format is not known; 1.0, 2.0 and 3.0 are"
            raise _bad(path, msg)
        size = file.read(width)
        nbytes = int.from_bytes(size, "little")
        if nbytes > _MOST_HEADER:
            msg = f"its header has {nbytes} bytes; {_MOST_HEADER} are the most"
            raise _bad(path, msg)
        text = file.read(nbytes)
        if len(size) < width or len(text) < nbytes:
            msg = f"it is cut short: its header does not end within its {length} bytes"
            raise _bad(path, msg)
    try:
        shape, fortran, dtype = read(io.BytesIO(size + text))
    except Exception as error:  # a malformed header may raise anything
        raise _bad(path, f"its header can't be read: {error}") from error
    offset = len(start) + len(size) + len(text)
    return _checked(Header(shape, dtype, fortran, offset, 0), length, path)


def _what_else(start):
    if not start:
        return "it is empty"
    if start.startswith(b"PK"):
        return "it is a zip archive (.npz?); numpy.load reads those"
    if start.startswith(b"\x80"):
        return "it is a pickle, perhaps, which ndx never reads"
    return f"it starts with {start!r}"


def _checked(header, length, path):
    """Return a valid header with its `nbytes` set, or raise ValueError."""
    shape, dtype = header.shape, header.dtype
    if dtype.hasobject:
        msg = f"its elements ({dtype}) are pickled objects, which ndx never reads"
        raise _bad(path, msg)
    if not is_known(dtype.newbyteorder("=")):
        msg = (
            f"its elements are {dtype}, which is not a dtype of the array API; "
            "numpy.load reads it"
        )
        raise _bad(path, msg)
    if len(shape) > _MOST_AXES:
        msg = f"its shape has {len(shape)} axes; {_MOST_AXES} are the most"
        raise _bad(path, msg)
    if any(isinstance(n, bool) or n < 0 for n in shape):
        raise _bad(path, f"its shape is {shape}")
    span = math.prod(n or 1 for n in shape) * dtype.itemsize
    nbytes = 0 if 0 in shape else span
    if span >= 2**63:
        raise _bad(path, f"its shape is {shape}, which no memory can hold")
    header = header._replace(nbytes=nbytes)
    check_length(header, length, path)
    return header


def check_length(header, length, path):
    """Raise if a file of `length` bytes ends before the last element."""
    if header.offset + header.nbytes > length:
        msg = (
            f"it is cut short: shape {header.shape} of {header.dtype} needs "
            f"{header.nbytes} bytes after the header of {header.offset}, and the file "
            f"has {length} in all"
        )
        raise _bad(path, msg)


def _bad(path, what):
    return ValueError(f"{path!r} is not a .npy file that ndx can read: {what}")


def read_array(fd, header, out, path):
    """Read the elements into an array of the header's layout, in native byte order."""
    flat = (out.T if header.fortran else out).reshape(-1)
    swapped = not header.dtype.isnative
    count = BLOCK // header.dtype.itemsize
    with open(fd, "rb", buffering=0, closefd=False) as file:
        file.seek(header.offset)
        for first in range(0, flat.size, count):
            block = flat[first : first + count]
            left = memoryview(block.view(np.uint8))
            while left.nbytes:
                done = file.readinto(left)
                if not done:
                    msg = "it was cut short while it was read"
                    raise _bad(path, msg)
                left = left[done:]
            if swapped:
                block.byteswap(inplace=True)


def write_array(fd, x):
    """Write a NumPy array's elements: in Fortran order if it is only F-contiguous."""
    if x.flags.c_contiguous or x.flags.f_contiguous:
        flat = (x if x.flags.c_contiguous else x.T).reshape(-1)
        write_all(fd, flat.view(np.uint8))
        return
    blocks = np.nditer(
        x,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=[["readonly", "contig"]],
        buffersize=max(1, BLOCK // 16 // x.itemsize),
        order="C",
    )
    for block in blocks:
        write_all(fd, block.view(np.uint8))
