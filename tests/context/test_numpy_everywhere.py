"""`set_default(numpy=True)`: NumPy's arrays of all threads on a backend."""

import asyncio
import contextvars
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.commands import run_python

import ndx

pytestmark = [
    pytest.mark.threads,
    pytest.mark.thread_unsafe(reason="the default is the process's"),
]

HEADER = 64


def handler_name(array=None):
    from numpy._core.multiarray import get_handler_name

    return get_handler_name(np.empty(3) if array is None else array)


def held(backend):
    stats = backend.stats()
    return stats["allocated_count"], stats["allocated_bytes"]


@pytest.fixture
def backend():
    before = ndx.current_backend()
    yield ndx.set_default("host", limit="1MiB", numpy=True)
    ndx.set_default(before, numpy=False)
    assert handler_name() == "default_allocator"


def in_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def test_all_threads_have_it(backend):
    array = in_thread(lambda: np.arange(1000))
    assert handler_name(array) == "ndx_plain"
    assert held(backend) == (1, 8000 + HEADER)
    with ThreadPoolExecutor(2) as pool:
        names = list(pool.map(lambda _: handler_name(), range(8)))
    assert set(names) == {"ndx_plain"}
    assert contextvars.Context().run(handler_name) == "ndx_plain"
    assert asyncio.run(asyncio.to_thread(handler_name)) == "ndx_plain"
    del array
    assert held(backend) == (0, 0)


def test_the_limit_is_that_of_all_threads(backend):
    def take(kept):
        while True:
            kept.append(np.empty(10_000, "b"))

    def fill():
        kept = []
        with pytest.raises(MemoryError, match="Unable to allocate"):
            take(kept)
        barrier.wait()
        return len(kept)

    barrier = threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        counts = [each.result() for each in [pool.submit(fill) for _ in range(4)]]
    assert 50 < sum(counts) <= 2**20 // 10_000
    assert backend.stats()["peak_reserved_bytes"] <= 2**20


def test_afterwards_it_is_numpys_own():
    before = ndx.current_backend()
    ndx.set_default("host", limit="1MiB", numpy=True)
    kept = np.ones(3)
    ndx.set_default(before, numpy=False)
    assert handler_name(kept) == "ndx_plain"
    assert handler_name() == in_thread(handler_name) == "default_allocator"


def test_a_later_default_changes_numpys_backend_only_if_it_says_so(backend):
    other = ndx.set_default("host", limit="2MiB")
    a, x = np.ones(3), ndx.ones(3)
    assert held(backend) == (1, 24 + HEADER)
    assert x.backend is other
    third = ndx.set_default("host", limit="2MiB", numpy=True)
    b = in_thread(lambda: np.ones(3))
    assert held(third)[0] == 1
    del a, b, x


def test_scopes_take_precedence(backend):
    with ndx.use("host", limit="1MiB", numpy=True) as inner:
        a = np.ones(3)
        b = in_thread(lambda: np.ones(3))
        assert held(inner)[0] == held(backend)[0] == 1
    with ndx.use("host", numpy=False):
        assert handler_name() == "default_allocator"
        assert in_thread(handler_name) == "ndx_plain"
    with ndx.use("host", limit="1MiB"):
        c = np.ones(3)
        assert held(backend)[0] == 2
    del a, b, c


def test_functions_of_ndx_work_as_before(backend):
    x = ndx.linalg.inv(ndx.eye(4) * 2)
    assert np.asarray(x)[0, 0] == 0.5
    assert in_thread(lambda: float(ndx.linalg.det(ndx.eye(3)))) == 1.0
    del x
    assert held(backend) == (0, 0)


def test_it_is_a_bool_and_refuses_change_nothing():
    before = ndx.current_backend()
    with pytest.raises(TypeError, match="numpy= is a bool"):
        ndx.set_default("host", numpy=1)
    with pytest.raises(ValueError, match="limit"):
        ndx.set_default("host", limit="much", numpy=True)
    assert ndx.current_backend() is before
    assert handler_name() == in_thread(handler_name) == "default_allocator"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
def test_a_forked_child_has_it():
    program = """
        import os, threading
        import numpy as np
        import ndx
        from numpy._core.multiarray import get_handler_name

        backend = ndx.set_default("host", limit="1MiB", numpy=True)
        a = np.ones(100)
        child = os.fork()
        b = np.ones(100)
        assert backend.stats()["allocated_count"] == 2
        names = []
        thread = threading.Thread(target=lambda: names.append(get_handler_name()))
        thread.start()
        thread.join()
        assert names == ["ndx_plain"]
        if child:
            assert os.waitpid(child, 0)[1] == 0
            print("done")
        else:
            os._exit(0)
        """
    assert run_python(program) == "done\n"


def test_arrays_at_the_interpreters_end():
    program = """
        import atexit, threading
        import numpy as np
        import ndx

        ndx.set_default("host", limit="16MiB", numpy=True)
        kept = [np.ones(n) for n in range(50)]
        np.kept = np.ones(10)
        atexit.register(lambda: np.ones(10))

        class Late:
            def __del__(self, empty=np.empty):
                self.array = empty(1000)

        late = Late()

        working = threading.Semaphore(0)

        def work():
            while True:
                np.ones(1000)
                working.release()

        threading.Thread(target=work, daemon=True).start()
        for _ in range(1000):
            working.acquire()
        """
    assert run_python(program) == ""
