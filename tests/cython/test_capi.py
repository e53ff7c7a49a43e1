"""The C level, seen from a package that was built outside of the tree."""

import gc
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import ndx

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
          "uint64", "float32", "float64", "complex64", "complex128",
          "float16"]  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_leaks():
    gc.collect()
    before = ndx.memory.stats()["allocated_count"]
    yield
    gc.collect()
    assert ndx.memory.stats()["allocated_count"] == before


def fixed():
    """Return a workspace of a fixed size: each cycle uses the same addresses."""
    return ndx.workspace(size="64KiB", learn="none", spill="fail")


def test_what_a_view_says(consumer):
    x = ndx.asarray(np.arange(24.0).reshape(2, 3, 4), copy=True)
    held = consumer.Held(x)
    assert held.address == x.__array_interface__["data"][0]
    assert held.shape == x.shape
    assert held.strides == x.strides
    assert held.values() == list(range(24))
    assert held.info == {
        "size": 24, "itemsize": 8, "ndim": 3, "dtype": consumer.DTYPES["float64"],
        "kind": "f", "bits": 64, "readonly": False, "c_contiguous": True,
        "device": (1, 0),
    }  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(consumer, name):
    x = consumer.empty((2,), consumer.DTYPES[name])
    assert x.dtype == name
    info = consumer.Held(x).info
    assert info["dtype"] == consumer.DTYPES[name]
    assert (info["kind"], info["itemsize"]) == (x.dtype.kind, x.dtype.itemsize)
    assert info["bits"] == 8 * x.dtype.itemsize


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,) * 64])
def test_odd_shapes(consumer, shape):
    x = consumer.empty(shape, consumer.DTYPES["float64"])
    held = consumer.Held(x, consumer.FLAGS["c_contiguous"])
    assert held.shape == x.shape == shape
    assert held.strides == x.strides
    assert held.info["size"] == x.size


def test_computing_in_cython(consumer):
    x = ndx.asarray(np.arange(24.0).reshape(4, 6), copy=True)
    assert consumer.total(x) == 276
    assert consumer.total(x.T[::-2, 1:]) == np.arange(24.0).reshape(4, 6).T[
        ::-2, 1:
    ].sum()  # fmt: skip
    assert consumer.doubled(x).tolist() == (2 * np.asarray(x)).tolist()
    with pytest.raises(TypeError, match="takes float64"):
        consumer.total(ndx.ones(3, dtype="float32"))


def test_computing_in_c(plain):
    assert plain.total(ndx.ones(10)) == 10
    assert plain.counted(5).tolist() == [0, 1, 2, 3, 4]
    assert plain.is_array(ndx.ones(1)) is True
    assert plain.is_array(np.ones(1)) is False
    with pytest.raises(TypeError, match="takes float64"):
        plain.total(ndx.ones(3, dtype="int8"))


def test_is_array(consumer):
    assert consumer.is_array(ndx.ones(3))
    for other in (None, 1, [1.0], np.ones(3), ndx.NDArray):
        assert not consumer.is_array(other)


@pytest.mark.parametrize("other", [None, 1.0, [1.0], np.ones(3)])
def test_only_arrays_are_acquired(consumer, plain, other):
    for function in (consumer.total, consumer.Held, plain.total):
        with pytest.raises(TypeError, match=r"NDArray, not \w+; convert.*asarray"):
            function(other)


def test_readonly(consumer):
    x = ndx.asarray(np.frombuffer(bytes(16)))
    assert consumer.Held(x).info["readonly"]
    with pytest.raises(BufferError, match=r"\(2,\).*float64 is read-only.*copy=True"):
        consumer.Held(x, consumer.FLAGS["writable"])
    consumer.Held(ndx.asarray(x, copy=True), consumer.FLAGS["writable"])


def test_contiguous(consumer):
    x = ndx.ones((3, 4)).T
    assert not consumer.Held(x).info["c_contiguous"]
    with pytest.raises(BufferError, match=r"\(4, 3\).*not C-contiguous.*copy"):
        consumer.Held(x, consumer.FLAGS["c_contiguous"])


def test_unknown_flags(consumer):
    with pytest.raises(ValueError, match=r"unknown flags 0x11; valid are.*0x1.*0x2"):
        consumer.Held(ndx.ones(1), 0x11)


