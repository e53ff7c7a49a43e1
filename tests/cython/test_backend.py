"""A backend that another package has written in Cython."""

import gc
import sys
import threading
from pathlib import Path

import pytest

import ndx
from ndx.testing.backends import BackendContract


class TestCounting(BackendContract):
    """The backend in Cython passes what all backends must."""

    @pytest.fixture(autouse=True)
    def _counting(self, counting):
        self.make = counting


class TestDocumented(BackendContract):
    """So does the one in the docs that is written in Python."""

    @pytest.fixture(autouse=True)
    def _shared(self, shared):
        self.make = shared


@pytest.fixture
def counting(built):
    return built("counting_backend").CountingBackend


def test_used_as_an_instance(counting):
    backend = counting(mark=0)
    with ndx.use(backend):
        x = ndx.zeros((10, 10)) + 1
        y = x[::2].T
    assert x.backend is y.backend is backend
    assert float(ndx.sum(x)) == 100
    assert backend.stats()["allocated_bytes"] == 800
    del x
    assert backend.stats()["allocated_bytes"] == 800
    del y
    assert backend.stats()["allocated_count"] == 0
    assert backend.stats()["reserved_bytes"] == 0
    assert backend.stats()["total_allocations"] == 2


def test_found_by_its_entry_point(built, counting):
    assert "counting" in ndx.backends.available()
    with ndx.use("counting", mark=3) as backend:
        assert type(backend) is counting
        assert backend.mark == 3
        assert ndx.ones(3).backend is backend
    with ndx.use("counting") as backend:
        assert backend is ndx.backends.get("counting")
        assert backend.mark == 0xDD
    with pytest.raises(TypeError, match="'counting' has no option"):
        ndx.use("counting", colour="red")
    with pytest.raises(ValueError, match="limit"):
        ndx.use("counting", limit="much")


def test_registered(counting):
    ndx.backends.register("mine", counting)
    try:
        with ndx.use("mine"):
            x = ndx.ones(3)
        assert isinstance(x.backend, counting)
    finally:
        ndx.backends.unregister("mine")
    assert x.tolist() == [1, 1, 1]


def test_its_limit(counting):
    with ndx.use(counting(limit=1000)) as backend:
        x = ndx.ones(100)
        with pytest.raises(ndx.OutOfMemoryError, match=r"'counting'.*1000 bytes"):
            ndx.ones(100)
        assert backend.stats()["reserved_bytes"] == 800
        x.close()
        assert ndx.ones(125).nbytes == 1000
    with ndx.use(counting()) as backend:
        with pytest.raises(ndx.OutOfMemoryError, match="the system has no more"):
            ndx.empty(2**59)
        assert backend.stats()["reserved_bytes"] == 0


def test_a_workspace_in_it(counting):
    backend = counting()
    scope = ndx.workspace(backend=backend, size="64KiB")
    for _ in range(10):
        with ndx.use(backend), scope:
            x = ndx.ones(100)
            kept = (x + 1).detach()
            assert x.backend is backend
    assert kept.backend is backend
    assert backend.stats()["total_allocations"] == 1 + 10
    with pytest.raises(ndx.StaleArrayError):
        x + 1
    del scope, x, kept
    gc.collect()
    assert backend.stats()["allocated_count"] == 0


def test_acquired_in_a_workspace_in_it(counting, consumer):
    backend = counting(mark=0xDD)
    with ndx.workspace(backend=backend):
        held = consumer.Held(ndx.ones(10))
    assert held.values() == [1] * 10
    assert backend.stats()["allocated_count"] >= 1
    held.release()
    gc.collect()
    assert backend.stats()["allocated_count"] == 0


def test_arrays_keep_their_backend(counting):
    with ndx.use(counting()):
        x = ndx.ones(10)
    gc.collect()
    assert x.tolist() == [1] * 10


@pytest.mark.threads
def test_threads(counting):
    backend = counting()

    def work():
        with ndx.use(backend):
            for n in range(1, 300):
                assert float(ndx.sum(ndx.ones(n))) == n

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert backend.stats()["allocated_count"] == 0
    assert backend.stats()["allocated_bytes"] == 0


def test_found_while_ndx_is_imported(run_python):
    code = """
import os
os.environ.update(NDX_BACKEND="counting", NDX_COUNTING_LIMIT="1KiB")
import ndx
x = ndx.ones(3)
print(x.backend)
"""
    assert run_python(code) == "<CountingBackend 'counting', limit=1024>\n"


@pytest.fixture
def docs():
    path = Path(__file__).parents[2] / "docs" / "backends.md"
    if not path.exists():
        pytest.skip("no docs beside the installed package")
    return path.read_text(encoding="utf-8")


def test_the_documented_one_is_this_one(docs):
    source = Path(__file__).parent / "consumer" / "counting_backend.pyx"
    assert source.read_text(encoding="utf-8") in docs


@pytest.fixture
def shared(docs):
    names = {}
    exec(docs.split("```python\n")[1].split("```")[0], names)
    return names["SharedBackend"]


def test_options_that_nobody_takes():
    with pytest.raises(TypeError, match="colour"):
        ndx.backends.Backend(colour="red")
    with pytest.raises(TypeError, match="colour"):
        ndx.backends.PythonBackend(colour="red")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="__buffer__ came with 3.12")
def test_discard_gets_what_acquire_returned():
    class Range:
        def __init__(self, nbytes):
            self.memory = bytearray(nbytes)

        def __buffer__(self, flags):
            return memoryview(self.memory)

    class Ranges(ndx.backends.PythonBackend):
        def acquire(self, nbytes):
            return Range(nbytes)

        def discard(self, buffer):
            self.discarded = buffer

    backend = Ranges()
    with ndx.use(backend):
        assert ndx.ones(3).tolist() == [1, 1, 1]
    gc.collect()
    assert type(backend.discarded) is Range
