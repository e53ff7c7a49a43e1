"""Moves the arrays that a decorated function returns out of its workspace."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject

from ndx._arenas.arena cimport Arena
from ndx._array.storage cimport BaseArray
from ndx._blocks.block cimport Block, block_is_usable
from ndx._context.context cimport outer_backend

from ndx._lib.trees import leaves


cdef object detach_results(Arena arena, object result):
    """Move the arrays in a function's result out of the scope that it ran in.

    `arena` is the scope's; None for a workspace without an arena.
    """
    if arena is not None:
        rescue_from(arena, result)
        if arena.mirror is not None:
            rescue_from(arena.mirror, result)
    return result


cdef int rescue_from(Arena arena, object result) except -1:
    cdef dict found = arrays_in(arena, result)
    cdef Block **blocks
    cdef Py_ssize_t count = 0
    cdef BaseArray x
    if not found:
        return 0
    blocks = <Block **>PyMem_RawMalloc(len(found) * sizeof(Block *))
    if blocks == NULL:
        raise MemoryError("no memory to detach a result")
    try:
        for x in found.values():
            blocks[count] = x.block
            count += 1
        arena.move_out(blocks, count, outer_backend())
    finally:
        PyMem_RawFree(blocks)
    return 0


cdef dict arrays_in(Arena arena, object result):
    """Return one array of each block of an arena in a nested result."""
    cdef BaseArray x
    cdef dict found = {}
    for leaf in (result,) if isinstance(result, BaseArray) else leaves(result):
        if isinstance(leaf, BaseArray):
            x = leaf
            if block_is_usable(x.block) and x.block.parent == <PyObject *>arena:
                found[<size_t>x.block] = x
    return found
