"""Which lines of the program made the arrays that are alive, while somebody asks."""

from ndx._array.living cimport note_time, set_find_maker
from ndx._lib.guards cimport set_makers
from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx._lib.unraisable cimport raise_later
from ndx._recording.call_stacks cimport CallStacks

__all__ = ["is_tracking", "stack_of", "track_stacks"]

cdef enum:
    MOST_STACKS = 1 << 20        # different ones; what comes later has no maker

# Arrays have its numbers: there is one for the whole process.
cdef CallStacks makers = CallStacks.__new__(CallStacks)


cdef unsigned int find_maker() noexcept:
    """Return the number of the running stack, from 1 on; 0: there is none."""
    cdef PendingError pending = set_error_aside()
    cdef int number = -1
    try:
        if len(makers.stacks) < MOST_STACKS:
            number = makers.stack_number()
    except BaseException as error:
        raise_later(error)
    note_time()
    put_error_back(pending)
    return <unsigned int>(number + 1)


def track_stacks(Py_ssize_t depth):
    """Note the innermost lines of the stack that makes an array; 0: no more."""
    makers.depth = depth
    if depth:
        set_find_maker(find_maker)
        set_makers(find_maker, stack_of)
    else:
        set_find_maker(NULL)
        set_makers(NULL, stack_of)


def is_tracking():
    """Return whether what makes arrays is noted now."""
    return makers.depth > 0


def stack_of(unsigned int number):
    """Return the lines of a maker, innermost first; none if it is not known."""
    if not number:
        return ()
    return tuple([makers.lines[line] for line in makers.stacks[number - 1]])
