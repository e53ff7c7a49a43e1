"""How many threads compute an operation, and the pool that they come from.

`parallel_for` is for code that holds its operands, and released the GIL by
`_array.pinning`. Whatever is computed must not depend on the number of threads: parts
write to memory of their own, and what is combined is combined in a fixed order.
"""

import operator
import os

from ndx._array.pinning cimport Compute, Operands, compute_held
from ndx._array.storage cimport BaseArray
from ndx._compute.aliasing cimport is_distinct
from ndx._compute.passes.tiles cimport Grid, cut, find_place, tile_walk, walk_size
from ndx._lib.dtypes cimport KIND_COMPLEX, kind_of
from ndx._lib.layout cimport MAXDIMS, MAXOPS, Walk, walk_merge

from ndx._lib.system import usable_cores

__all__ = ["get_num_threads", "set_num_threads"]

CORES = usable_cores()  # read once: it opens the files of control groups

cdef extern from "ndx/internal/thread_pool.h" nogil:
    int NDX_MOST_THREADS
    int ndx_thread_count()
    void ndx_set_thread_count(int count)
    void ndx_parallel_for(Py_ssize_t count, Part part, void *arg)


cdef int thread_count() noexcept nogil:
    return ndx_thread_count()


cdef void parallel_for(Py_ssize_t count, Part part, void *arg) noexcept nogil:
    """Compute the parts 0 to ``count - 1``, each once, on all threads.

    The calling thread takes part; it computes alone while another operation has the
    threads.
    """
    ndx_parallel_for(count, part, arg)


def get_num_threads() -> int:
    """Return how many threads compute a large operation, the calling one included.

    Returns
    -------
    int

    See Also
    --------
    set_num_threads : Change it.

    Examples
    --------
    >>> import ndx
    >>> ndx.get_num_threads() >= 1
    True
    """
    return ndx_thread_count()


def set_num_threads(n: int) -> None:
    """Set how many threads compute a large operation, the calling one included.

    Results don't depend on it, to the last bit. It holds for the whole process.

    Parameters
    ----------
    n : int
        From 1, for the calling thread alone, to 256.

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `n` is out of range.

    See Also
    --------
    get_num_threads : The number in use.
    passes : Threads of operations on large arrays in files.

    Notes
    -----
    The default is the environment's ``NDX_NUM_THREADS``, else the first number of
    ``OMP_NUM_THREADS``, else as many cores as the process may use: those of its CPU
    affinity, and no more than its control group has CPU time for. The threads are
    shared by the process and sleep between operations. An operation that begins while
    another thread's has them is computed by its own thread. The libraries behind
    matrix products have threads of their own, which this does not change.

    Examples
    --------
    >>> import ndx
    >>> before = ndx.get_num_threads()
    >>> ndx.set_num_threads(1)
    >>> ndx.get_num_threads()
    1
    >>> ndx.set_num_threads(before)
    """
    ndx_set_thread_count(check_count(n))


cdef int check_count(object n) except -1:
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(
            f"the number of threads is an int, not {type(n).__name__}; valid are 1 to "
            f"{NDX_MOST_THREADS}") from None
    if not 1 <= count <= NDX_MOST_THREADS:
        raise ValueError(
            f"the number of threads can't be {count}; valid are 1 to "
            f"{NDX_MOST_THREADS}")
    return count


def count_from_environment(environment):
    """Return the number of threads that the environment asks for, or the cores.

    Raises
    ------
    ValueError
        If ``NDX_NUM_THREADS`` is invalid.
    """
    if environment.get("NDX_NUM_THREADS"):
        text = environment["NDX_NUM_THREADS"]
        try:
            return check_count(int(text))
        except ValueError:
            raise ValueError(
                f"in the environment, NDX_NUM_THREADS={text!r} is no number of "
                f"threads; valid are 1 to {NDX_MOST_THREADS}") from None
    # A list has a number for each level of nested regions.
    first = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    count = int(first) if first.isdecimal() and first.isascii() else 0
    return max(1, min(count or CORES, NDX_MOST_THREADS))