def test_release_is_idempotent(consumer):
    x = ndx.ones(3)
    held = consumer.Held(x)
    held.release()
    held.release()
    assert held.address == 0
    x.close()
    consumer.release_empty()


def test_a_view_keeps_the_array(consumer):
    held = consumer.Held(ndx.ones(3) + 1)
    others = [ndx.zeros(3) for _ in range(100)]
    assert held.values() == [2, 2, 2]
    assert held.shape == (3,)
    del others
    # Of foreign memory, too.
    held = consumer.Held(ndx.asarray(np.full(1000, 3.0)))
    gc.collect()
    assert held.values() == [3] * 1000


def test_many_views_of_one_array(consumer):
    x = ndx.ones(3)
    views = [consumer.Held(x) for _ in range(50)]
    for held in views[::2]:
        held.release()
    with pytest.raises(BufferError):
        x.close()
    for held in views:
        held.release()
    x.close()


def test_close_while_acquired(consumer):
    x = ndx.ones(3)
    y = x[1:]
    held = consumer.Held(x)
    for array in (x, y):
        with pytest.raises(BufferError, match="can't be closed"):
            array.close()
    assert held.values() == [1, 1, 1]
    held.release()
    y.close()
    with pytest.raises(ndx.StaleArrayError):
        consumer.Held(x)


def test_stale(consumer, plain):
    step = fixed()
    with step:
        x = ndx.ones(3)
        assert consumer.total(x) == plain.total(x) == 3
    for function in (consumer.total, consumer.Held, plain.total):
        with pytest.raises(ndx.StaleArrayError, match=r"\(3,\).*float64.*workspace"):
            function(x)
    assert x.shape == (3,)


def test_acquired_while_the_scope_ends(consumer):
    step = fixed()
    with step:
        x = ndx.ones(100) * 7
        held = consumer.Held(x[10:20])
    address = held.address
    with pytest.raises(ndx.StaleArrayError):
        x + 1
    assert step.stats()["pinned_count"] == 1
    for i in range(50):
        with step:
            y = ndx.full(1000, float(i))
            assert consumer.total(y) == 1000 * i
            start = y.__array_interface__["data"][0]
            assert not start <= address < start + y.nbytes
    assert held.values() == [7] * 10
    with pytest.raises(ndx.StaleArrayError):
        consumer.Held(x)
    del y  # its __array_interface__ was read
    assert step.stats()["pinned_count"] == 1
    held.release()
    assert step.stats()["pinned_count"] == 0


