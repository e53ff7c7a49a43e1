"""Large operations on several threads: the same results, whatever else goes on."""

import concurrent.futures
import os
import signal
import threading
import time

import numpy as np
import pytest
from helpers.arrays import in_some_layout
from helpers.commands import run_python
from helpers.examples import examples
from helpers.numpy_versions import needs, needs_part
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx._compute.threads import count_from_environment

pytestmark = pytest.mark.threads

MANY = 300_000
NAMES = ["float64", "float32", "int64", "int16", "uint8", "bool", "complex128"]
# Of MANY elements or somewhat more; with long, short and single axes.
SHAPES = [
    (MANY,), (MANY + 7,), (3, MANY // 3 + 1), (MANY // 3 + 1, 3), (601, 503), (1, MANY),
    (70, 1, 4500), (20, 150, 101),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _restored():
    before = ndx.get_num_threads()
    yield
    ndx.set_num_threads(before)


def on_threads(count, function, *args):
    """Return what a function returns with a number of threads."""
    before = ndx.get_num_threads()
    ndx.set_num_threads(count)
    try:
        return function(*args)
    finally:
        ndx.set_num_threads(before)


def numbers(shape, dtype, seed=0):
    """Return an array of many different values, negative ones and zeros too."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(shape) * 50
    if np.dtype(dtype).kind == "c":
        return (found + 1j * rng.standard_normal(shape)).astype(dtype)
    return np.abs(found).astype(dtype) if dtype == "uint8" else found.astype(dtype)


def same(a, b):
    """Whether two arrays are equal to the last bit."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ------------------------------------------------------------------- the number


def test_the_number_of_threads_is_set_for_the_process():
    ndx.set_num_threads(3)
    assert ndx.get_num_threads() == 3
    seen = []
    thread = threading.Thread(target=lambda: seen.append(ndx.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [3]
    ndx.set_num_threads(np.int64(2))
    assert ndx.get_num_threads() == 2


@pytest.mark.parametrize("n", [0, -1, 257, 2**70])
def test_a_number_out_of_range_is_refused(n):
    before = ndx.get_num_threads()
    with pytest.raises(ValueError, match=f"can't be {n}; valid are 1 to 256"):
        ndx.set_num_threads(n)
    assert ndx.get_num_threads() == before


@pytest.mark.parametrize("n", [1.0, "2", None])
def test_what_is_no_number_is_refused(n):
    with pytest.raises(TypeError, match="is an int, not .*; valid are 1 to 256"):
        ndx.set_num_threads(n)


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({"NDX_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"NDX_NUM_THREADS": "", "OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OMP_NUM_THREADS": "100000"}, 256),
    ],
)
def test_the_environment_says_how_many(environment, count):
    assert count_from_environment(environment) == count


@pytest.mark.parametrize("text", ["", "0", "many", "-2", "²"])
def test_without_a_valid_number_of_openmp_the_cores_count(text):
    assert count_from_environment({"OMP_NUM_THREADS": text}) == count_from_environment(
        {}
    )


@pytest.mark.parametrize("text", ["0", "many", "1.5", "257"])
def test_an_invalid_variable_is_refused(text):
    with pytest.raises(ValueError, match=f"NDX_NUM_THREADS='{text}' .*valid are 1 to"):
        count_from_environment({"NDX_NUM_THREADS": text})


def test_a_program_starts_with_the_number_of_its_environment():
    code = "import ndx; x = ndx.ones(10**6); x + x; print(ndx.get_num_threads())"
    # It also ends while four threads sleep.
    assert run_python(code, environment={"NDX_NUM_THREADS": "5"}) == "5\n"


# ------------------------------------------------------------------ elementwise


@examples(25)
@given(st.data(), st.sampled_from(SHAPES), st.sampled_from(NAMES))
def test_elementwise_results_are_equal_for_any_number_of_threads(data, shape, dtype):
    x, y = numbers(shape, dtype), numbers(shape, dtype, 1)
    a, b = data.draw(in_some_layout(x)), data.draw(in_some_layout(y))
    if data.draw(st.booleans()):
        b, y = b[:1], y[:1]
    for function in (
        ndx.add,
        ndx.less,
        ndx.atan2 if dtype.startswith("float") else ndx.multiply,
    ):
        one = on_threads(1, function, a, b)
        assert same(one, on_threads(2, function, a, b))
        assert same(one, on_threads(5, function, a, b))
    expected = x.astype(dtype) + y
    np.testing.assert_array_equal(on_threads(3, ndx.add, a, b), expected)
    out = data.draw(in_some_layout(np.zeros_like(expected)))
    on_threads(3, lambda: ndx.add(a, b, out=out))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ["atan2", "hypot", "pow"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_parts_with_short_rows(name, dtype):
    """One thread reads them at the same steps as more: the last bits depend on that."""
    x = ndx.asarray(abs(numbers((70, 4500), dtype)) + 1)
    room = ndx.empty((4500, 280), dtype=dtype)
    y = room[::-1, :140:2].T
    y[...] = ndx.asarray(numbers((70, 4500), dtype, 1))
    function = getattr(ndx, name)
    assert same(on_threads(1, function, x, y), on_threads(2, function, x, y))


def test_powers_of_floats_use_threads_and_those_of_integers_raise():
    x = ndx.asarray(numbers((MANY,), "float64"))
    assert same(on_threads(1, ndx.pow, x, 2.5), on_threads(3, ndx.pow, x, 2.5))
    with pytest.raises(ValueError, match="negative"):
        on_threads(3, ndx.pow, ndx.ones(MANY * 4, dtype=ndx.int64), -1)


# ------------------------------------------------------------------- reductions

REDUCED = [
    (400_007,), (1031, 1000), (130_001, 3), (3, 130_001), (9, 150, 401), (150, 401, 9),
    (50_000, 20), (20, 50_000), (1, 400_007), (50, 9, 3, 700),
]  # fmt: skip


@examples(40)
@given(st.data(), st.sampled_from(REDUCED), st.sampled_from(NAMES))
def test_reductions_are_equal_for_any_number_of_threads(data, shape, dtype):
    x = numbers(shape, dtype)
    a = data.draw(in_some_layout(x))
    axes = [None, *range(x.ndim), (0, x.ndim - 1) if x.ndim > 1 else 0]
    axis, keepdims = data.draw(st.sampled_from(axes)), data.draw(st.booleans())
    names = ["sum", "prod", "any", "all"] + ["max", "min", "std"] * (dtype[0] != "c")
    for name in names:
        function = getattr(ndx, name)

        def compute(function=function):
            return function(a, axis=axis, keepdims=keepdims)

        one = on_threads(1, compute)
        assert same(one, on_threads(2, compute)), name
        assert same(one, on_threads(5, compute)), name
        if name == "prod" and x.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                expected = np.prod(np.asarray(a), axis=axis, keepdims=keepdims)
            np.testing.assert_allclose(np.asarray(one), expected, rtol=1e-4)
            continue
        wider = np.longdouble if x.dtype.kind == "f" else None
        if name in ("sum", "prod", "std"):
            expected = getattr(np, name)(x, axis=axis, keepdims=keepdims, dtype=wider)
        else:
            expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
        if x.dtype.kind in "fc" and name in ("sum", "std"):
            scale = np.sum(np.abs(x), axis=axis, keepdims=keepdims)
            error = np.abs(np.asarray(one) - expected)
            assert np.all(error <= 4 * np.finfo(x.dtype).eps * scale)
        elif name == "std":
            np.testing.assert_allclose(np.asarray(one), expected, rtol=1e-9)
        else:
            np.testing.assert_array_equal(np.asarray(one), expected)


@needs("sums of long stretches are pairwise as a whole")
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("size", [131_072, 400_007, 1_000_003, 999_999])
def test_the_sum_of_a_stretch_is_the_pairwise_sum(dtype, size):
    x = numbers((size,), dtype)
    a = ndx.asarray(x)
    assert same(on_threads(3, ndx.sum, a), ndx.asarray(np.sum(x)))
    twice = ndx.asarray(np.repeat(x, 2))[::2]
    assert same(on_threads(3, ndx.sum, twice), ndx.asarray(np.sum(x)))


@needs_part("loops")
@pytest.mark.parametrize("shape", [(400_000,), (400, 1000), (1000, 400), (100_000, 4)])
def test_special_values_survive_in_parts(shape):
    x = np.full(shape, -0.0)
    for n in (1, 3):
        total = on_threads(n, ndx.sum, ndx.asarray(x))
        assert np.signbit(np.asarray(total))
        assert np.all(
            np.signbit(
                np.asarray(on_threads(n, lambda: ndx.sum(ndx.asarray(x), axis=0)))
            )
        )
        for place in (0, x.size // 2, x.size - 1):
            y = x.copy()
            y.flat[place] = np.nan
            assert np.isnan(float(on_threads(n, ndx.max, ndx.asarray(y))))
            assert np.isnan(float(on_threads(n, ndx.min, ndx.asarray(y))))
            assert np.isnan(float(on_threads(n, ndx.sum, ndx.asarray(y))))
            flags = x == 0
            flags.flat[place] = False
            assert not on_threads(n, ndx.all, ndx.asarray(flags))
            assert on_threads(n, ndx.any, ndx.asarray(~flags))
        assert on_threads(n, ndx.max, ndx.asarray(x - np.inf)) == -np.inf
        assert on_threads(n, ndx.min, ndx.asarray(x + np.inf)) == np.inf


# ------------------------------------------------------ threads, forks, signals


def test_python_threads_compute_at_the_same_time():
    ndx.set_num_threads(3)
    x = ndx.asarray(numbers((MANY,), "float64"))
    expected = (x + x).tobytes()

    def turn(_):
        return all((x + x).tobytes() == expected for _ in range(20))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(turn, range(12)))


def test_the_number_changes_while_others_compute():
    x = ndx.asarray(numbers((MANY,), "float64"))
    expected = ndx.exp(x).tobytes()
    ended = threading.Event()

    def change():
        while not ended.is_set():
            for n in (1, 4, 2, 40):
                ndx.set_num_threads(n)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        assert all(ndx.exp(x).tobytes() == expected for _ in range(60))
    finally:
        ended.set()
        thread.join()


def test_threads_sleep_when_no_more_work_comes():
    ndx.set_num_threads(2)
    x = ndx.asarray(numbers((MANY,), "float64"))
    for _ in range(5):
        # They wait awake where operations come soon after another.
        for _ in range(40):
            x + x
        before = time.process_time()
        time.sleep(0.2)
        assert time.process_time() - before < 0.05


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_has_threads_of_its_own():
    code = """
import os, threading, ndx
ndx.set_num_threads(4)
x = ndx.ones(10**6)
ended = threading.Event()
def compute():
    while not ended.is_set():
        x + x
# Forks fall into operations of another thread, too.
thread = threading.Thread(target=compute)
thread.start()
try:
    for _ in range(15):
        child = os.fork()
        if not child:
            grandchild = os.fork()
            good = all(float(ndx.max(x + x)) == 2.0 for _ in range(10))
            if grandchild:
                good = good and os.waitpid(grandchild, 0)[1] == 0
            os._exit(not good)
        assert os.waitpid(child, 0)[1] == 0
        assert float(ndx.max(x + x)) == 2.0
finally:
    ended.set()
    thread.join()
print("done")
"""
    assert run_python(code) == "done\n"


def test_a_program_ends_while_a_daemon_computes():
    code = """
import threading, ndx
ndx.set_num_threads(4)
x = ndx.ones(10**6)
working = threading.Semaphore(0)
def compute():
    while True:
        x + x
        working.release()
threading.Thread(target=compute, daemon=True).start()
for _ in range(30):
    working.acquire()
"""
    for _ in range(3):
        assert run_python(code) == ""


def until_the_timer(function):
    """Call a function again and again."""
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while True:
        function()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_an_interrupt_reaches_the_interpreter():
    ndx.set_num_threads(4)
    x = ndx.asarray(numbers((MANY,), "float64"))

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(5):
            with pytest.raises(KeyboardInterrupt):
                until_the_timer(lambda: x + x)
            assert same(x + x, x * 2.0)
    finally:
        signal.signal(signal.SIGALRM, before)


@needs_part("loops")
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="sees the cores")
def test_threads_keep_off_the_core_of_their_caller():
    code = """if True:
        import os
        import ndx
        cores = sorted(os.sched_getaffinity(0))
        ndx.set_num_threads(2)
        x = ndx.ones(1_000_000)
        x + x
        own = {int(name) for name in os.listdir('/proc/self/task')}
        def helpers():
            found = []
            for each in own:
                try:
                    allowed = os.sched_getaffinity(each)
                except ProcessLookupError:
                    continue
                if each != os.getpid() and len(allowed) == len(cores) - 1:
                    found.append(allowed)
            return found
        if len(cores) > 1:
            for core in (cores[0], cores[-1], cores[0]):
                os.sched_setaffinity(0, {core})
                os.sched_setaffinity(0, cores)
                for _ in range(3):
                    x + x
            assert helpers(), 'no thread keeps off a core'
            # Where the caller may use one core alone, threads are where they were.
            os.sched_setaffinity(0, {cores[0]})
            assert float(ndx.sum(x + x)) == 2_000_000
        print('done')
    """
    assert run_python(code) == "done\n"
