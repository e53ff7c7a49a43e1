"""Arrays in files: `flush`, `commit`, and what NumPy writes to a path.

NumPy empties the file at a path before it writes. Here the old file stays until the new
one is whole: an array that is written may be mapped from it. docs/files.md says what a
crash leaves in a file.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory

import importlib
import io
import os
import sys
from errno import EFAULT
from functools import partial

import numpy as np

from ndx._arenas.arena cimport FileArena
from ndx._array.pinning cimport Operands, hold, let_go, put
from ndx._array.storage cimport (
    BaseArray, array_words, is_array, loss_error, require_live,
)
from ndx._blocks.block cimport Block, block_part
from ndx._files.mapping cimport MappedFile
from ndx._lib.dtypes cimport itemsize_of
from ndx._methods.numpy_dispatch cimport call_function, call_method
from ndx._methods.numpy_function_table cimport add_whole
from ndx._methods.numpy_layout cimport pickle_of
from ndx.backends.persistent_file cimport FileBackend

from ndx._files.replace import Replacement, written_whole
from ndx.backends._pressure import release_on_disk


cdef MappedFile file_of(BaseArray x, str wanted):
    """Return the file of an array, or raise ValueError if it is in no lasting file."""
    memory_owner = block_part(x.block, &x.block.memory_owner)
    parent = block_part(x.block, &x.block.parent)
    require_live(x)
    if isinstance(memory_owner, MappedFile) and (<MappedFile>memory_owner).fd >= 0:
        return memory_owner
    if isinstance(parent, FileArena) and (<FileArena>parent).holds(x.block):
        return (<FileBackend>(<FileArena>parent).home).file
    raise ValueError(
        f"the {array_words(x)} can't be {wanted}: it is in no file that it could keep; "
        "ndx.save(path, x) writes it to one, and ndx.open(path, 'w+', shape=...) makes "
        "one in a file")


cdef int flush(BaseArray x) except -1:
    cdef MappedFile file = file_of(x, "flushed")
    cdef Operands operands
    if file.mode == "r" or file.mode == "c":
        todo = "x.commit() writes the file anew" if file.mode == "c" else \
            "nothing can have changed"
        raise ValueError(
            f"the {array_words(x)} can't be flushed: its file {file.path!r} is open "
            f"with mode {file.mode!r}, in which nothing is written to it; {todo}")
    operands.count = 0
    put(&operands, x)
    hold(&operands)
    try:
        file.flush()
    finally:
        let_go(&operands)
    return 0


cdef int commit(BaseArray x) except -1:
    cdef MappedFile file = file_of(x, "committed")
    cdef Operands operands
    if file.mode != "c":
        todo = "open it with mode 'c'" if file.mode == "r" else \
            "what is written goes to the file itself: x.flush() waits for the disk"
        raise ValueError(
            f"the {array_words(x)} can't be committed: its file {file.path!r} is open "
            f"with mode {file.mode!r}; {todo}")
    operands.count = 0
    put(&operands, x)
    hold(&operands)
    try:
        file.check_whole()
        with Replacement(file.path, file.nbytes, release_on_disk) as new:
            try:
                new.write(PyMemoryView_FromMemory(file.start, file.nbytes, PyBUF_READ))
            except OSError as error:
                if error.errno == EFAULT:
                    raise loss_error(array_words(x), file.path) from None
                raise
            file.check_whole()
            new.install()
            new.reopen()
            # The mapping may switch to the new file only if no other thread, operation
            # or export can have written since the copy: such a write would be lost.
            # This may be the callback of an operation whose threads go on.
            if x.block.exports == NULL and x.block.pins == 1 \
                    and len(sys._current_frames()) == 1:
                file.go_on_with(new.fd)
    finally:
        let_go(&operands)
    return 0


# ---------------------------------------------------------------- NumPy's functions

# Bytes of the header of an array in NumPy's format.
cdef int HEADER = 128
# By the suffix of a path, the module by which `numpy.savetxt` compresses.
cdef dict PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma", ".lzma": "lzma"}


cdef bint is_path(object file) except -1:
    return isinstance(file, (str, bytes, os.PathLike))


cdef int write_pickle(BaseArray x, object file) except -1:
    """Write a pickle of an array to an open file, or to a path."""
    data = pickle_of(x)
    if not is_path(file):
        file.write(data)
        return 0
    with written_whole(file, len(data), release_on_disk) as opened:
        opened.write(data)
    return 0


cdef int write_elements(BaseArray x, object file, object sep, object format) except -1:
    """Write the elements to an open file, or to a path, as `numpy.ndarray.tofile`."""
    named = {"sep": sep, "format": format}
    try:
        if not is_path(file):
            call_method("tofile", (x, file), named)
            return 0
        nbytes = 0 if sep else x.size * itemsize_of[x.dtype]
        with written_whole(file, nbytes, release_on_disk) as opened:
            call_method("tofile", (x, opened), named)
    except OSError:
        check_readable((x,))
        raise
    return 0


cdef int check_readable(tuple written) except -1:
    """Raise if a file that an array is mapped from is the cause of a failed write.

    NumPy says how much was written, but not that the rest can't be read.
    """
    cdef Block *block
    for x in written:
        if not is_array(x):
            continue
        block = (<BaseArray>x).block
        memory_owner = block_part(block, &block.memory_owner)
        if isinstance(memory_owner, MappedFile):
            (<MappedFile>memory_owner).check_whole()
    return 0


cdef tuple path_and_rest(str name, tuple args, dict kwargs):
    """Return a first argument, by position or name, and the other arguments."""
    if args:
        return args[0], args[1:], kwargs
    rest = dict(kwargs)
    return rest.pop(name, None), args, rest


def _save(function, suffix, args, kwargs):
    """Compute `save`, `savez` or `savez_compressed` to a path."""
    file, args, kwargs = path_and_rest("file", args, kwargs)
    if not isinstance(file, (str, os.PathLike)):
        return NotImplemented
    path = os.fspath(file)
    if not isinstance(path, str):
        return NotImplemented
    if not path.endswith(suffix):
        path += suffix
    nbytes = 0 if function is np.savez_compressed else sum([
        HEADER + getattr(x, "nbytes", 0) for x in [*args, *kwargs.values()]])
    try:
        with written_whole(path, nbytes, release_on_disk) as opened:
            call_function(function, (opened, *args), kwargs)
    except OSError:
        check_readable((*args, *kwargs.values()))
        raise


def _savetxt(args, kwargs):
    """Compute `savetxt` to a path, packed if its suffix says so."""
    file, args, kwargs = path_and_rest("fname", args, kwargs)
    if not isinstance(file, (str, os.PathLike)):
        return NotImplemented
    encoding = kwargs.get("encoding")
    suffix = os.path.splitext(os.fsdecode(file))[1]
    with written_whole(file, 0, release_on_disk) as opened:
        if suffix in PACKED:
            packer = importlib.import_module(PACKED[suffix])
            text = packer.open(opened, "wt", encoding=encoding)
        else:
            text = io.TextIOWrapper(opened, encoding=encoding)
        call_function(np.savetxt, (text, *args), kwargs)
        text.flush()
        if suffix in PACKED:
            text.close()
        else:
            text.detach()


add_whole(np.save, partial(_save, np.save, ".npy"))
add_whole(np.savez, partial(_save, np.savez, ".npz"))
add_whole(np.savez_compressed, partial(_save, np.savez_compressed, ".npz"))
add_whole(np.savetxt, _savetxt)
