"""Memory from two C functions: of another allocator, or another library's pool."""

cimport cython
from cpython.pycapsule cimport (
    PyCapsule_CheckExact, PyCapsule_GetName, PyCapsule_GetPointer,
)
from libc.stdint cimport uintptr_t

from ndx.backends.source cimport NO_RANGE, RESERVED, Source

__all__ = ["CSource"]

ctypedef void *(*Allocate)(size_t nbytes, void *context) noexcept nogil
ctypedef void (*Free)(void *ptr, size_t nbytes, void *context) noexcept nogil


cdef uintptr_t address_of(object given, str what) except? 0:
    """Return the address that an int, a capsule, or a pointer of ctypes or cffi has."""
    if type(given) is int:
        if given < 0:
            raise ValueError(f"{what}={given} is no address")
        return given
    if PyCapsule_CheckExact(given):
        return <uintptr_t>PyCapsule_GetPointer(given, PyCapsule_GetName(given))
    # The libraries of which it may be a pointer were imported to make it.
    homes = {each.__module__ for each in type(given).__mro__}
    if "_ctypes" in homes:
        import ctypes
        if isinstance(given, (ctypes._CFuncPtr, ctypes._Pointer, ctypes.c_void_p)):
            return ctypes.cast(given, ctypes.c_void_p).value or 0
    if "_cffi_backend" in homes:
        import _cffi_backend
        return int(_cffi_backend.FFI().cast("uintptr_t", given))
    raise TypeError(
        f"{what} is an address (an int), a capsule, or a pointer of ctypes or cffi; "
        f"it can't be of type {type(given).__qualname__}")


cdef uintptr_t function_of(object given, str what) except 0:
    cdef uintptr_t found = address_of(given, what)
    if found == 0:
        raise ValueError(f"{what} is a null pointer; it must point to a C function")
    return found


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class CSource(Source):
    """A source of large ranges that calls two C functions.

    Give it to `ndx.backends.PooledBackend`, or take `from_c`, which does.

    Parameters
    ----------
    alloc : int, capsule, or pointer of ctypes or cffi
        ``void *alloc(size_t nbytes, void *context)``: returns at least so many bytes,
        or NULL to refuse.
    free : int, capsule, or pointer of ctypes or cffi
        ``void free(void *ptr, size_t nbytes, void *context)``: takes back what `alloc`
        gave, with the number of bytes that it was asked for.
    context : int, capsule, or pointer of ctypes or cffi, optional
        Passed to both; None: NULL.

    Notes
    -----
    Both are called by any thread, without the GIL and without a lock; functions that
    ctypes or cffi make of Python's take the GIL themselves. They must not call ndx. All
    three objects are kept alive.
    """

    cdef Allocate allocate
    cdef Free give_back
    cdef void *context
    cdef tuple kept

    def __cinit__(self, alloc: Any, free: Any, context: Any = None) -> None:
        self.allocate = <Allocate>function_of(alloc, "alloc")
        self.give_back = <Free>function_of(free, "free")
        self.context = NULL if context is None \
            else <void *>address_of(context, "context")
        self.kept = (alloc, free, context)

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        cdef void *found = self.allocate(nbytes + self.alignment, self.context)
        if found == NULL:
            return NO_RANGE
        ptr[0] = <void *>((<uintptr_t>found + self.alignment - 1)
                          & ~<uintptr_t>(self.alignment - 1))
        cookie[0] = found
        return RESERVED

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        self.give_back(cookie, nbytes + self.alignment, self.context)