def test_spilled_and_acquired_while_the_scope_ends(consumer):
    for config in ({"learn": "none"}, {"size": 64, "learn": "none"}):
        for size in (100, 100_000):  # of the larger, the other pages are given back
            with ndx.workspace(**config) as scope:
                x = ndx.ones(size) * 7
                views = [consumer.Held(x[i : i + 10]) for i in (20, size // 2)]
            for _ in range(50):
                with scope:
                    assert consumer.total(ndx.zeros(size)) == 0
            for held in views:
                assert held.values() == [7] * 10


def test_the_workspace_may_go_first(consumer):
    scope = ndx.workspace(size="4KiB")
    with scope:
        held = consumer.Held(ndx.ones(10))
    del scope
    gc.collect()
    others = [ndx.zeros(512) for _ in range(20)]
    assert held.values() == [1] * 10
    del others


def test_empty_goes_where_the_context_says(consumer):
    step = fixed()
    code = consumer.DTYPES["float64"]
    with step:
        x = consumer.empty((3,), code)
        assert x.workspace == step.name
    with ndx.use("host", limit="4KiB") as backend:
        x = consumer.empty((3,), code)
        assert x.backend is backend
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is"):
            consumer.empty((1000,), code)
    assert consumer.Held(x).address % 64 == 0


def test_arguments_of_empty(consumer):
    code = consumer.DTYPES["float64"]
    for ndim in (-1, 65):
        with pytest.raises(ValueError, match=f"ndim={ndim} is out of range.*0 to 64"):
            consumer.empty((1,), code, ndim)
    for dtype in (-1, len(DTYPES)):
        with pytest.raises(ValueError, match=f"code {dtype} .*0.*{len(DTYPES) - 1}"):
            consumer.empty((1,), dtype)
    with pytest.raises(ValueError, match="negative"):
        consumer.empty((3, -1), code)
    with pytest.raises(ValueError, match="address space"):
        consumer.empty((2**62, 2), code)


class Yielding(ndx.backends.PythonBackend):
    """Runs Python on release."""

    def acquire(self, nbytes):
        return bytearray(nbytes)

    def discard(self, buffer):
        self.discarded = sorted([3, 1, 2], key=lambda item: -item)


def test_release_keeps_a_pending_exception(consumer, plain):
    backend = Yielding()
    with ndx.use(backend), pytest.raises(KeyError, match="pending"):
        plain.release_while_raising(lambda: ndx.ones(3))
    with ndx.use(backend), pytest.raises(KeyError, match="pending"):
        consumer.release_while_raising(ndx.ones(3))
    gc.collect()
    assert backend.discarded == [3, 2, 1]
    assert backend.stats()["allocated_count"] == 0


@pytest.mark.threads
def test_threads(consumer):
    """Acquired, used and released by several threads, while scopes end."""
    shared = ndx.asarray(np.arange(20_000.0), copy=True)
    expected = consumer.total(shared)
    wrong = []

    def work(number):
        scope = ndx.workspace(f"step-{number}", size="64KiB")
        kept = []
        for i in range(100):
            with scope:
                kept.append((consumer.Held(ndx.full(20, float(i))), i))
                if consumer.total(shared) != expected:
                    wrong.append("sum")
            if len(kept) > 5:
                held, value = kept.pop(0)
                if held.values() != [value] * 20:
                    wrong.append("held")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.threads
def test_release_in_another_thread(consumer):
    step = fixed()
    with step:
        held = consumer.Held(ndx.ones(10))
    thread = threading.Thread(target=held.release)
    thread.start()
    thread.join()
    assert step.stats()["pinned_count"] == 0


def test_references_return(consumer, plain):
    x = ndx.ones(10)
    before = sys.getrefcount(x)
    for _ in range(100):
        consumer.total(x)
        plain.total(x)
        with pytest.raises(BufferError):
            consumer.Held(x[::2], consumer.FLAGS["c_contiguous"])
    assert sys.getrefcount(x) == before


TABLE = """
import ctypes
import ndx
new = ctypes.pythonapi.PyCapsule_New
new.restype = ctypes.py_object
new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
table = (ctypes.c_uint32 * 64)({version}, {size})
ndx._capi.C_API = new(table, b"{name}", None)
try:
    import consumer
except ImportError as error:
    print(error)
import plain
for function in (plain.is_array, plain.total, plain.counted):
    try:
        function(1)
    except ImportError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("version", "size", "advice"),
    [(0, 64, "upgrade ndx"), (1, 16, "upgrade ndx"), (2, 64, "build the module again")],
)
def test_a_table_that_will_not_do(run_python, version, size, advice):
    code = TABLE.format(version=version, size=size, name="ndx._capi.C_API")
    messages = run_python(code).splitlines()
    assert len(messages) == 4
    for message in messages:
        assert message.startswith(
            "this module was compiled against version 1 of ndx's C table ("
        )
        assert f"has version {version} ({size} bytes): {advice}" in message


def test_a_capsule_that_is_no_table(run_python):
    messages = run_python(TABLE.format(version=1, size=64, name="other")).splitlines()
    assert len(messages) == 4
    assert all("is not ndx's table of C functions" in message for message in messages)


def test_a_longer_table_will_do(run_python):
    code = """
import ctypes
import ndx
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
address = get(ndx._capi.C_API, b"ndx._capi.C_API")
size = ctypes.c_uint32.from_address(address + 4)
size.value += 8
import consumer
print(consumer.total(ndx.ones(3)))
"""
    assert run_python(code) == "3.0\n"


def test_what_is_installed():
    root = Path(ndx.__file__).parent
    assert Path(ndx.get_include()) == root / "include"
    for name in ("include/ndx/ndx.h", "include/ndx/lock.h", "__init__.pxd",
                 "backends/base.pxd", "py.typed"):  # fmt: skip
        assert (root / name).is_file(), name
    # Inline functions of `.pxd` files that other packages cimport include it.
    assert (root / "include/ndx/internal/arithmetic.h").is_file()
