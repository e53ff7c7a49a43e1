"""Worker processes of `ndx.parallel.map`: backends, what they share, their end."""

import functools
import os
import time
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from helpers.parallel import (
    LARGE,
    METHODS,
    Counter,
    Mine,
    Silent,
    Slow,
    backend_and_limits,
    dies_in_its_answer,
    doubled,
    fails_silently,
    first_of_both,
    forks_and_sleeps,
    ignores_the_end,
    items,
    named_types,
    returns_the_one_before,
    script,
    shared_files,
    shares,
    shares_and_sleeps,
    shares_and_stays_in_a_scope,
    wait_until,
    where_it_lies,
)

import ndx
from ndx._pipelines import processes
from ndx.testing import assert_equal

pytestmark = [
    pytest.mark.threads,
    pytest.mark.usefixtures("nothing_left_behind"),
    pytest.mark.skipif(os.name != "posix", reason="there are no files in memory"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@pytest.mark.parametrize("method", METHODS)
def test_processes_have_fallbacks_and_bounds_of_the_backend(method):
    """They are made anew there: a file of this process is not one of another."""
    with ndx.use("host", limit="8MiB", fallback="mmap") as inner:
        ndx.zeros(2 * 2**20)  # The fallback has memory: a child can't use that one.
        bounds = ndx.memory.LimitingAdaptor(ndx.memory.TrackingAdaptor(inner), "6MiB")
        with ndx.use(ndx.memory.LimitingAdaptor(bounds, "5MiB")):
            ((chain, _),) = ndx.parallel.map(
                backend_and_limits, [0], processes=1, start_method=method
            )
    assert chain == [5 * 2**20, 6 * 2**20, "host", 8 * 2**20, "mmap"]


@pytest.mark.parametrize("method", METHODS)
def test_processes_have_the_limits_of_this_one(method):
    ndx.memory.set_limit("1GiB", process="2GiB")
    try:
        ((_, limits),) = ndx.parallel.map(
            backend_and_limits, [0], processes=1, start_method=method
        )
    finally:
        ndx.memory.set_limit(None, process=None)
    assert limits == {"ndx": 2**30, "process": 2 * 2**30}


@pytest.mark.parametrize("method", METHODS)
def test_processes_have_the_limit_that_was_set_last(method):
    backend = ndx.backends.get("host", limit="8MiB")
    backend.limit = "3MiB"
    ((chain, _),) = ndx.parallel.map(
        backend_and_limits, [0], processes=1, backend=backend, start_method=method
    )
    assert chain == ["host", 3 * 2**20, None]


@pytest.mark.parametrize("method", METHODS)
def test_options_count_that_the_environment_sets_otherwise(method, monkeypatch):
    monkeypatch.setenv("NDX_HOST_LIMIT", "1MiB")
    status, out, err = script(
        """
import ndx
from helpers.parallel import backend_and_limits
print("begun", flush=True)
with ndx.use("host", limit=None):
    results = ndx.parallel.map(
        backend_and_limits, [0], processes=1, start_method="METHOD"
    )
    print(list(results))
""".replace("METHOD", method),
        until="begun",
    )
    assert (status, err) == (0, "")
    assert out == "[(['host', None, None], {})]\n"


@pytest.mark.skipif("fork" not in METHODS, reason="nothing forks here")
def test_backends_of_the_user_are_forked_as_they_are():
    for options in ({"backend": Mine()}, {}):
        with ndx.use("host", limit="64KiB", fallback=Mine()):
            found = ndx.parallel.map(
                lambda x: ndx.zeros(x).backend.name, [9, 20_000], processes=1,
                start_method="fork", **options,
            )  # fmt: skip
            assert list(found)[-1] == "Mine"


def test_backends_that_are_not_registered_are_refused_elsewhere():
    for backend in (Mine(), ndx.backends.get("host", limit="1MiB", fallback=Mine())):
        with pytest.raises(TypeError, match="Mine.* is not registered"):
            ndx.parallel.map(
                backend_and_limits, [0], processes=1, backend=backend,
                start_method="spawn",
            )  # fmt: skip


@pytest.mark.parametrize("size", [3, LARGE])
@pytest.mark.parametrize("method", METHODS)
def test_what_a_worker_shares_is_returned_by_a_copy(method, size):
    """Its file ends with the array there, before it is read here."""
    results = ndx.parallel.map(shares, items(3, size), processes=1, start_method=method)
    for i, (whole, part) in enumerate(results):
        assert_equal(whole, np.full(size, 2.0 * i))
        assert_equal(part, np.full(size - 1, 2.0 * i))


@pytest.mark.parametrize("fn", [ignores_the_end, forks_and_sleeps])
def test_the_end_does_not_wait_for_an_item(fn, tmp_path, monkeypatch):
    """A worker may ignore SIGTERM, and its children may keep its pipes open."""
    monkeypatch.setattr(processes, "GRACE", 0.2)
    begun = tmp_path / "begun"
    results = ndx.parallel.map(fn, [str(begun)], processes=1)
    wait_until(begun.exists)
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < 10


def test_the_end_does_not_wait_for_a_process_without_an_item():
    """It has not got the one that is pickled meanwhile."""
    slow = Slow()
    results = ndx.parallel.map(doubled, [slow], processes=1)
    assert slow.begun.wait(20)
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < processes.GRACE


@pytest.mark.skipif(METHODS[0] != "fork", reason="nothing forks here")
def test_processes_of_a_worker_that_dies_do_not_keep_its_answer():
    results = ndx.parallel.map(
        dies_in_its_answer, [1], processes=1, start_method="spawn"
    )
    before = time.monotonic()
    with pytest.raises(BrokenProcessPool, match="SIGKILL"):
        next(results)
    assert time.monotonic() - before < 15


def test_errors_that_have_no_text():
    with pytest.raises(RuntimeError, match=Silent.__name__):
        list(ndx.parallel.map(fails_silently, [1], processes=1, start_method="spawn"))


@pytest.mark.parametrize("method", METHODS)
def test_files_go_of_a_worker_that_is_ended(method, tmp_path):
    """It has no time to remove what it shares."""
    number = tmp_path / "number"
    results = ndx.parallel.map(
        shares_and_sleeps, [str(number)], processes=1, start_method=method
    )
    wait_until(number.exists)
    assert shared_files(number.read_text())
    results.close()
    assert not shared_files(number.read_text())


@pytest.mark.parametrize("method", METHODS)
def test_files_go_of_a_worker_whose_end_fails(method):
    (number,) = ndx.parallel.map(
        shares_and_stays_in_a_scope, [1], processes=1, workspace=None,
        start_method=method,
    )  # fmt: skip
    assert not shared_files(number)


@pytest.mark.parametrize("method", METHODS)
def test_views_travel_whose_array_nobody_holds(method):
    """Its file stays until they are read: of each item, and of the function."""

    def views():
        for i in range(6):
            made = ndx.parallel.share(ndx.full(LARGE, float(i)))
            yield made[1:]

    results = ndx.parallel.map(where_it_lies, views(), processes=1, start_method=method)
    assert [x for x, *_ in results] == [float(i) for i in range(6)]
    table = ndx.parallel.share(ndx.ones(LARGE))
    part = functools.partial(first_of_both, table[1:])
    results = ndx.parallel.map(part, items(2), processes=1, start_method=method)
    del table
    assert list(results) == [(1.0, 0.0), (1.0, 1.0)]


@pytest.mark.parametrize("writable", [False, True])
@pytest.mark.skipif(METHODS[0] != "fork", reason="nothing forks here")
def test_what_a_forked_function_writes(writable):
    """It has the array of this process; one that is not writable is its own then."""
    counts = ndx.parallel.share(ndx.zeros(LARGE), writable=writable)
    others = [ndx.parallel.share(ndx.zeros(n)) for n in (0, 3)]
    others[1].close()
    found = ndx.parallel.map(
        Counter(counts), [0, 1, 0], processes=1, start_method="fork"
    )
    assert list(found) == [1.0, 1.0, 2.0]
    assert counts[:2].tolist() == ([2.0, 1.0] if writable else [0.0, 0.0])


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux")
def test_a_forked_function_reads_more_than_the_process_may_have():
    """An own copy of what it inherits counts as data of the process (ulimit -d)."""
    status, out, err = script(
        """
import resource
import ndx
table = ndx.parallel.share(ndx.arange(16.0 * 2**20))
data = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (data + 2**26, data + 2**26))
print("begun", flush=True)
found = ndx.parallel.map(
    lambda i: float(table[i]) + float(ndx.sum(ndx.ones(100_000))),
    [-1, 0],
    processes=1,
    start_method="fork",
)
print(list(found))
""",
        until="begun",
    )
    assert (status, out) == (0, "[16877215.0, 100000.0]\n"), err


@pytest.mark.parametrize("method", METHODS)
def test_what_a_worker_keeps_is_returned_by_a_copy(method):
    """The file of an earlier item may have ended; what the worker shares ends, too."""
    source = (ndx.parallel.share(ndx.full(LARGE, float(i))) for i in range(4))
    found = list(
        ndx.parallel.map(
            returns_the_one_before, source, processes=1, start_method=method
        )
    )
    assert [float(x[0]) for x, _ in found] == [0.0, 0.0, 1.0, 2.0]
    assert not shared_files(found[0][1])


@pytest.mark.parametrize("method", METHODS)
def test_what_a_function_shares_is_there_for_all_processes(method):
    """Also if nobody here has the function any more, and processes start late."""
    table = functools.partial(first_of_both, ndx.parallel.share(ndx.full(LARGE, 3.0)))
    results = ndx.parallel.map(table, items(4), processes=2, start_method=method)
    del table
    assert list(results) == [(3.0, float(i)) for i in range(4)]


@pytest.mark.parametrize("method", METHODS)
def test_processes_move_items_to_their_device(method):
    """NumPy's arrays are arrays of ndx there, as in threads."""
    found = ndx.parallel.map(
        named_types, [[np.ones(3), np.ones(LARGE), "text"]], processes=1,
        devices=["cpu"], start_method=method,
    )  # fmt: skip
    assert list(found) == [["NDArray", "NDArray", "str"]]
