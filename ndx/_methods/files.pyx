"""The methods of arrays in files: `flush` and `commit`.

docs/files.md says what a crash leaves in a file.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject

import sys
from errno import EFAULT

from ndx._arenas.persistent cimport FileArena
from ndx._array.pinning cimport Operands, hold, let_go, put
from ndx._array.storage cimport BaseArray, array_words, loss_error, require_live
from ndx._files.mapped_file cimport MappedFile
from ndx.backends.persistent_file cimport FileBackend

from ndx._files.replace import Replacement
from ndx.backends._pressure import release_on_disk


cdef MappedFile file_of(BaseArray x, str wanted):
    """Return the file of an array, or raise ValueError if it is in no lasting file."""
    cdef PyObject *memory_owner = x.block.memory_owner
    cdef PyObject *parent = x.block.parent
    require_live(x)
    if memory_owner != NULL and isinstance(<object>memory_owner, MappedFile):
        return <MappedFile>memory_owner
    if parent != NULL and isinstance(<object>parent, FileArena) \
            and (<FileArena>parent).holds(x.block):
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
