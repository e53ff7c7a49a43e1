"""Plain NumPy on a backend: counted to the byte, limited, safe for what outlives it."""

import asyncio
import contextlib
import contextvars
import gc
import logging
import os
import threading

import numpy as np
import pytest
from helpers.commands import run_python

import ndx

HEADER = 64


def held(backend):
    stats = backend.stats()
    return stats["allocated_count"], stats["allocated_bytes"]


def handler_name(array):
    from numpy._core.multiarray import get_handler_name

    return get_handler_name(array)


def test_counts_are_exact():
    with ndx.use("host", limit="64MiB", numpy=True) as backend:
        arrays = [np.empty(n, dtype) for n in (1, 7, 1000) for dtype in "bdF"]
        arrays += [np.zeros((30, 40)), np.arange(50), arrays[0].copy(), np.empty(0)]
        nbytes = sum(max(array.nbytes, 1) + HEADER for array in arrays)
        assert held(backend) == (len(arrays), nbytes)
        assert all(handler_name(array) == "ndx_plain" for array in arrays)
        views = [array[:1] for array in arrays]
        assert held(backend) == (len(arrays), nbytes)
        del arrays
        assert held(backend)[0] == len(views)
        del views
        assert held(backend) == (0, 0)


def test_ndx_and_numpy_count_together():
    with ndx.use("host", limit="1MiB", numpy=True) as backend:
        a, x = np.ones(10), ndx.ones(10)
        assert held(backend) == (2, 2 * 80 + HEADER)
        del a, x


def test_results_are_right():
    rng = np.random.default_rng(4)
    with ndx.use("host", limit="64MiB", numpy=True):
        x = rng.normal(size=(60, 60))
        assert np.allclose(np.linalg.inv(x) @ x, np.eye(60))
        assert np.array_equal(np.sort(x, axis=None), np.sort(x.ravel().tolist()))
        assert np.zeros(100_000).sum() == 0


def test_before_and_after_it_is_numpys_own():
    before = handler_name(np.empty(3))
    with ndx.use("host", numpy=True):
        pass
    assert handler_name(np.empty(3)) == before
    with pytest.raises(ZeroDivisionError), ndx.use("host", numpy=True):
        raise ZeroDivisionError
    assert handler_name(np.empty(3)) == before


def test_nested():
    with ndx.use("host", limit="1MiB", numpy=True) as outer:
        with ndx.use("host", limit="1MiB", numpy=True) as inner:
            a = np.ones(3)
            with ndx.use("host", limit="1MiB") as silent:
                # It says nothing of NumPy.
                b = np.ones(3)
            with ndx.use("host", numpy=False):
                c = np.ones(3)
            d = np.ones(3)
        e = np.ones(3)
        assert held(inner)[0] == 3
        assert held(silent)[0] == 0
        assert held(outer)[0] == 1
        assert handler_name(c) != "ndx_plain"
        del a, b, d, e
        assert held(inner)[0] == held(outer)[0] == 0


def test_out_of_order():
    before = handler_name(np.empty(3))
    first = ndx.use("host", limit="1MiB", numpy=True)
    second = ndx.use("host", limit="1MiB", numpy=True)
    one, two = first.__enter__(), second.__enter__()
    with pytest.raises(ndx.WorkspaceError):
        first.__exit__(None, None, None)
    a = np.ones(3)
    assert held(two)[0] == 1
    assert held(one)[0] == 0
    second.__exit__(None, None, None)
    assert handler_name(np.empty(3)) == before
    del a


def test_above_the_limit_numpy_raises_and_says_why():
    with (
        pytest.raises(MemoryError, match="Unable to allocate") as caught,
        ndx.use("host", limit="1MiB", numpy=True) as backend,
    ):
        np.ones(10**6)
    cause = caught.value.__cause__
    assert isinstance(cause, ndx.OutOfMemoryError)
    assert cause.limit == 2**20
    assert "its limit is 1 MiB" in str(cause)
    assert held(backend) == (0, 0)


def fill(kept):
    for n in range(1, 10_000):
        kept.append(np.empty(7 * n, "b"))


def test_the_limit_is_never_passed():
    kept = []
    with ndx.use("host", limit="1MiB", numpy=True) as backend:
        with pytest.raises(MemoryError):
            fill(kept)
        stats = backend.stats()
        assert 0.8 * 2**20 < stats["peak_reserved_bytes"] <= 2**20
        nbytes = sum(array.nbytes + HEADER for array in kept)
        assert held(backend) == (len(kept), nbytes)
        del kept[:]
        assert held(backend) == (0, 0)


def test_a_refusal_is_logged(caplog):
    caplog.set_level(logging.INFO, "ndx")
    with ndx.use("host", limit="1KiB", numpy=True), pytest.raises(MemoryError):
        np.ones(1000)
    assert "NumPy gets no memory" in caplog.text
    assert "1 KiB" in caplog.text


