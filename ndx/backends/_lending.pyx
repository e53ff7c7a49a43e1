"""Memory of pools for libraries that call C functions: PyTorch's pluggable allocator.

The library of all compiled modules exports three functions, without Python in their
signatures. Any thread calls them, with or without the GIL, which they take.
"""

from libc.stdint cimport uintptr_t

from ndx._lib.unraisable cimport report_ignored
from ndx.backends.pooled cimport PooledBackend

from ndx._lib.device import device_of
from ndx.backends._gpus import KIND
from ndx.backends._registry import get
from ndx.backends.buffer import Buffer

__all__ = ["addresses", "lend"]

cdef extern from *:
    """
    #if defined(_WIN32)
    #define NDX_EXPORT __declspec(dllexport)
    static void ndx_throw_bad_alloc(void) {}
    #else
    #include <dlfcn.h>
    #define NDX_EXPORT __attribute__((visibility("default")))
    /* Throw std::bad_alloc, by the library of C++ that the caller has loaded. */
    static void ndx_throw_bad_alloc(void) {
        void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
        void (*thrower)(void) = NULL;
        if (library != NULL) {
            *(void **)&thrower = dlsym(library, "_ZSt17__throw_bad_allocv");
        }
        if (thrower != NULL) { thrower(); }
    }
    #endif

    /* Set when the module is imported, before anything is lent. */
    static void *(*ndx_lend)(Py_ssize_t, int, void *);
    static void (*ndx_take_back)(void *, void *);
    static void (*ndx_note_use)(void *, void *);
    static int ndx_throws;

    /* What is lent when the interpreter has ended goes with the process. */
    NDX_EXPORT void *ndx_torch_alloc(Py_ssize_t size, int device, void *stream) {
        void *ptr = NULL;
        if (Py_IsInitialized()) { ptr = ndx_lend(size, device, stream); }
        if (ptr == NULL && size > 0 && ndx_throws) { ndx_throw_bad_alloc(); }
        return ptr;
    }
    NDX_EXPORT void ndx_torch_free(void *ptr, Py_ssize_t size, int device,
                                   void *stream) {
        (void)size; (void)device;
        if (ptr != NULL && Py_IsInitialized()) { ndx_take_back(ptr, stream); }
    }
    NDX_EXPORT void ndx_torch_record_stream(void *ptr, void *stream) {
        if (ptr != NULL && Py_IsInitialized()) { ndx_note_use(ptr, stream); }
    }
    """
    void *(*ndx_lend)(Py_ssize_t size, int device, void *stream) noexcept
    void (*ndx_take_back)(void *ptr, void *stream) noexcept
    void (*ndx_note_use)(void *ptr, void *stream) noexcept
    int ndx_throws
    void *ndx_torch_alloc(Py_ssize_t size, int device, void *stream)
    void ndx_torch_free(void *ptr, Py_ssize_t size, int device, void *stream)
    void ndx_torch_record_stream(void *ptr, void *stream)

# By the number of a GPU: who lends its memory. By address: what is lent.
cdef dict lenders = {}
cdef dict lent = {}


def lend(int device, backend, *, bint throws=False):
    """Let a backend serve the requests for a GPU, from now on.

    Parameters
    ----------
    device : int
        The number of the GPU.
    backend : str or PooledBackend
        What lends. What was lent before goes back to where it is from.
    throws : bool
        Whether a refusal throws ``std::bad_alloc``: for callers in C++, which do not
        look for NULL. Otherwise NULL is returned.
    """
    global ndx_throws
    found = get(backend)
    if not isinstance(found, PooledBackend):
        raise TypeError(f"{found!r} has no pool, of which ranges could be lent")
    lenders[device] = found
    ndx_throws = throws


def addresses():
    """Return the addresses of the functions that lend, take back, and note a use."""
    return (<uintptr_t><void *>ndx_torch_alloc, <uintptr_t><void *>ndx_torch_free,
            <uintptr_t><void *>ndx_torch_record_stream)


def lent_addresses():
    """Return the addresses of what is lent; for tests."""
    return list(lent)


cdef void *allocate(Py_ssize_t size, int device, void *stream) noexcept with gil:
    cdef uintptr_t address = 0
    try:
        buffer = Buffer(lender_of(device), size, stream=<uintptr_t>stream)
        address = buffer.address
        if address:
            lent[address] = buffer
    except BaseException as error:
        report_ignored(lend, error)
        address = 0
    return <void *>address


cdef object lender_of(int device):
    found = lenders.get(device)
    return get(device_of(KIND.first + device)) if found is None else found


cdef void take_back(void *ptr, void *stream) noexcept with gil:
    try:
        buffer = lent.pop(<uintptr_t>ptr)
        if buffer.stream != <uintptr_t>stream:
            buffer.record_use(<uintptr_t>stream)
        buffer.release()
    except KeyError:
        report_unknown(ptr)
    except BaseException as error:
        report_ignored(lend, error)


cdef void note_use(void *ptr, void *stream) noexcept with gil:
    try:
        lent[<uintptr_t>ptr].record_use(<uintptr_t>stream)
    except KeyError:
        report_unknown(ptr)
    except BaseException as error:
        report_ignored(lend, error)


cdef int report_unknown(void *ptr) except -1:
    report_ignored(lend, ValueError(
        f"{<uintptr_t>ptr:#x} was not lent by ndx, or has been given back"))
    return 0


ndx_lend = allocate
ndx_take_back = take_back
ndx_note_use = note_use
