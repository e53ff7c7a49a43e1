"""How passes over arrays in files are made, for this thread or task, now."""

import operator
import os

from cpython.contextvars cimport (
    PyContextVar_Get, PyContextVar_New, PyContextVar_Reset, PyContextVar_Set,
)

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from ndx._lib.interpreter cimport current_home

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
cdef Settings defaults = Settings()


cdef Py_ssize_t usable_cores() except -1:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


defaults.progress = None
defaults.block = 64 * 2**20
defaults.threads = min(usable_cores(), 8)
defaults.threshold = 32 * 2**20
defaults.memory = -1


cdef Settings settings():
    """Return what holds for this thread or task."""
    cdef PyObject *value = NULL
    cdef Settings now
    PyContextVar_Get(variable, <PyObject *>defaults, &value)
    now = <Settings>value
    Py_DECREF(now)
    while now.left:
        now = now.outer
    return now


cdef object suspend():
    """Make no passes, until what is returned is given to `resume`."""
    cdef Settings before = settings(), inner = Settings()
    inner.progress = None
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


cdef Settings enter(tuple options):
    """Let options hold in this context, from now on; None: as it is outside."""
    cdef Settings before = settings(), inner = Settings()
    progress, block, threads, threshold, memory = options
    inner.progress = before.progress if progress is None else progress
    inner.block = before.block if block is None else block
    inner.threads = before.threads if threads is None else threads
    inner.threshold = before.threshold if threshold is None else threshold
    inner.memory = before.memory if memory is None else memory
    inner.outer = before
    PyContextVar_Set(variable, inner)
    # After the set: that is what creates a thread's first contextvars.Context.
    inner.home = <object>current_home()
    return inner


cdef bint is_here(Settings entered) noexcept:
    """Whether settings were entered in the context that is current now."""
    cdef PyObject *here = current_home()
    return here != NULL and entered.home is <object>here


cdef int leave(list entries) except -1:
    """End the last of the settings entered here or, if there are none, elsewhere.

    A generator may be closed in another context than that in which it entered, and a
    finalizer runs anywhere: what was entered elsewhere ends there, too.
    """
    cdef Settings entry = None, each
    cdef int i
    for i in range(len(entries) - 1, -1, -1):
        each = <Settings>entries[i]
        if entry is None or is_here(each):
            entry = each
        if is_here(each):
            break
    entries.remove(entry)
    if is_here(entry) and settings() is entry:
        PyContextVar_Set(variable, entry.outer)
    else:
        # Not the innermost, or not of this context: skipped from now on.
        entry.left = True
    entry.home = None
    return 0


class passes:
    """Say how operations on large arrays in files are carried out, in a ``with``.

    An operation that has an operand or a result in a file, and more than `threshold`
    bytes of them, is done in one pass from block to block: the disk reads ahead, what
    is behind is written and, where not all fits in memory, dropped from it; several
    threads compute, and Ctrl-C ends it between two blocks. The operands are as they
    were then, and there is no result; one that was given (``out=``, ``x += y``,
    ``x[...] = y``) is written in part. docs/larger_than_ram.md says which operations.

    Parameters
    ----------
    progress : callable, optional
        Called as ``progress(done, total, name)`` after each block, by the thread that
        called the operation: bytes of all operands and the result, and the
        operation's name. What it raises ends the operation.
    block : int or str, optional
        Bytes between two calls of `progress`, and two looks for Ctrl-C; also what
        sorting and products of matrices hold in memory at once, a few times over.
        Default: 64 MiB.
    threads : int, optional
        Threads that compute, the calling one with them. Default: one for each core
        that the process may use, at most 8.
    threshold : int or str, optional
        Bytes from which an operation is done in a pass. Default: 32 MiB. Operations
        on fewer than 32768 elements never are.
    memory : int or str, optional
        Bytes of files that are expected to stay in memory: an operation on more drops
        what it has used. Default: half of what the system, or the process's control
        group, has available.

    Raises
    ------
    TypeError, ValueError
        If an option has a bad value; it says what is valid.

    Notes
    -----
    For each thread and task its own, as `ndx.use`. Options that are left out stay as
    they are outside. Objects of this class can be entered again, also while they are,
    and by several threads. Those that are left before the ones inside them end at
    once; what is inside keeps the options that it has from them.

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
        if not self._entered:
            raise RuntimeError("ndx.passes was left, but is not entered")
        leave(self._entered)

    def __repr__(self):
        names = ("progress", "block", "threads", "threshold", "memory")
        given = [f"{name}={value!r}"
                 for name, value in zip(names, self._options, strict=True)
                 if value is not None]
        return f"ndx.passes({', '.join(given)})"
