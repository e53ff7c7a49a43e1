"""Patterns in memory that show writes and reads out of bounds, and their reports.

References
----------
CPython's debug hooks on its allocators fill memory, and guard it, with the same bytes
0xDD and 0xFD: https://docs.python.org/3/c-api/memory.html#debug-hooks. Arrow's
ARROW_DEBUG_MEMORY_POOL has the same modes.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport abort

from ndx._lib.free_threading cimport ndx_load_address, ndx_store_address
from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx._lib.unraisable cimport queue, report_ignored

import faulthandler
import os
import warnings

from ndx._lib.damage import Damage as MemoryDamage
from ndx._lib.damage import text_of
from ndx._lib.errors import MemoryDamageError

cdef tuple MODES = ("", "warn", "raise", "abort")
cdef tuple PLACES = ("before", "behind", "freed")


cdef Mode mode_from(object value) except *:
    """Return the mode that the variable's value names."""
    if value not in MODES:
        raise ValueError(
            f"in the environment, NDX_DEBUG_MEMORY={value!r} is not valid; valid are "
            f"{', '.join(MODES[1:])}, or no value for no guards")
    return <Mode>MODES.index(value)


guards.mode = mode_from(os.environ.get("NDX_DEBUG_MEMORY", ""))
guards.find_maker = NULL

# Address of a range in use -> the number of the stack that made it, if that was asked.
cdef dict makers = {}
cdef object stack_of_maker = None


cdef void find_change(const char *ptr, size_t nbytes, unsigned char byte,
                      Damage *out) noexcept nogil:
    """Describe what was written to a range that was filled with a byte."""
    cdef size_t first = 0, last = nbytes - 1, i
    while first < last and <unsigned char>ptr[first] == byte:
        first += 1
    while last > first and <unsigned char>ptr[last] == byte:
        last -= 1
    out.first = first
    out.last = last
    out.origin = NULL
    for i in range(min(<size_t>SHOWN, last - first + 1)):
        out.found[i] = ptr[first + i]


cdef object described(const Damage *damage, backend, workspace):
    """Return damage as users see it."""
    cdef bytes found = damage.found[:min(SHOWN, damage.last - damage.first + 1)]
    line = None if damage.origin == NULL else <object>damage.origin
    # In an arena, the maker of this address is that of the arena.
    if workspace is None and makers:
        number = makers.get(damage.address)
        lines = () if number is None else stack_of_maker(number)
        line = lines[0] if lines else None
    return MemoryDamage(
        PLACES[damage.place], damage.address, damage.nbytes, damage.first,
        damage.last, found, backend, workspace, line)


def act(list damages not None):
    """Warn of damage, raise it, or abort the process with a report of it."""
    text = text_of(damages)
    if guards.mode == WARN:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    elif guards.mode == ABORT:
        os.write(2, f"ndx: {text}\n".encode(errors="replace"))
        faulthandler.dump_traceback(file=2)
        abort()
    else:
        raise MemoryDamageError(text, damages)


cdef void tell(list damages) noexcept:
    """Report damage from where nothing can be raised.

    What is to be raised the main thread raises as soon as it can.
    """
    cdef PendingError pending = set_error_aside()
    try:
        act(damages)
    except BaseException as error:
        if not queue(error):
            report_ignored(act, error)
    put_error_back(pending)


# ---- who made a range, while `ndx.memory.track` asks ---------------------------------

cdef int set_makers(FindMaker find_maker, object stack_of) except -1:
    """Set the functions that find the running stack, and its lines by number."""
    global stack_of_maker
    stack_of_maker = stack_of
    ndx_store_address(<const void **>&guards.find_maker, <const void *>find_maker)
    if find_maker == NULL:
        makers.clear()
    return 0


cdef void note_maker(const char *ptr) noexcept:
    """Take note of who makes a range, if somebody asks, and there is memory for it."""
    cdef FindMaker find = <FindMaker>ndx_load_address(
        <const void *const *>&guards.find_maker)
    cdef unsigned int number = 0 if find == NULL else find()
    try:
        if number:
            makers[<uintptr_t>ptr] = number
    except MemoryError:
        pass


cdef void forget_maker(const char *ptr) noexcept:
    if makers:
        makers.pop(<uintptr_t>ptr, None)
