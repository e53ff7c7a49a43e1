"""C functions by which other libraries, such as PyTorch, get memory of a pool."""

import ctypes
import gc
import shutil
import subprocess
import sys
import threading
import types
import weakref

import pytest
from helpers.commands import run_python
from helpers.pools import UNIT, Bytes, check, plain_device

import ndx
from ndx import _compiled
from ndx.backends import _lending

GPU = 7  # a number that no other test uses


class Functions:
    """The functions as PyTorch finds them: by their names, in a library."""

    def __init__(self):
        library = ctypes.CDLL(_compiled.__file__)
        self.alloc = library.ndx_torch_alloc
        self.alloc.restype = ctypes.c_void_p
        self.alloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        self.free = library.ndx_torch_free
        self.free.restype = None
        self.free.argtypes = [
            *(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        ]
        self.record = library.ndx_torch_record_stream
        self.record.restype = None
        self.record.argtypes = [ctypes.c_void_p, ctypes.c_void_p]


C = Functions()


@pytest.fixture
def pool():
    backend = plain_device(limit=16 * UNIT)
    _lending.lend(GPU, backend)
    yield backend
    assert backend.stats()["allocated_bytes"] == 0
    check(backend)


def test_requests_are_served_and_counted(pool):
    ptr = C.alloc(UNIT, GPU, None)
    other = C.alloc(100, GPU, None)
    assert ptr != other
    assert pool.stats()["allocated_bytes"] == UNIT + 100
    C.free(other, 100, GPU, None)
    C.free(ptr, UNIT, GPU, None)
    assert C.alloc(0, GPU, None) is None
    C.free(None, 0, GPU, None)


def test_memory_is_reused_in_the_order_of_streams(pool):
    ptr = C.alloc(UNIT, GPU, 1)
    pool.source.submit(1, 5)
    C.free(ptr, UNIT, GPU, 1)
    assert C.alloc(UNIT, GPU, 2) == ptr
    assert pool.source.waits == [(2, 1, 5)]
    C.free(ptr, UNIT, GPU, 2)


@pytest.mark.parametrize("recorded", [True, False])
def test_uses_by_other_streams_are_waited_for(pool, recorded):
    ptr = C.alloc(UNIT, GPU, 1)
    pool.source.submit(3)
    if recorded:
        C.record(ptr, 3)
    C.free(ptr, UNIT, GPU, 1 if recorded else 3)
    # A stream that has not waited for the third does not get it.
    assert C.alloc(UNIT, GPU, 1) != ptr or pool.source.waits
    pool.source.finish(3)
    for address in _lending.lent_addresses():
        C.free(address, UNIT, GPU, 1)


def test_a_refusal_is_null_and_is_told(pool, capsys, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    assert C.alloc(17 * UNIT, GPU, None) is None
    assert C.alloc(UNIT, GPU + 1, None) is None  # no such GPU here
    assert [each.exc_type for each in told] == [ndx.OutOfMemoryError, ndx.DeviceError]


def test_what_is_not_lent(pool, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    ptr = C.alloc(UNIT, GPU, None)
    C.free(ptr, UNIT, GPU, None)
    C.free(ptr, UNIT, GPU, None)
    C.record(ptr, None)
    assert [str(each.exc_value)[:2] for each in told] == ["0x", "0x"]
    assert "not lent by ndx" in str(told[0].exc_value)


def test_the_backend_lives_as_long_as_what_it_has_lent():
    backend = plain_device()
    seen = weakref.ref(backend)
    _lending.lend(GPU, backend)
    ptr = C.alloc(UNIT, GPU, None)
    _lending.lend(GPU, plain_device())
    del backend
    gc.collect()
    assert seen() is not None
    C.free(ptr, UNIT, GPU, None)
    gc.collect()
    assert seen() is None


def test_what_has_no_pool_is_refused():
    with pytest.raises(TypeError, match="has no pool"):
        _lending.lend(GPU, Bytes())


def test_many_threads(pool):
    def work():
        for n in range(300):
            ptr = C.alloc(1000 + n, GPU, None)
            assert ptr is not None
            C.free(ptr, 1000 + n, GPU, None)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert pool.stats()["total_allocations"] == 1200


def test_pytorchs_allocator(pool, monkeypatch):
    made = []

    class Pluggable:
        def __init__(self, *args):
            made.append(args)

        def allocator(self):
            return types.SimpleNamespace(set_record_stream_fn=made.append)

    torch = types.ModuleType("torch")
    torch.cuda = types.ModuleType("torch.cuda")
    torch.cuda.memory = types.ModuleType("torch.cuda.memory")
    torch.cuda.memory.CUDAPluggableAllocator = Pluggable
    for name, module in (
        ("torch", torch),
        ("torch.cuda", torch.cuda),
        ("torch.cuda.memory", torch.cuda.memory),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    try:
        assert isinstance(ndx.cuda.torch_allocator({GPU: pool}), Pluggable)
    finally:
        _lending.lend(GPU, pool)
    (path, alloc, free), record = made
    assert path == _compiled.__file__
    assert (alloc, free) == ("ndx_torch_alloc", "ndx_torch_free")
    assert record == ctypes.cast(C.record, ctypes.c_void_p).value


def test_the_process_ends_with_memory_that_is_lent():
    run_python("""
        import ctypes
        from ndx import _compiled
        from ndx.backends import SimulatedBackend, _lending
        _lending.lend(0, SimulatedBackend())
        library = ctypes.CDLL(_compiled.__file__)
        library.ndx_torch_alloc.restype = ctypes.c_void_p
        assert library.ndx_torch_alloc(1000, 0, None)
        """)


PROGRAM = r"""
#include <Python.h>
#include <dlfcn.h>
#include <new>
#include <string>

int main(int argc, char **argv) {
    Py_Initialize();
    std::string start = "import sys; sys.path[:0] = " + std::string(argv[1]) + R"(
from ndx import _compiled
from ndx.backends import SimulatedBackend, _lending
_lending.lend(0, SimulatedBackend(limit='1MiB'), throws=True)
path = _compiled.__file__
)";
    if (PyRun_SimpleString(start.c_str()) != 0) { return 2; }
    PyObject *path = PyObject_GetAttrString(PyImport_AddModule("__main__"), "path");
    void *library = dlopen(PyUnicode_AsUTF8(path), RTLD_LAZY);
    auto alloc = (void *(*)(ssize_t, int, void *))dlsym(library, "ndx_torch_alloc");
    auto free = (void (*)(void *, ssize_t, int, void *))dlsym(
        library, "ndx_torch_free");
    void *ptr = alloc(1000, 0, nullptr);
    if (ptr == nullptr) { return 3; }
    free(ptr, 1000, 0, nullptr);
    try {
        alloc(2 << 20, 0, nullptr);
    } catch (const std::bad_alloc &) {
        ptr = alloc(1000, 0, nullptr);
        Py_Finalize();
        free(ptr, 1000, 0, nullptr);   /* after the interpreter */
        return 0;
    }
    return 4;
}
"""


def test_cpp_gets_its_exception(tmp_path):
    import sysconfig

    library = sysconfig.get_config_var("LDLIBRARY")
    if shutil.which("g++") is None or not str(library).endswith(".so"):
        pytest.skip("a program in C++ needs g++ and a shared library of Python")
    source, program = tmp_path / "lent.cpp", tmp_path / "lent"
    source.write_text(PROGRAM)
    folder = sysconfig.get_config_var("LIBDIR")
    command = [
        *("g++", str(source), "-o", str(program)),
        *(f"-I{sysconfig.get_paths()['include']}", f"-L{folder}"),
        *(f"-Wl,-rpath,{folder}", f"-lpython{sysconfig.get_config_var('LDVERSION')}"),
        "-ldl",
    ]
    subprocess.run(command, check=True)
    paths = repr([each for each in sys.path if each])
    done = subprocess.run([program, paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "OutOfMemoryError" in done.stderr
