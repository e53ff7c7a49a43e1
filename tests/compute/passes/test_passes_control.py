"""Who says how passes are made, who is told of them, and what ends them."""

import contextvars
import os
import threading

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.numpy_versions import needs_part
from helpers.passes import LARGE, in_file, passing, same

import ndx

pytestmark = [
    needs_part("loops"),
    pytest.mark.threads,
    pytest.mark.skipif(os.name != "posix", reason="maps files"),
]

# Whether all operands fit in memory: pages are mapped there, else pieces are read.
MEMORY = pytest.mark.parametrize("memory", ["1GiB", 0], ids=["fits", "streams"])


# ---------------------------------------------------------------- the callback


@MEMORY
@pytest.mark.parametrize("threads", [1, 3])
def test_progress_says_how_far_it_is(tmp_path, memory, threads):
    with passing(tmp_path, memory=memory, threads=threads) as calls:
        x = in_file(np.ones(100_000))
        del calls[:]
        y = x + x  # one array counts once for each operand
        done = [call[0] for call in calls]
        assert done == sorted(done)
        assert len(done) > 3 or threads > 1  # helpers may be faster
        assert done[-1] == 3 * x.nbytes
        assert {call[1:] for call in calls} == {(3 * x.nbytes, "add")}
        del calls[:]
        ndx.sum(y)
        assert calls[-1] == (x.nbytes, x.nbytes, "sum")
        del calls[:]
        with ndx.passes(threshold="1GiB"):
            x + x
        ndx.ones(LARGE - 1) + 1
        assert calls == []


def test_arrays_in_other_memory_are_not_passed_over(tmp_path):
    with passing(tmp_path) as calls, ndx.use("host"):
        x = ndx.ones(4 * LARGE)
        ndx.sum(x * 2)
    assert calls == []


@MEMORY
@pytest.mark.parametrize("threads", [1, 4])
def test_what_the_callback_raises_ends_the_operation(tmp_path, memory, threads):
    with ndx.use("mmap", directory=tmp_path) as backend:
        x = ndx.asarray(np.arange(200_000.0), copy=True)
        before = backend.stats()["allocated_bytes"]

        def stop(done, total, name):
            raise LookupError(f"{name} {done > 0}")

        options = {"threshold": 0, "block": "16KiB", "memory": memory}
        with ndx.passes(progress=stop, threads=threads, **options):
            for compute in (
                lambda: x + 1,
                lambda: ndx.sum(x),
                lambda: ndx.astype(x, ndx.int32),
                lambda: ndx.where(x > 3, x, 0),
                lambda: ndx.asarray(x, copy=True),
            ):
                with pytest.raises(LookupError, match="True"):
                    compute()
                assert backend.stats()["allocated_bytes"] == before
        same(x, np.arange(200_000.0))
        x.close()  # no pin was left


@MEMORY
@pytest.mark.parametrize("threads", [1, 3])
def test_ctrl_c_ends_the_operation_between_two_blocks(tmp_path, memory, threads):
    code = """
        import signal, sys, time, numpy as np, ndx
        # Also where the tests run in the background, and so ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with ndx.use("mmap", directory=sys.argv[1]) as backend:
            x = ndx.ones(400_000)
            calls = []
            def progress(done, total, name):
                calls.append(done)
                if len(calls) == 1:
                    signal.raise_signal(signal.SIGINT)
            before = backend.stats()["allocated_bytes"]
            with ndx.passes(threshold=0, block="16KiB", threads=int(sys.argv[3]),
                            progress=progress, memory=sys.argv[2]):
                try:
                    y = x + 1
                except KeyboardInterrupt:
                    print("interrupted", len(calls) == 1)
                print(backend.stats()["allocated_bytes"] == before)
                print(float(ndx.sum(x)), float(ndx.sum(x + 1)))
    """
    words = run_python(code, tmp_path, memory, threads)
    assert words.split() == ["interrupted", "True", "True", "400000.0", "800000.0"]


def test_the_callback_may_compute_and_close(tmp_path):
    seen = []
    with passing(tmp_path) as calls:
        x = in_file(np.ones(2 * LARGE))

        def nested(done, total, name):
            if not seen:
                seen.append(None)
                seen.append(float(ndx.sum(x * 2)))
                with pytest.raises(BufferError):
                    x.close()

        with ndx.passes(progress=nested):
            same(x + 1, np.full(2 * LARGE, 2.0))
    assert seen == [None, 4.0 * LARGE]
    assert calls


# ---------------------------------------------------------------- options