def test_another_memory_error_gets_no_cause():
    @ndx.use("host", limit="64KiB", numpy=True)
    def fail():
        with pytest.raises(MemoryError):
            np.ones(10_000)
        np.ones(1)
        raise MemoryError("of another")

    with pytest.raises(MemoryError) as caught:
        fail()
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("count", [2**62, 2**60 - 8, 2**63 - 1])
def test_huge(count):
    with ndx.use("host", numpy=True), pytest.raises((MemoryError, ValueError)):
        np.empty(count, "b")


def test_arrays_outlive_it():
    with ndx.use("host", limit="1MiB", numpy=True) as backend:
        a = np.arange(1000)
    assert held(backend) == (1, 8000 + HEADER)
    # Also what grows later: it stays on its backend.
    a.resize(2000, refcheck=False)
    assert held(backend) == (1, 16000 + HEADER)
    assert a[:1000].tolist() == list(range(1000))
    assert not a[1000:].any()
    b = a.copy()
    assert held(backend)[0] == 1
    del a
    gc.collect()
    assert held(backend) == (0, 0)
    del b


def test_resize_in_place():
    with ndx.use("host", limit="100KiB", numpy=True) as backend:
        a = np.arange(8000)
        with pytest.raises(MemoryError):
            a.resize(9000, refcheck=False)
        assert a.tolist() == list(range(8000))
        # There is no room for a second one, so this one stays as large as it is.
        a.resize(7000, refcheck=False)
        assert a.tolist() == list(range(7000))
        assert held(backend) == (1, 64000 + HEADER)
        a.resize(10, refcheck=False)
        a.resize(0, refcheck=False)
        assert held(backend)[0] == 1
        del a
        assert held(backend) == (0, 0)


def test_never_from_an_arena():
    with ndx.use("host", limit="1MiB", numpy=True) as backend:
        for _ in range(3):
            with ndx.workspace("numpys", backend="host") as ws:
                x = ndx.ones(100)
                a = np.asarray(ndx.ones(10)) + 1
                cycle = ws.stats()["cycle_bytes"]
                assert held(backend)[0] == 1
            assert a.tolist() == [2.0] * 10
            assert cycle == 832 + 128
        del a, x
        assert held(backend) == (0, 0)
    ws.destroy()


def test_results_of_ndx_inside_of_it():
    with ndx.use("host", limit="1MiB", numpy=True) as backend:
        x = ndx.linalg.inv(ndx.eye(4) * 2)
        a = np.asarray(x)
        assert a[0, 0] == 0.5
        y = ndx.asarray(np.ones(3))
        assert (y + 1).backend is backend
        del x, a, y
        assert held(backend) == (0, 0)


