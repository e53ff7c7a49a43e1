"""Estimates and the largest batch, compared with what is counted and refused."""

import functools

import numpy as np
import pytest
from helpers.examples import examples
from helpers.pools import Bytes
from helpers.together import TEMPORARIES_KNOWN
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx import memory
from ndx.backends import HostBackend

ROWS = (300, 40)


def chain(x):
    return ndx.sqrt(ndx.abs(x * 2 - 1) + 3)


def in_place(x):
    y = x * 2
    y += x
    y[...] = y * y
    y -= 1
    return y


def temporaries(x):
    # Above 256 KiB results are written over temporaries.
    return (x + 1) * (x + 2) - (x + 3) * (x + 4)


def reductions(x):
    centered = x - ndx.mean(x, axis=0)
    return ndx.sum(centered * centered, axis=1) / ndx.std(x)


def products(x):
    gram = x.T @ x
    return (x @ gram) @ x.T + (x @ x.T)


def cycles(x):
    total = ndx.zeros(x.shape[1])
    for _ in range(4):
        with ndx.workspace("cycle of estimates"):
            total += ndx.sum(x * 2 + 1, axis=0)
    return total


def phases(x):
    with memory.profile("forward"):
        hidden = ndx.tanh(x) * 2
        with memory.profile("inner"):
            hidden = hidden + ndx.ones(x.shape)
    with memory.profile("backward"):
        return hidden[:10] * x[:10]


@ndx.fuse
def fused_part(x):
    return ndx.sum(ndx.exp(x * 0.5) + x, axis=0)


def fused(x):
    return fused_part(x) * 2


def numpys(x):
    y = np.where(np.sin(x) > 0, x, np.float64(1.0))
    return np.concatenate(
        [np.cumsum(y, axis=1), np.median(y, axis=1, keepdims=True)], 1
    )


def small(x):
    kept = [ndx.ones(n) for n in range(8)]
    kept.append(ndx.reshape(ndx.ones(6), (2, 3))[1])
    return [each * 2 for each in kept]


def exceptions(x):
    try:
        y = x * 2
        raise ZeroDivisionError
    except ZeroDivisionError:
        del y
    return x + 1


def views(x):
    corner = (x * 3)[:2, :2]
    return corner, x * 4


def sorts(x):
    return ndx.take_along_axis(x, ndx.argsort(x, axis=1), axis=1), ndx.sort(x)


PROGRAMS = [
    chain, in_place, temporaries, reductions, products, cycles, phases, fused, numpys,
    small, exceptions, views, sorts,
]  # fmt: skip


class Counter:
    """A hook that counts what a backend has lent, and the most of that."""

    def __init__(self):
        self.now = self.peak = 0

    def __call__(self, action, nbytes, address):
        self.now += nbytes if action == "allocate" else -nbytes
        self.peak = max(self.peak, self.now)


@pytest.fixture(autouse=True)
def _forget():
    yield
    memory.destroy_all()
    memory.profile_report(clear=True)


def run_on(backend, fn, shape):
    """Run a program on a backend, with nothing of this file's between."""
    memory.destroy_all()
    with ndx.use(backend):
        return fn(ndx.ones(shape))


