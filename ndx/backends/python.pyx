"""The adaptors for backends and sources that are written in Python."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from ndx._lib.guards cimport (
    BEFORE, BEHIND, DEAD_BYTE, FRESH_BYTE, GUARD, GUARD_BYTE, Damage, check_fill,
    forget_maker, guards, note_maker,
)
from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx.backends._budget cimport budget_arrive, budget_give, budget_obtain
from ndx.backends.base cimport (
    ALIGNMENT, ALLOCATED, NO_MEMORY, OWN_LIMIT, PROCESS_LIMIT, TOO_LARGE, Backend,
    Memory, counters_add, counters_lift, counters_remove,
)
from ndx.backends.source cimport NO_RANGE, RAISED, RESERVED, Source
from ndx.backends.user_code cimport UserCode, begin_buffer, end_buffer

from ndx.backends.base import IS_BASE

__all__ = ["PythonBackend", "PythonSource"]


# ---- Sources -------------------------------------------------------------------------

cdef extern from "Python.h":
    void PyErr_SetObject(object kind, object value) noexcept


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class PythonSource(Source):
    """Base class for a source of large ranges that is written in Python.

    Override `acquire`, and `discard` if there is something to undo; give an instance
    to `ndx.backends.PooledBackend`.

    Examples
    --------
    >>> import mmap
    >>> import ndx
    >>> class Shared(ndx.backends.PythonSource):
    ...     def acquire(self, nbytes):
    ...         return mmap.mmap(-1, nbytes)
    >>> backend = ndx.backends.PooledBackend(Shared(), limit="64MiB")
    >>> with ndx.use(backend):
    ...     x = ndx.ones(3)
    >>> backend.stats()["reserved_bytes"] >= 24
    True
    """

    cdef dict views              # address of a Py_buffer -> what it is of
    cdef UserCode inside

    def __cinit__(self, *args, **options):
        self.views = {}
        self.inside = UserCode()

    def acquire(self, nbytes: int) -> Any:
        """Return a writable, contiguous buffer of at least `nbytes` bytes.

        Raise MemoryError to refuse; ndx then frees what it can and asks for less.
        """
        raise NotImplementedError(f"{type(self).__name__} must override acquire")

    def discard(self, buffer: Any) -> None:
        """Take back a buffer that `acquire` gave; its memory is no longer used."""

    def _take_refusal(self):
        return self.inside.refusals.take()

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        with gil:
            return PythonSource_reserve(self, nbytes, ptr, cookie)

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        cdef PendingError pending
        with gil:
            pending = set_error_aside()
            PythonSource_release(self, <Py_buffer *>cookie)
            put_error_back(pending)


cdef int PythonSource_reserve(PythonSource self, size_t nbytes, void **ptr,
                              void **cookie) noexcept:
    cdef Py_buffer *view = <Py_buffer *>malloc(sizeof(Py_buffer))
    cdef int status = RAISED
    if view == NULL:
        return NO_RANGE
    raised = None
    try:
        PythonSource_acquire(self, nbytes + self.alignment, view)
        status = RESERVED
    except MemoryError as error:
        status = NO_RANGE
        self.inside.refusals.keep(error)
    except BaseException as error:
        raised = error
    if status == RESERVED:
        ptr[0] = <void *>((<uintptr_t>view.buf + self.alignment - 1)
                          & ~<uintptr_t>(self.alignment - 1))
        cookie[0] = view
    else:
        free(view)
        if raised is not None:
            PyErr_SetObject(type(raised), raised)
    return status


cdef int PythonSource_acquire(PythonSource self, size_t nbytes,
                              Py_buffer *view) except -1:
    """Hold a buffer of at least `nbytes` bytes."""
    name = type(self).__name__
    self.views[<uintptr_t>view] = begin_buffer(
        self.inside, self, f"source {name!r}",
        f"acquire or discard of source {name!r} made an array in a pool that it serves "
        "itself; they must make none: inside them, use ndx.use('host') or NumPy",
        nbytes, view)
    return 0


cdef void PythonSource_release(PythonSource self, Py_buffer *view) noexcept:
    source = self.views.pop(<uintptr_t>view)
    Py_INCREF(source)
    cdef PyObject *held = <PyObject *>source
    source = None
    end_buffer(self.inside, self, view, held)
    free(view)


# ---- Backends ------------------------------------------------------------------------

# no_gc_clear: arrays that die with the backend give their memory back to it.
@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class PythonBackend(Backend):
    """Base class for a backend that is written in Python.

    Override `acquire`, and `discard` if there is something to undo.

    Parameters
    ----------
    limit : int or str, optional
        Upper bound on the bytes held at once; None for no bound. This class
        keeps it, so that an override needs no check of its own.

    Examples
    --------
    >>> import ndx
    >>> class ByteArrays(ndx.backends.PythonBackend):
    ...     def acquire(self, nbytes):
    ...         return bytearray(nbytes)
    >>> ndx.backends.register("bytearrays", ByteArrays)
    >>> with ndx.use("bytearrays"):
    ...     x = ndx.ones(3)
    >>> x.backend.name
    'bytearrays'
    >>> ndx.backends.unregister("bytearrays")
    """

    def __cinit__(self, *args, **options):
        self.name = type(self).__name__
        self.inside = UserCode()
        self.guarded.next = self.guarded.prev = &self.guarded
        if guards.mode and not self.device_number:
            self.guard = GUARD

    def __init__(self, *, limit: Size | None = None) -> None:
        pass

    def _missing(self):
        return IS_BASE if type(self) is PythonBackend else None

    def _take_refusal(self):
        return self.inside.refusals.take()

    @property
    def budgeted(self) -> bool:
        """Whether `ndx.memory.set_limit` bounds it with the others."""
        return True

    @property
    def name(self) -> str:
        """Name under which messages and statistics show the backend."""
        return self.name

    @name.setter
    def name(self, str value) -> None:
        self.name = value

    def acquire(self, nbytes: int) -> Any:
        """Return a writable, contiguous buffer of at least `nbytes` bytes.

        Parameters
        ----------
        nbytes : int
            Bytes, with room to align them included.

        Returns
        -------
        object
            Anything with the buffer protocol: a bytearray, an mmap, a ctypes
            array. It is kept, and its buffer held, until the range is released.

        Raises
        ------
        MemoryError
            To refuse: ndx then frees what it can, tries once more, and raises
            `ndx.OutOfMemoryError`.
        """
        raise NotImplementedError(f"{type(self).__name__} must override acquire")

    def discard(self, buffer: Any) -> None:
        """Take back a buffer that `acquire` gave; its memory is no longer used.

        Not called for what is left when the interpreter exits.
        """

    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil:
        with gil:
            return PythonBackend_allocate(self, nbytes, zero, out)

    cdef void release(self, Memory *memory) noexcept nogil:
        cdef PendingError pending
        with gil:
            # Arrays are also freed while an exception is pending, over which no Python
            # may run.
            pending = set_error_aside()
            PythonBackend_release(self, memory)
            put_error_back(pending)

    cdef int find_damage(self, Damage *out, int room) noexcept nogil:
        with gil:
            return PythonBackend_find(self, out, room)


cdef int PythonBackend_allocate(PythonBackend self, size_t nbytes, bint zero,
                                Memory *out) except -1:
    cdef Acquired *acquired
    cdef size_t held = nbytes + 2 * self.guard
    with cython.critical_section(self):
        if self.limit_nbytes >= 0 and \
                held > <size_t>self.limit_nbytes - self.counters.reserved:
            return OWN_LIMIT if held <= <size_t>self.limit_nbytes else TOO_LARGE
        if not budget_obtain(held):
            return PROCESS_LIMIT
        # Counted as resident: when the buffer's owner writes to its pages is not known.
        budget_arrive(NULL, held)
        # Reserved before the buffer is obtained: `acquire` may let other threads run.
        self.counters.reserved += held
    try:
        acquired = PythonBackend_acquire(self, held + ALIGNMENT)
    except MemoryError as error:
        PythonBackend_unreserve(self, held)
        self.inside.refusals.keep(error)
        return NO_MEMORY
    except BaseException:
        PythonBackend_unreserve(self, held)
        raise
    out.ptr = <char *>((<uintptr_t>acquired.view.buf + ALIGNMENT - 1)
                       & ~<uintptr_t>(ALIGNMENT - 1))
    out.ptr += self.guard
    out.nbytes = nbytes
    out.cookie = acquired
    if self.guard:
        PythonBackend_guard(self, acquired, out)
    if zero:
        memset(out.ptr, 0, nbytes)
    elif self.guard:
        memset(out.ptr, FRESH_BYTE, nbytes)
    with cython.critical_section(self):
        self.counters.system_allocations += 1
        counters_add(&self.counters, nbytes)
        counters_lift(&self.counters, 0, 0, self.counters.reserved)
    return ALLOCATED


cdef void PythonBackend_guard(PythonBackend self, Acquired *acquired,
                              const Memory *memory) noexcept:
    """Put guards around a range that is about to be lent."""
    acquired.ptr = memory.ptr
    acquired.nbytes = memory.nbytes
    memset(memory.ptr - GUARD, GUARD_BYTE, GUARD)
    memset(memory.ptr + memory.nbytes, GUARD_BYTE, GUARD)
    note_maker(memory.ptr)
    with cython.critical_section(self):
        acquired.prev = &self.guarded
        acquired.next = self.guarded.next
        acquired.next.prev = self.guarded.next = acquired


cdef void PythonBackend_unguard(PythonBackend self, Acquired *acquired) noexcept:
    """Look for writes around a range that was given back; then fill it."""
    cdef Damage damage[2]
    with cython.critical_section(self):
        acquired.prev.next = acquired.next
        acquired.next.prev = acquired.prev
    self.tell_damage(damage, check_acquired(acquired, damage))
    forget_maker(acquired.ptr)
    memset(acquired.ptr, DEAD_BYTE, acquired.nbytes)


cdef int check_acquired(Acquired *acquired, Damage *out) noexcept nogil:
    """Describe what was written to the guards of a range; return how much there is."""
    cdef int count = 0, i
    if check_fill(acquired.ptr - GUARD, GUARD, GUARD_BYTE, &out[0]):
        out[0].first -= GUARD
        out[0].last -= GUARD
        out[0].place = BEFORE
        count = 1
    if check_fill(acquired.ptr + acquired.nbytes, GUARD, GUARD_BYTE, &out[count]):
        out[count].first += acquired.nbytes
        out[count].last += acquired.nbytes
        out[count].place = BEHIND
        count += 1
    for i in range(count):
        out[i].address = <size_t>acquired.ptr
        out[i].nbytes = acquired.nbytes
    return count


cdef int PythonBackend_find(PythonBackend self, Damage *out, int room) noexcept:
    cdef Acquired *acquired
    cdef int count = 0
    with cython.critical_section(self):
        acquired = self.guarded.next
        while acquired != &self.guarded and count + 1 < room:
            count += check_acquired(acquired, out + count)
            acquired = acquired.next
    return count


cdef void PythonBackend_unreserve(PythonBackend self, size_t nbytes) noexcept:
    with cython.critical_section(self):
        self.counters.reserved -= nbytes
    budget_give(nbytes)


cdef Acquired *PythonBackend_acquire(PythonBackend self, size_t nbytes) except NULL:
    """Return a held buffer of at least `nbytes` bytes."""
    cdef Acquired *acquired = <Acquired *>malloc(sizeof(Acquired))
    if acquired == NULL:
        raise MemoryError()
    try:
        source = begin_buffer(
            self.inside, self, f"backend {self.name!r}",
            f"acquire or discard of backend {self.name!r} made an array in this very "
            "backend; they must make none: inside them, use ndx.use('host') or NumPy",
            nbytes, &acquired.view)
    except BaseException:
        free(acquired)
        raise
    Py_INCREF(source)
    acquired.source = <PyObject *>source
    return acquired


cdef void PythonBackend_release(PythonBackend self, Memory *memory) noexcept:
    cdef Acquired *acquired = <Acquired *>memory.cookie
    with cython.critical_section(self):
        counters_remove(&self.counters, memory.nbytes)
    if self.guard:
        PythonBackend_unguard(self, acquired)
    end_buffer(self.inside, self, &acquired.view, acquired.source)
    free(acquired)
    # Counted as held until now: `discard` may let other threads run.
    PythonBackend_unreserve(self, memory.nbytes + 2 * self.guard)
    with cython.critical_section(self):
        self.counters.system_frees += 1