ndx_set_thread_count(count_from_environment(os.environ))


# ---- Elementwise operations on many elements -----------------------------------------

cdef enum:
    # Bytes of all operands from which threads pay: measured with 2 of them.
    WORTHWHILE = 2 << 20
    WORTHWHILE_IF_SLOW = 640 << 10
    PART = 256 << 10
    LINE = 64                    # elements: whole cache lines of any dtype

# Operations that take several times as long as reading and writing their elements.
cdef frozenset slow = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp",
    "expm1", "floor_divide", "hypot", "log", "log10", "log1p", "log2", "logaddexp",
    "nextafter", "pow", "remainder", "sin", "sinh", "tan", "tanh",
))
SLOW = slow  # for Python


# An operation cut into parts.
cdef struct Parts:
    Compute function
    void *arg
    char **data
    const Walk *walk
    Grid grid


cdef int compute_parts(Operands *operands, const Walk *walk,
                       const Py_ssize_t *itemsizes, Compute function, void *arg,
                       str name) except -1:
    """Compute on held operands without the GIL; on all threads where that pays.

    `function` computes each element of the last operand from the same element of the
    others. Of several values for one place the last is kept, by one thread.
    """
    cdef Parts parts
    cdef Py_ssize_t each = 0, least = WORTHWHILE
    cdef int op, last = walk.ndim - 1
    for op in range(walk.nops):
        each += itemsizes[op]
    if name in slow:
        least = WORTHWHILE_IF_SLOW
    if last < 0 or walk_size(walk) < least // each \
            or (thread_count() < 2 and not depends_on_parts(operands, name)) \
            or not is_distinct(walk.ndim, walk.shape, walk.strides[walk.nops - 1],
                               itemsizes[walk.nops - 1]):
        return compute_held(operands, walk, function, arg)
    cut(&parts.grid, walk, itemsizes, PART, -1, 0)
    if parts.grid.tile[last] < walk.shape[last]:
        # No two threads write to one cache line.
        parts.grid.tile[last] += -parts.grid.tile[last] & (LINE - 1)
        parts.grid.total //= parts.grid.counts[last]
        parts.grid.counts[last] = \
            (walk.shape[last] + parts.grid.tile[last] - 1) // parts.grid.tile[last]
        parts.grid.total *= parts.grid.counts[last]
    parts.function = function
    parts.arg = arg
    return compute_held(operands, walk, compute_all, &parts)


cdef bint depends_on_parts(const Operands *operands, str name):
    """Whether the last bits depend on the steps and lengths that loops are called with.

    One thread then computes the same parts as more do, so that results are equal.
    Operations on real numbers that are not slow are exact.
    """
    cdef int op
    for op in range(operands.count):
        if operands.arrays[op] != NULL and kind_of[
                (<BaseArray>operands.arrays[op]).dtype] == KIND_COMPLEX:
            return True
    return name in slow


cdef void compute_all(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Parts *parts = <Parts *>arg
    parts.data = data
    parts.walk = walk
    parallel_for(parts.grid.total, compute_part, parts)


cdef void compute_part(void *arg, Py_ssize_t index) noexcept nogil:
    cdef const Parts *parts = <const Parts *>arg
    cdef Py_ssize_t place[MAXDIMS]
    cdef char *data[MAXOPS]
    cdef Walk tile
    cdef int op, axis
    find_place(&parts.grid, index, place)
    tile_walk(&parts.grid, place, parts.walk, &tile)
    for op in range(tile.nops):
        data[op] = parts.data[op]
        for axis in range(tile.ndim):
            data[op] += place[axis] * parts.grid.tile[axis] * tile.strides[op][axis]
    walk_merge(&tile)
    parts.function(parts.arg, data, &tile)
