"""How many threads compute an operation, and the pool that they come from.

`parallel_for` is for code that holds its operands, and released the GIL by
`_array.pinning`. Whatever is computed must not depend on the number of threads: parts
write to memory of their own, and what is combined is combined in a fixed order.
"""

import operator
import os
import threading

from ndx._lib.system import usable_cores

__all__ = ["get_num_threads", "set_num_threads"]

CORES = usable_cores()  # read once: it opens the files of control groups

cdef extern from "ndx/internal/thread_pool.h" nogil:
    int NDX_MOST_THREADS
    int ndx_thread_count()
    void ndx_set_thread_count(int count)
    void ndx_parallel_for(Py_ssize_t count, bint alone, Part part, void *arg)
    void ndx_set_interrupted(bint (*look)(bint forked) noexcept nogil,
                             unsigned long thread)

cdef extern from "Python.h":
    int PyErr_CheckSignals() noexcept
    void *PyErr_Occurred() noexcept
    void PyErr_SetString(object error, const char *text) noexcept


cdef int thread_count() noexcept nogil:
    return ndx_thread_count()


cdef void parallel_for(Py_ssize_t count, bint in_order, Part part,
                       void *arg) noexcept nogil:
    """Compute the parts 0 to ``count - 1``, each once, on all threads.

    The calling thread takes part; it computes alone while another operation has the
    threads, and if the parts are to be computed in order. When a handler of signals
    raises, the rest is not computed, and `_array.pinning.unlocked` raises.
    """
    ndx_parallel_for(count, in_order, part, arg)


cdef bint look(bint forked) noexcept with gil:
    """Handle signals between two parts; return whether an error is set."""
    if PyErr_Occurred() == NULL:
        if forked:
            PyErr_SetString(
                RuntimeError,
                b"this process was forked in the midst of an operation, and has none "
                b"of its threads; the result is incomplete here. Fork before, or after")
        else:
            PyErr_CheckSignals()
    return PyErr_Occurred() != NULL


ndx_set_interrupted(look, threading.main_thread().ident)


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
    shared by the process. They sleep between operations, but look for the next one for
    some microseconds while operations follow one another. An operation that begins
    while another thread's has them is computed by its own thread. The libraries behind
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
