"""Memory from two C functions, however they are given."""

import ctypes
import gc
import threading

import numpy as np
import pytest

import ndx
from ndx.backends import from_c

ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class Heap:
    """An allocator that counts, with functions for C."""

    def __init__(self, most=2**40):
        self.most = most
        self.held = {}
        self.contexts = set()
        self.wrong = []
        self.alloc = ALLOC(self._alloc)
        self.free = FREE(self._free)

    def _alloc(self, nbytes, context):
        self.contexts.add(context)
        if nbytes + sum(map(len, self.held.values())) > self.most:
            return None
        memory = (ctypes.c_char * nbytes)()
        # An odd address: C functions need not align.
        address = ctypes.addressof(memory)
        self.held[address] = memory
        return address

    def _free(self, ptr, nbytes, context):
        memory = self.held.pop(ptr, None)
        if memory is None or len(memory) != nbytes:
            self.wrong.append((ptr, nbytes))


@pytest.fixture
def heap():
    made = Heap()
    yield made
    gc.collect()
    assert made.wrong == []
    assert made.held == {}


def capsule(pointer):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.cast(pointer, ctypes.c_void_p), b"a function", None)


def address(pointer):
    return ctypes.cast(pointer, ctypes.c_void_p).value


@pytest.mark.parametrize("given", [lambda pointer: pointer, capsule, address])
def test_arrays_live_there(heap, given):
    backend = from_c(given(heap.alloc), given(heap.free), limit="64MiB")
    with ndx.use(backend):
        x = ndx.arange(100_000.0)
        small = [ndx.ones(n) for n in range(50)]
    assert float(ndx.sum(x)) == 4_999_950_000.0
    at = np.asarray(x).ctypes.data
    assert at % 64 == 0
    assert any(start <= at < start + len(each) for start, each in heap.held.items())
    assert backend.stats()["reserved_bytes"] <= sum(map(len, heap.held.values()))
    assert backend.limit == 64 * 2**20
    del x, small
    backend.trim()
    assert heap.held == {}
    assert heap.contexts == {None}


def test_the_context_is_passed(heap):
    counter = ctypes.c_int(7)
    with ndx.use(from_c(heap.alloc, heap.free, ctypes.pointer(counter))):
        ndx.ones(1000)
    assert heap.contexts == {ctypes.addressof(counter)}


def test_a_refusal_is_out_of_memory():
    heap = Heap(most=1_000_000)
    backend = from_c(heap.alloc, heap.free)
    with ndx.use(backend):
        x = ndx.ones(10_000)
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.ones(1_000_000)
        y = ndx.ones(10_000)
    assert backend.relief()["out_of_memory_errors"] == 1
    assert float(ndx.sum(x + y)) == 20_000
    del x, y


def test_memory_is_zeroed_if_asked(heap):
    with ndx.use(from_c(heap.alloc, heap.free)):
        x = ndx.full(10_000, 5.0)
        del x
        assert float(ndx.sum(ndx.zeros(10_000))) == 0


def test_functions_are_kept_alive(heap):
    backend = from_c(ALLOC(heap._alloc), FREE(heap._free))
    gc.collect()
    with ndx.use(backend):
        x = ndx.ones(1000)
    del backend
    gc.collect()
    assert float(ndx.sum(x)) == 1000
    del x


@pytest.mark.threads
def test_threads(heap):
    backend = from_c(heap.alloc, heap.free)

    def work():
        with ndx.use(backend):
            for n in range(100):
                assert float(ndx.sum(ndx.ones(n * 100))) == n * 100

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert backend.stats()["allocated_bytes"] == 0


def test_functions_of_cffi(heap):
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    alloc = ffi.cast("void *(*)(size_t, void *)", address(heap.alloc))
    free = ffi.cast("void (*)(void *, size_t, void *)", address(heap.free))
    with ndx.use(from_c(alloc, free)):
        assert float(ndx.sum(ndx.ones(1000))) == 1000


@pytest.mark.parametrize(
    ("alloc", "error", "words"),
    [
        (None, TypeError, "alloc is an address"),
        ("malloc", TypeError, "alloc is an address"),
        (1.5, TypeError, "alloc is an address"),
        (print, TypeError, "alloc is an address"),
        (0, ValueError, "null pointer"),
        (-1, ValueError, "no address"),
        (ALLOC(), ValueError, "null pointer"),
    ],
)
def test_what_is_no_function(heap, alloc, error, words):
    with pytest.raises(error, match=words):
        from_c(alloc, heap.free)