@pytest.mark.threads
def test_threads_start_without_it():
    names = []

    def work(backend=None):
        names.append(handler_name(np.empty(3)))
        if backend is not None:
            with ndx.use(backend, numpy=True):
                for n in range(1, 300):
                    assert np.ones(n).sum() == n

    with ndx.use("host", limit="1MiB", numpy=True) as backend:
        threads = [threading.Thread(target=work, args=(backend,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert "ndx_plain" not in names
        assert held(backend) == (0, 0)


def test_tasks_have_their_own():
    async def work(wait):
        with ndx.use("host", limit="1MiB", numpy=True) as backend:
            a = np.ones(3)
            await wait.wait()
            b = np.ones(3)
            assert held(backend)[0] == 2
            del a, b
            return held(backend)[0]

    async def other(wait):
        name = handler_name(np.empty(3))
        wait.set()
        await asyncio.sleep(0)
        return name

    async def main():
        wait = asyncio.Event()
        return await asyncio.gather(work(wait), work(wait), other(wait))

    *counts, name = asyncio.run(main())
    assert counts == [0, 0]
    assert name != "ndx_plain"


def test_a_task_inherits_it_and_may_outlast_it():
    async def child(go):
        a = np.ones(3)
        await go.wait()
        b = np.ones(3)
        return handler_name(a), handler_name(b)

    async def main():
        go = asyncio.Event()
        with ndx.use("host", limit="1MiB", numpy=True) as backend:
            task = asyncio.create_task(child(go))
            await asyncio.sleep(0)
            assert held(backend)[0] == 1
        go.set()
        assert await task == ("ndx_plain", "ndx_plain")
        assert held(backend) == (0, 0)
        return handler_name(np.empty(1))

    assert asyncio.run(main()) != "ndx_plain"


def test_a_scope_that_a_finalizer_leaves_elsewhere():
    async def generator():
        with ndx.use("host", limit="1MiB", numpy=True):
            yield 1

    async def start(holder):
        holder.append(generator())
        await anext(holder[0])
        await asyncio.sleep(0)
        # The generator is closed by another task: this context is as it was before.
        await holder.pop().aclose()

    async def main():
        holder = []
        await start(holder)
        return handler_name(np.empty(3)), handler_name(np.empty(3))

    assert "ndx_plain" not in asyncio.run(main())


def test_decorators():
    @ndx.use("host", limit="1MiB", numpy=True)
    def make():
        return np.ones(3)

    @ndx.use("host", limit="1MiB", numpy=True)
    async def make_later():
        await asyncio.sleep(0)
        return np.ones(3)

    assert handler_name(make()) == "ndx_plain"
    assert handler_name(asyncio.run(make_later())) == "ndx_plain"
    assert handler_name(np.ones(3)) != "ndx_plain"


@pytest.mark.parametrize("scope", [lambda: ndx.use("host"), ndx.no_workspace])
def test_generators_are_not_decorated(scope):
    # Their bodies would run after the scope.
    def generator():
        yield ndx.ones(3)

    with pytest.raises(TypeError, match="generator function"):
        scope()(generator)
    with pytest.raises(TypeError, match="decorates functions"):
        scope()(type("Class", (), {}))


def test_it_is_a_bool():
    with pytest.raises(TypeError, match="numpy= is a bool"):
        ndx.use("host", numpy="yes")


def test_a_backend_in_python():
    class ByteArrays(ndx.backends.PythonBackend):
        def acquire(self, nbytes):
            return bytearray(nbytes)

    with ndx.use(ByteArrays(limit="10KiB"), numpy=True) as backend:
        a = np.arange(100)
        assert a.sum() == 4950
        assert held(backend) == (1, 800 + HEADER)
        with pytest.raises(MemoryError):
            np.ones(10_000)
        del a
        assert held(backend) == (0, 0)


@pytest.mark.thread_unsafe(reason="a recording has all threads")
def test_recordings_show_numpys_arrays():
    with (
        ndx.use("host", limit="1MiB", numpy=True),
        ndx.memory.record() as trace,
    ):
        a = np.empty(100)
        del a
    event, end = trace.events
    assert (event.nbytes, event.place, event.freed) == (800, "numpy", "dropped")
    assert event.maker.startswith(__file__)
    assert end.kind == "free"


def test_at_interpreter_exit():
    assert not run_python(
        "import ndx, numpy as np, atexit\n"
        "ndx.use('host', limit='1MiB', numpy=True).__enter__()\n"
        "kept = [np.ones(n) for n in range(50)]\n"
        "np.kept = np.ones(10)\n"
        "atexit.register(lambda: np.ones(10))\n"
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
def test_fork():
    assert not run_python(
        "import ndx, numpy as np, os\n"
        "with ndx.use('host', limit='1MiB', numpy=True) as backend:\n"
        "    a = np.ones(100)\n"
        "    child = os.fork()\n"
        "    assert a.sum() == 100 and np.arange(10).sum() == 45\n"
        "    del a\n"
        "    assert backend.stats()['allocated_count'] == 0\n"
        "    if child:\n"
        "        assert os.waitpid(child, 0)[1] == 0\n"
        "    else:\n"
        "        os._exit(0)\n"
    )


def refused_and_went_on(row):
    with contextlib.suppress(MemoryError):
        np.empty(1 << 20)
    return row


def refused_and_made_it_smaller(row):
    refused_and_went_on(row)
    np.empty(8)
    raise MemoryError


def fails_for_another_reason(row):
    raise MemoryError("mine")


def fails_without_a_reason(row):
    raise MemoryError


@pytest.mark.parametrize("fails", [fails_for_another_reason, fails_without_a_reason])
def test_an_error_is_of_its_own_call(fails):
    """A function that went on without memory leaves nothing for a later one."""
    with ndx.use("host", limit="64KiB"):
        x = ndx.ones((2, 3))
        np.apply_along_axis(refused_and_went_on, 0, x)
        with pytest.raises(MemoryError) as caught:
            np.apply_along_axis(fails, 0, x)
    assert type(caught.value) is MemoryError


def test_an_error_is_of_its_own_request():
    with ndx.use("host", limit="64KiB"):
        x = ndx.ones((2, 3))
        with pytest.raises(MemoryError) as caught:
            np.apply_along_axis(refused_and_made_it_smaller, 0, x)
    assert type(caught.value) is MemoryError


@pytest.mark.threads
def test_an_error_is_of_its_own_thread():
    with ndx.use("host", limit="64KiB"):
        x = ndx.ones((2, 3))
        thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(np.apply_along_axis, refused_and_went_on, 0, x),
        )

        def other_is_refused(row):
            thread.start()
            thread.join()
            raise MemoryError

        with pytest.raises(MemoryError) as caught:
            np.apply_along_axis(other_is_refused, 0, x)
    assert type(caught.value) is MemoryError


def refused_and_fails_for_another_reason(row):
    refused_and_went_on(row)
    raise MemoryError("mine")


@pytest.mark.parametrize(
    "fails", [refused_and_made_it_smaller, refused_and_fails_for_another_reason]
)
def test_a_cause_is_of_its_own_request(fails):
    with pytest.raises(MemoryError) as caught:
        ndx.use("host", limit="64KiB", numpy=True)(fails)(None)
    assert caught.value.__cause__ is None