def test_options_are_those_of_the_innermost_scope(tmp_path):
    outer, inner = [], []
    scope = ndx.passes(progress=lambda *call: inner.append(call), block="4KiB")
    # Of several threads, the others may be faster.
    with passing(tmp_path, progress=lambda *call: outer.append(call), threads=1):
        x = in_file(np.ones(LARGE))
        del outer[:]
        with scope, scope:
            x + 1
        blocks = len(inner)
        x + 1
        assert 0 < len(outer) < blocks
        found = []
        thread = threading.Thread(target=lambda: found.append(ndx.sum(x)))
        del outer[:]
        thread.start()
        thread.join()
        assert float(found[0]) == LARGE
        assert outer == [], "another thread has its own options"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"progress": 3}, TypeError, "progress= is called as"),
        ({"threads": 0}, ValueError, "from 1 to 64"),
        ({"threads": 65}, ValueError, "from 1 to 64"),
        ({"threads": 1.5}, TypeError, "threads= is an int"),
        ({"block": 0}, ValueError, "4096 bytes"),
        ({"block": "4 parsecs"}, ValueError, "block='4 parsecs' is not a size"),
        ({"threshold": -1}, ValueError, "threshold=-1 is negative"),
        ({"memory": "all"}, ValueError, "memory='all' is not a size"),
        ({"nosuch": 1}, TypeError, "nosuch"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        ndx.passes(**options)


def test_the_text_shows_what_was_given():
    assert repr(ndx.passes(block="1MiB", threads=2)) == (
        "ndx.passes(block=1048576, threads=2)"
    )


# ---------------------------------------------------------------- entering and leaving


def block_here(tmp_path):
    """Return the least block that a pass reports here: what `block` is."""
    calls = []
    with ndx.use("mmap", directory=tmp_path):
        x = ndx.ones(4 * LARGE)
    with ndx.passes(progress=lambda *call: calls.append(call), threshold=0, threads=1):
        ndx.sum(x)
    return len(calls)


def test_one_object_is_entered_by_two_threads_at_once(tmp_path):
    one = ndx.passes(block="64KiB")
    counts = [block_here(tmp_path)]
    barrier = threading.Barrier(2, timeout=60)

    def other():
        barrier.wait()  # 1: entered by the first
        with one:
            barrier.wait()  # 2: by both
            barrier.wait()  # 3: left by the first
            counts.append(block_here(tmp_path))
        counts.append(block_here(tmp_path))

    thread = threading.Thread(target=other)
    thread.start()
    with one:
        barrier.wait()
        barrier.wait()
        inside = block_here(tmp_path)
    outside = block_here(tmp_path)
    barrier.wait()
    thread.join()
    assert inside > outside
    assert [outside, inside, outside] == counts


def test_a_generator_that_is_closed_in_another_context_ends_its_settings(tmp_path):
    outside = block_here(tmp_path)

    def entered():
        with ndx.passes(block="64KiB"):
            yield

    for close in (
        lambda g: g.close(),
        lambda g: contextvars.copy_context().run(g.close),
        lambda g: contextvars.Context().run(g.close),
        lambda g: join(threading.Thread(target=g.close)),
    ):
        generator = entered()
        next(generator)
        assert block_here(tmp_path) > outside
        close(generator)
        assert block_here(tmp_path) == outside


def join(thread):
    thread.start()
    thread.join()


def test_settings_that_are_left_out_of_order_end_all_the_same(tmp_path):
    outside = block_here(tmp_path)
    first, second = ndx.passes(block="64KiB"), ndx.passes(memory=0)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert block_here(tmp_path) == outside
    with pytest.raises(RuntimeError, match="not entered"):
        first.__exit__(None, None, None)


def test_what_inherits_the_settings_keeps_them(tmp_path):
    with ndx.passes(block="64KiB"):
        inherited = contextvars.copy_context()
        inside = block_here(tmp_path)
    assert inherited.run(block_here, tmp_path) == inside > block_here(tmp_path)


# ---------------------------------------------------------------- threads


def tasks():
    return len(os.listdir("/proc/self/task"))


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="counts threads")
def test_passes_take_the_threads_of_all_operations(tmp_path):
    with passing(tmp_path, memory="1GiB", threads=3):
        x = in_file(np.ones(100_000))
        ndx.sum(x)
        before = tasks()
        for _ in range(20):
            ndx.sum(x)
        assert tasks() == before


def test_passes_of_several_threads_at_once(tmp_path):
    with passing(tmp_path, memory=0, threads=3):
        x = in_file(np.arange(100_000.0))
        expected = float(ndx.sum(x * 2.0))

        def run():
            for _ in range(20):
                found.append(float(ndx.sum(x * 2.0)))

        found = []
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(run,))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [expected] * 60


def test_set_num_threads_is_for_passes_too(tmp_path):
    program = """
    import os, numpy as np, ndx
    ndx.set_num_threads(1)
    with ndx.use("mmap"), ndx.passes(block="64KiB", threshold=1):
        x = ndx.ones(1_000_000)
        before = len(os.listdir("/proc/self/task"))
        ndx.sum(x)
        print(len(os.listdir("/proc/self/task")) - before)
    """
    if os.path.exists("/proc/self/task"):
        assert run_python(program) == "0\n"
