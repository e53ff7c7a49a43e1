"""The options of passes over arrays in files, for each thread or task."""

import operator

from cpython.contextvars cimport (
    PyContextVar_Get, PyContextVar_New, PyContextVar_Reset, PyContextVar_Set,
)

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from ndx._lib.free_threading cimport ndx_load_flag, ndx_store_flag
from ndx._lib.interpreter cimport current_home, is_here, set_home

from ndx._lib.options import option_errors
from ndx._lib.sizes import parse_size
from ndx._lib.system import memory_for_pages as pages_of_machine

__all__ = ["passes"]

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    MAX_THREADS = 64
    SMALLEST_BLOCK = 4096

cdef object variable = PyContextVar_New("ndx.passes", NULL)


cdef Settings settings():
    """Return the settings of this thread or task."""
    cdef PyObject *value = NULL
    cdef Settings now
    PyContextVar_Get(variable, <PyObject *>defaults, &value)
    found = <object>value
    Py_DECREF(found)
    # Checked: whoever iterates over a contextvars.Context can set any value.
    now = <Settings?>found
    while ndx_load_flag(&now.left):
        now = now.outer
    return now


cdef object suspend():
    """Make no passes until the returned token is passed to `resume`."""
    cdef Settings before = settings(), inner = Settings()
    inner.block = before.block
    inner.threads = before.threads
    inner.memory = before.memory
    inner.threshold = PY_SSIZE_T_MAX
    return PyContextVar_Set(variable, inner)


cdef int resume(object token) except -1:
    PyContextVar_Reset(variable, token)
    return 0


cdef Py_ssize_t memory_for_pages(Settings settings) except -1:
    """Return the bytes of files that are likely to stay in memory."""
    if settings.memory >= 0:
        return settings.memory
    return pages_of_machine()


cdef class Settings:
    """The options of `passes`, each with a value."""

    def __cinit__(self):
        self.block = 64 * 2**20
        self.threshold = 32 * 2**20
        self.memory = -1


cdef Settings defaults = Settings()


cdef Settings enter(tuple options):
    """Set options in this context, from now on; None: as outside."""
    cdef Settings before = settings(), inner = Settings()
    progress, block, threads, threshold, memory = options
    inner.progress = before.progress if progress is None else progress
    inner.block = before.block if block is None else block
    inner.threads = before.threads if threads is None else threads
    inner.threshold = before.threshold if threshold is None else threshold
    inner.memory = before.memory if memory is None else memory
    inner.outer = before
    PyContextVar_Set(variable, inner)
    # After the set, which creates a thread's first contextvars.Context.
    set_home(inner, current_home())
    return inner


cdef Settings last_of(list entries):
    """Return the last settings that were entered here or, if none, elsewhere."""
    cdef Settings each
    # A copy: threads that share an object enter and leave at any time.
    cdef list now = entries.copy()
    if not now:
        raise RuntimeError("ndx.passes was left, but is not entered")
    for each in reversed(now):
        if is_here(each):
            return each
    return now[len(now) - 1]


cdef int leave(list entries) except -1:
    """End the last settings entered in this context or, if none, in any other.

    A generator may be closed in another context than the one in which it entered, and
    a finalizer runs in any context. So settings of another context can be ended, too.
    """
    cdef Settings entry = None
    while entry is None:
        entry = last_of(entries)
        try:
            entries.remove(entry)
        except ValueError:
            # Another thread has ended it meanwhile.
            entry = None
    if is_here(entry) and settings() is entry:
        PyContextVar_Set(variable, entry.outer)
    else:
        # Not the innermost, or of another context: skipped from now on.
        ndx_store_flag(&entry.left, True)
    set_home(entry, NULL)
    return 0


class passes:
    """Set how operations on large arrays in files are carried out, in a ``with``.

    An operation with an operand or a result in a file, and at least `threshold` bytes
    of operands and result, is done in one pass, block by block. The next blocks are
    read ahead. Finished blocks are written and, if not everything fits in memory,
    dropped from it. Several threads compute. Ctrl-C ends the operation between two
    blocks: the operands are unchanged, and there is no result. An output that was given
    (``out=``, ``x += y``, ``x[...] = y``) is written in part. docs/larger_than_ram.md
    lists the operations.

    Parameters
    ----------
    progress : callable, optional
        Called as ``progress(done, total, name)`` after each block, by the thread that
        called the operation: bytes of all operands and the result, and the
        operation's name. An exception from it ends the operation.
    block : int or str, optional
        Bytes between two calls of `progress`, and two checks for Ctrl-C. Sorting and
        matrix products hold a few times as much in memory. Default: 64 MiB.
    threads : int, optional
        Threads that compute, including the calling one. Default: as many as compute
        other operations (`get_num_threads`), at most 8. A pass that begins while
        another operation has the threads is computed by its own thread.
    threshold : int or str, optional
        Bytes from which an operation is done in a pass. Default: 32 MiB. Operations
        on fewer than 32768 elements never are.
    memory : int or str, optional
        Bytes of files that are expected to stay in memory: an operation on more drops
        pages after use. Default: half of the memory that the system, or the process's
        control group, has available.

    Raises
    ------
    TypeError, ValueError
        If an option has a bad value; the message says what is valid.

    Notes
    -----
    The options are separate for each thread and task, as with `ndx.use`. Options that
    are left out stay as they are outside. Objects of this class are reusable and
    reentrant, and several threads can enter one. An object that is left before the ones
    inside it ends at once; those inside keep the options that they took from it.

    Examples
    --------
    >>> import ndx
    >>> def show(done, total, name):
    ...     print(f"{name}: {done / total:.0%}")
    >>> with ndx.passes(progress=show, threads=2):
    ...     total = ndx.sum(ndx.ones(10))  # small, and not in a file: no pass
    """

    @option_errors("ndx.passes")
    def __init__(self, *, progress: Callable[[int, int, str], Any] | None = None,
                 block: Size | None = None, threads: int | None = None,
                 threshold: Size | None = None, memory: Size | None = None) -> None:
        if progress is not None and not callable(progress):
            raise TypeError(
                "progress= is called as progress(done, total, name); a "
                f"{type(progress).__name__} can't be")
        if threads is not None:
            try:
                threads = operator.index(threads)
            except TypeError:
                raise TypeError(
                    f"threads= is an int, not {type(threads).__name__}") from None
            if not 1 <= threads <= MAX_THREADS:
                raise ValueError(
                    f"threads={threads} is not in the range from 1 to {MAX_THREADS}")
        if block is not None:
            block = parse_size(block, "block")
            if block < SMALLEST_BLOCK:
                raise ValueError(
                    f"block={block} is too small; valid are {SMALLEST_BLOCK} bytes "
                    "and more")
        self._options = (
            progress, block, threads,
            None if threshold is None else parse_size(threshold, "threshold"),
            None if memory is None else parse_size(memory, "memory"),
        )
        self._entered = []

    def __enter__(self) -> Self:
        self._entered.append(enter(self._options))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        leave(self._entered)

    def __repr__(self):
        names = ("progress", "block", "threads", "threshold", "memory")
        given = [f"{name}={value!r}"
                 for name, value in zip(names, self._options, strict=True)
                 if value is not None]
        return f"ndx.passes({', '.join(given)})"