@pytest.mark.parametrize("shape", [ROWS, (5, 4), (1500, 40)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_peak_is_that_of_another_run(program, shape):
    found = memory.estimate(program, shape)
    backend = HostBackend()
    result = run_on(backend, program, shape)
    stats = backend.stats()
    assert found.peak_bytes == stats["peak_bytes"]
    assert found.result_bytes + found.left_bytes == stats["allocated_bytes"]
    assert found.argument_bytes == 8 * shape[0] * shape[1]
    counter, hooked = Counter(), HostBackend()
    hooked.add_hook(counter)
    other = run_on(hooked, program, shape)
    assert found.peak_bytes == counter.peak
    assert found.missed == 0
    assert found.live_bytes <= found.peak_bytes <= found.reserved_bytes
    assert sum(each.nbytes for each in found.makers) == found.live_bytes
    if program is numpys:
        # Each array that NumPy makes within a function has a header.
        assert (found.peak_bytes - found.live_bytes) % 64 == 0
    elif program not in (cycles, fused):
        assert found.live_bytes == found.peak_bytes
    del result, other


@given(
    steps=st.lists(st.integers(1, 3000) | st.integers(-20, 0), min_size=1, max_size=40)
)
@examples(40)
def test_random_births_and_deaths(steps):
    def program():
        alive = []
        for step in steps:
            if step > 0:
                alive.append(ndx.ones(step))
            elif alive:
                alive.pop(step % len(alive))
        return alive

    sizes, peak = [], 0
    for step in steps:
        if step > 0:
            sizes.append(8 * step)
        elif sizes:
            sizes.pop(step % len(sizes))
        peak = max(peak, sum(sizes))
    found = memory.estimate(program)
    assert found.peak_bytes == found.live_bytes == peak
    assert (found.result_bytes, found.left_bytes) == (sum(sizes), 0)


def test_phases_and_workspaces():
    before = memory.workspaces()
    found = memory.estimate(phases, ROWS)
    whole = 8 * 300 * 40
    assert found.phases["forward"] == found.peak_bytes == 4 * whole
    assert found.phases["inner"] == 4 * whole
    # What is alive there: the argument, `hidden`, the result.
    assert found.phases["backward"] == 2 * whole + 3200
    found = memory.estimate(cycles, ROWS)
    assert found.phases["workspace 'cycle of estimates'"] == found.live_bytes
    assert found.left_bytes > 0
    assert memory.workspaces() == before


def test_makers_are_lines_of_the_program():
    found = memory.estimate(views, ROWS)
    lines = [each.line for each in found.makers]
    assert sum("in views" in line for line in lines) == 2
    assert all(each.arrays == 1 for each in found.makers)


def test_shapes_dtypes_and_other_arguments():
    seen = []

    def look(*arguments):
        seen.extend(arguments)
        return arguments[1].dtype, arguments[0].shape

    given = ndx.ones(1000)
    found = memory.estimate(
        look, (2, 3), ((10,), "float32"), given, (), 5, "text", ("a",)
    )
    assert [each.shape for each in seen[:2]] == [(2, 3), (10,)]
    assert seen[1].dtype == ndx.float32
    assert seen[2] is given
    assert seen[3].shape == ()
    assert seen[4:] == [5, "text", ("a",)]
    assert found.argument_bytes == found.peak_bytes == 48 + 40 + 8


def test_what_a_function_keeps_elsewhere():
    kept = []
    found = memory.estimate(lambda x: kept.append(x * 2), (1000,))
    assert (found.peak_bytes, found.result_bytes, found.left_bytes) == (16000, 0, 8000)
    assert kept[0].backend.stats()["allocated_bytes"] == 8000


def test_the_backend_is_of_the_kind_that_is_asked_for(tmp_path):
    def names(x):
        backend = x.backend
        found.append((backend.name, backend.limit, backend.options.fallback))

    found = []
    with ndx.use("host", limit="1MiB", fallback="mmap", pool="naive") as outside:
        memory.estimate(names, (10,))
        memory.estimate(names, (10,), limit="2MiB")
        memory.estimate(names, (10,), backend=memory.TrackingAdaptor("host"))
    with ndx.use("mmap", directory=tmp_path):
        memory.estimate(names, (10,))
    assert found == [
        ("host", None, None),
        ("host", 2**21, None),
        ("host", None, None),
        ("mmap", None, None),
    ]
    assert outside.stats()["total_allocations"] == 0


def test_backends_of_other_packages():
    with pytest.raises(TypeError, match="not registered"):
        memory.estimate(chain, ROWS, backend=Bytes())
    ndx.backends.register("bytes", Bytes)
    try:
        found = memory.estimate(chain, ROWS, backend="bytes")
        assert found.peak_bytes == memory.estimate(chain, ROWS).peak_bytes
        found = memory.fit(product, lambda n: (n, 100), 100_000, backend="bytes")
        assert int(found) == 100_000 // 1280
        with pytest.raises(ValueError, match="give limit="):
            memory.fit(product, lambda n: (n, 100), backend="bytes")
    finally:
        ndx.backends.unregister("bytes")


def test_numpys_arrays():
    def program(x):
        return np.ones(1000)

    assert memory.estimate(program, (10,)).peak_bytes == 80
    with ndx.use(HostBackend(), numpy=True) as backend:
        program(ndx.ones((10,)))
    found = memory.estimate(program, (10,), numpy=True)
    assert found.peak_bytes == backend.stats()["peak_bytes"] >= 80 + 8064


def test_a_limit_of_an_estimate():
    with pytest.raises(ndx.OutOfMemoryError):
        memory.estimate(chain, (1000, 1000), limit="1MiB")


def test_errors_of_the_function_are_its_own():
    def fails(x):
        y = x * 2
        raise ZeroDivisionError(y.shape)

    with pytest.raises(ZeroDivisionError):
        memory.estimate(fails, (10,))
    with pytest.raises(ZeroDivisionError):
        memory.fit(fails, lambda n: (n,), "1MiB")


def test_a_full_recording_is_told():
    def many():
        for _ in range(1000):
            ndx.ones(10)

    found = memory.estimate(many, max_events=64)
    assert found.missed > 0
    assert found.peak_bytes == 80
    assert "give a greater max_events" in str(found)


async def waits():
    pass


async def yields():
    yield


@pytest.mark.parametrize(
    "fn",
    [3, None, waits, yields, lambda: waits(), lambda: (each for each in "ab")],
    ids=["int", "None", "async", "async generator", "coroutine", "generator"],
)
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_what_is_no_function(fn):
    with pytest.raises(TypeError, match=r"function|callable|computed nothing"):
        memory.estimate(fn)


def test_tables():
    found = memory.estimate(phases, ROWS)
    text = str(found)
    assert "384,000 B" in text
    assert "4 times the arguments" in text
    assert "peak in forward" in text
    assert repr(found) == "<Estimate: peak 375 KiB>"
    assert found._repr_html_().startswith("<pre")
    assert len(str(found.table(makers=0)).splitlines()) == 9


# ---- The largest batch ---------------------------------------------------------------


def refused(fn, n, limit, width=100):
    memory.destroy_all()
    try:
        with ndx.use("host", limit=limit):
            fn(ndx.ones((n, width)))
    except ndx.OutOfMemoryError:
        return True
    return False


def largest(fn, limit, width=100):
    n = 1
    while not refused(fn, n, limit, width):
        n += 1
    return n - 1


WEIGHTS = ndx.ones((100, 30))


def product(x):
    return ndx.tanh(x @ WEIGHTS)


def two_regimes(x):
    """Need much for a small batch in one phase, and much of each row in another."""
    table = ndx.ones(12_000)
    y = x[:, 0] + table[0]
    del table
    return [x * 2 for _ in range(3)], y


def three_regimes(x):
    first = ndx.ones(30_000)
    del first
    second = ndx.ones(10_000), x[:, :50] + 1
    del second
    return x + 1, x + 2, x + 3


def in_workspace(x):
    for _ in range(3):
        with ndx.workspace("fits"):
            found = float(ndx.sum(x * 2))
    return found


@pytest.mark.parametrize(
    "fn", [product, in_place, two_regimes, three_regimes, in_workspace]
)
@pytest.mark.parametrize("limit", ["300KiB", 500_000, "0.7MiB"])
def test_the_largest_batch_is_that_of_brute_force(fn, limit):
    before = memory.workspaces()
    found = memory.fit(fn, lambda n: (n, 100), limit)
    assert memory.workspaces() == before
    assert int(found) == found.batch == largest(fn, found.limit)
    assert found.peak_bytes <= found.limit
    assert found.bound == "refused"


@given(
    constant=st.integers(0, 30_000),
    growing=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    limit=st.integers(260_000, 500_000),
)
@examples(20)
def test_linear_programs(constant, growing, limit):
    def program(x):
        table = ndx.ones(constant)
        first = x[:, : 20 * growing[0]] + 1
        del table, first
        return [ndx.concat([x] * each) for each in growing]

    found = memory.fit(program, lambda n: (n, 100), limit)
    # Pages are whole: a batch that is refused may lie below one that fits.
    assert int(found) >= largest(program, limit)
    assert not refused(program, found.batch, found.limit)
    assert refused(program, found.batch + 1, found.limit)
    assert len(found.runs) <= 16


def test_large_batches_need_few_runs():
    found = memory.fit(product, lambda n: (n, 100), "64MiB")
    assert [(each.purpose, each.fits) for each in found.runs] == [
        ("model", True), ("model", True), ("confirm", True), ("confirm", False),
    ]  # fmt: skip
    assert [each.batch for each in found.runs[2:]] == [found.batch, found.batch + 1]
    assert found.model.at(found.batch) == found.peak_bytes


def test_a_peak_that_changes_its_lines():
    """Results are written over temporaries from 256 KiB on, so lines differ there."""
    found = memory.fit(lambda x: x * 2 + 1, lambda n: (n, 100), "8MiB")
    assert not refused(lambda x: x * 2 + 1, found.batch, found.limit)
    assert refused(lambda x: x * 2 + 1, found.batch + 1, found.limit)
    if TEMPORARIES_KNOWN:
        assert found.batch == pytest.approx(2**23 / 1600, rel=0.01)


def test_a_peak_that_is_no_line():
    def square(x):
        return x @ x.T

    found = memory.fit(square, lambda n: (n, 10), "1MiB")
    assert int(found) == largest(square, 2**20, 10)
    assert len(found.runs) < 24


def test_the_most():
    found = memory.fit(product, lambda n: (n, 100), "1MiB", most=17)
    assert (int(found), found.bound) == (17, "most")
    found = memory.fit(product, lambda n: (n, 100), "1MiB", most=1)
    assert (int(found), found.bound, found.model) == (1, "most", None)
    assert range(20)[found] == 1
    found = memory.fit(lambda x: None, lambda n: (3,), "1MiB", most=10_000)
    assert (int(found), len(found.runs)) == (10_000, 3)


def test_batches_are_trees_of_arrays():
    def loss(batch):
        return ndx.sum(batch["x"] * batch["y"])

    def make(n):
        return {"x": ndx.ones((n, 100)), "y": ndx.ones((n, 100))}

    found = memory.fit(loss, make, "200KiB")
    assert int(found) == largest(lambda x: loss(make(x.shape[0])), 204_800, 0)


def test_the_limit_of_the_backend():
    with ndx.use("host", limit="1MiB"):
        weights = ndx.ones(65_536)
        found = memory.fit(product, lambda n: (n, 100))
        assert found.limit == 2**19
        del weights
    free, _ = ndx.backends.get("host").memory_info()
    if free is not None:
        found = memory.fit(product, lambda n: (n, 100), most=3, backend="host")
        assert found.limit > 2**20
    found = memory.fit(product, lambda n: (n, 100), "50%", most=3)
    assert found.limit == memory.info("host").total // 2


def test_a_refusal_under_another_name():
    def hides(x):
        try:
            return x * 2
        except ndx.OutOfMemoryError:
            raise ValueError from None

    found = memory.fit(hides, lambda n: (n, 100), "100KiB")
    assert int(found) == largest(lambda x: x * 2, 102_400)


def test_a_function_that_does_without():
    def tries(x):
        try:
            return x * 2
        except ndx.OutOfMemoryError:
            return None

    found = memory.fit(tries, lambda n: (n, 100), "100KiB")
    assert int(found) == largest(tries, 102_400) == largest(lambda x: x, 102_400)


def test_numpys_batches():
    def make(n):
        return np.ones((n, 1000))

    with pytest.raises(TypeError, match="no array that counts"):
        memory.fit(np.sqrt, make, "1MiB")
    found = memory.fit(np.sqrt, make, "1MiB", numpy=True)
    assert 60 <= int(found) <= 65


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda fit: fit(3, lambda n: (n,), "1MiB"),
            TypeError,
            "fn must be callable",
        ),
        (lambda fit: fit(product, (3, 4), "1MiB"), TypeError, "make_batch must be"),
        (lambda fit: fit(product, lambda n: (n, 100), 0), ValueError, "leaves 0 bytes"),
        (
            lambda fit: fit(product, lambda n: (n, 100), "2 apples"),
            ValueError,
            "limit=",
        ),
        (lambda fit: fit(product, lambda n: (n, 100), -1), ValueError, "negative"),
        (
            lambda fit: fit(product, lambda n: (n, 100), 900),
            ValueError,
            "no batch fits",
        ),
        (lambda fit: fit(len, lambda n: "text", "1MiB"), TypeError, r"returned str"),
        (lambda fit: fit(len, lambda n: None, "1MiB"), TypeError, "returned NoneType"),
        (lambda fit: fit(len, lambda n: (3,), "1MiB"), ValueError, "does not grow"),
        (
            lambda fit: fit(len, lambda n: (3,), "1MiB", most=0),
            ValueError,
            "at least 1",
        ),
        (lambda fit: fit(len, lambda n: (3,), "1MiB", most="a"), TypeError, "an int"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call(functools.partial(memory.fit))


def test_nothing_is_left_behind():
    before = memory.live()
    memory.fit(product, lambda n: (n, 100), "1MiB")
    memory.estimate(product, (30, 100))
    assert list(memory.live() - before) == []


def test_a_table_of_a_fit():
    found = memory.fit(product, lambda n: (n, 100), "1MiB")
    text = str(found)
    assert text.startswith(
        f"batch {found.batch:,}: {found.peak_bytes:,} of 1,048,576 B"
    )
    assert "in product" in text
    assert "n + 0" in text
    assert repr(found) == f"<Fit: batch {found.batch:,} in 1 MiB>"
    assert repr(found.model).startswith("<PeakModel: ")
    assert found._repr_html_().startswith("<pre")


@given(
    lines=st.lists(
        st.tuples(st.integers(0, 20), st.integers(-50, 50)), min_size=1, max_size=8
    ),
    limit=st.integers(60, 1000),
)
@examples(100)
def test_models_are_the_greatest_of_their_lines(lines, limit):
    model = memory.PeakModel(memory.PeakLine(*each) for each in lines)
    peaks = [max(slope * n + start for slope, start in lines) for n in range(1, 1200)]
    assert [model.at(n) for n in range(1, 1200)] == peaks
    if any(slope for slope, _ in lines):
        assert model.largest(limit) == sum(peak <= limit for peak in peaks)
    else:
        assert model.largest(limit) is None
    assert len(model.lines) <= len(set(lines))


def test_a_limit_is_tried_without_alarms(tmp_path):
    called = []
    note = called.append
    memory.on_oom(note)
    memory.report_to(tmp_path / "report")
    try:
        found = memory.fit(lambda x: x * 2, lambda n: (n, 100), "1MiB")
        with pytest.raises(ndx.OutOfMemoryError):
            memory.estimate(lambda x: x * 2, (10_000, 100), limit="1MiB")
        assert found.bound == "refused"
        assert called == []
        assert not (tmp_path / "report").exists()
        with pytest.raises(ndx.OutOfMemoryError), ndx.use("host", limit=0):
            ndx.ones(100)
        assert called
        assert (tmp_path / "report").exists()
    finally:
        memory.report_to(None)
        memory.remove_on_oom(note)
