"""Results that NumPy computes: they are in the arena, as all others are."""

import numpy as np
import pytest
from helpers.calls import CALLS, resolve, results

import ndx

POLICIES = {
    "learned": {},
    "liveness": {"learn": "liveness"},
    "ring": {"reset": "ring", "slots": 2},
    "detach": {"escape": "detach"},
    "debug": {"debug": True},
    "bounded": {"size": "64KiB", "spill": "fail"},
}
# Calls that are no functions of the namespace.
OTHERS = {
    "x[mask]": lambda x, _: x[x > 0],
    "x[integers]": lambda x, _: x[ndx.asarray([1, 0, 2])],
    "x[list, slice]": lambda x, _: x[[1, 0], :2],
    "x[integers, integers]": lambda x, _: x[[1, 0], [0, 2]],
    "x[integer, integer]": lambda x, _: x[1, 2],
    "asarray(list)": lambda _, lists: ndx.asarray(lists),
    "asarray(list, dtype)": lambda _, lists: ndx.asarray(lists, dtype=ndx.float32),
    "permutation": lambda x, _: ndx.random.default_rng(1).permutation(x),
    "choice": lambda x, _: ndx.random.default_rng(1).choice(x[0]),
    "integers": lambda *_: ndx.random.default_rng(1).integers(9, size=5),
}


def call_of(name):
    """Return a function without arguments, which computes anew at each call."""
    if name in OTHERS:
        values = np.arange(12.0).reshape(3, 4) - 5
        x, lists = ndx.asarray(values, copy=True), values.tolist()
        return lambda: OTHERS[name](x, lists)
    operands, call = CALLS[name]
    arrays = [ndx.asarray(operand, copy=True) for operand in operands]
    return lambda: call(resolve(ndx, name), *arrays)


def argsort_of_large():
    return ndx.argsort(ndx.asarray(np.arange(10_000.0)[::-1].copy()))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", [*CALLS, *OTHERS])
def test_no_function_spills_or_allocates_in_the_steady_state(name, policy):
    compute = call_of(name)
    backend = ndx.backends.get("host", limit="64MiB")
    held = []
    for _ in range(6):
        with ndx.workspace("steady", backend=backend, **POLICIES[policy]) as ws:
            found = compute()
            spilled = ws.stats()["spilled_count"]
            inside = backend.stats()["allocated_bytes"]
        del found
        stats = backend.stats()
        held.append((inside, stats["allocated_bytes"], stats["reserved_bytes"]))
    assert spilled == 0
    # Nothing is held but the arena, within the scope and without; nothing more is
    # reserved than in the cycles before.
    assert held[-1] == held[-2] == held[-3]
    inside, outside, _ = held[-1]
    assert inside == outside <= ws.stats()["size"] + 512
    ws.destroy()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", [*CALLS, *OTHERS])
def test_results_in_the_arena_are_those_outside_of_it(name, policy):
    if name == "empty_like":
        return
    compute = call_of(name)
    expected = [np.array(each) for each in results(compute())]
    for _ in range(3):
        with ndx.workspace("values", **POLICIES[policy]):
            found = results(compute())
            for each, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(np.array(each), other)
                assert each.shape == other.shape
                assert each.dtype == other.dtype
            kept = [each.detach() for each in found]
        for each, other in zip(kept, expected, strict=True):
            np.testing.assert_array_equal(np.array(each), other)


@pytest.mark.parametrize(
    "compute",
    [
        argsort_of_large,
        lambda: ndx.nonzero(ndx.ones(10_000)),
        lambda: ndx.linalg.inv(ndx.eye(100)),
        lambda: ndx.asarray([1.0] * 10_000),
        lambda: ndx.broadcast_to(ndx.asarray(1.0), (10_000,))[
            ndx.asarray([0] * 10_000)
        ],
    ],
)
def test_a_size_bounds_what_numpy_computes(compute):
    with ndx.workspace("bounded", size="16KiB", spill="fail") as ws:
        with pytest.raises(ndx.OutOfMemoryError, match="'bounded' is full"):
            compute()
        assert ws.stats()["spilled_count"] == 0
        x = ndx.argsort(ndx.arange(3))
        assert x.tolist() == [0, 1, 2]


def test_what_does_not_fit_counts_as_spilled():
    with ndx.workspace("small", size="16KiB") as ws:
        found = argsort_of_large()
        assert ws.stats()["spilled_count"] == 1
        assert ws.stats()["spilled_bytes"] == 80_000
        assert found.backend is ndx.backends.get("host")
        assert int(found[0]) == 9_999
    with pytest.raises(ndx.StaleArrayError):
        found + 1
    ws.destroy()


def test_what_does_not_fit_comes_from_files_if_it_is_to():
    with ndx.workspace("files", size="16KiB", spill="mmap") as ws:
        found = argsort_of_large()
        assert found.backend is ndx.backends.get("mmap")
        assert ws.stats()["spilled_count"] == 1
        assert int(found[0]) == 9_999
    ws.destroy()


def test_results_lie_in_the_file_of_an_arena(tmp_path):
    path = tmp_path / "arena"
    with ndx.workspace("in a file", path=path, size="64KiB") as ws:
        found = ndx.argsort(ndx.asarray([3.0, 1.0, 2.0]))
        assert ws.stats()["spilled_count"] == 0
        found.flush()
        ints = np.frombuffer(path.read_bytes()[: 64 << 10], dtype=np.int64)
        assert [1, 2, 0] in np.lib.stride_tricks.sliding_window_view(ints, 3).tolist()
    ws.destroy()


def test_a_result_that_foreign_code_reads_stays():
    views = []
    for cycle in range(5):
        with ndx.workspace("pinned", size="64KiB") as ws:
            found = ndx.argsort(ndx.asarray(np.roll(np.arange(50), cycle)))
            views.append(np.asarray(found))
            assert ws.stats()["spilled_count"] == 0
    for cycle, view in enumerate(views):
        np.testing.assert_array_equal(view, np.argsort(np.roll(np.arange(50), cycle)))
    del views, view, found
    ws.destroy()


def test_survivors_are_moved_out_of_the_arena():
    with ndx.workspace("leaves", size="64KiB", escape="detach") as ws:
        values, inverse = ndx.unique_inverse(ndx.asarray([5, 3, 5]))
        assert ws.stats()["spilled_count"] == 0
    for _ in range(2):
        with ndx.workspace("leaves", size="64KiB", escape="detach"):
            ndx.full(1000, 7)
    assert values.tolist() == [3, 5]
    assert inverse.tolist() == [1, 0, 1]


def test_a_plan_of_lifetimes_counts_numpy_results():
    x = ndx.asarray(np.random.default_rng(0).random(1000))
    for _ in range(4):
        with ndx.workspace("planned", learn="liveness") as ws:
            for _ in range(10):
                order = ndx.argsort(x)
                del order
    stats = ws.stats()
    assert stats["spilled_count"] == 0
    assert stats["size"] == 8000
    assert ws.stats()["departures"] == 0
    ws.destroy()


def test_recordings_see_results_in_the_arena():
    for _ in range(2):
        with ndx.memory.record() as trace, ndx.workspace("recorded") as ws:
            found = ndx.argsort(ndx.arange(100))
            del found
    events = [each for each in trace.events if each.shape == (100,)]
    assert {each.place for each in events} == {"arena"}
    assert {each.dtype for each in events} == {"int64"}
    ws.destroy()


@pytest.mark.parametrize("order", ["F", "strided"])
def test_results_of_other_layouts_are_moved_too(order):
    # Columns of one array of NumPy's; and what it returns in the order of its operand.
    a = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    for _ in range(3):
        with ndx.workspace("layouts") as ws:
            if order == "F":
                found = ndx.asarray(a.tolist()), ndx.argsort(ndx.asarray(a), axis=0)
            else:
                found = ndx.nonzero(ndx.asarray(a))
            values = [np.array(each) for each in found]
    assert ws.stats()["spilled_count"] == 0
    expected = (a, np.argsort(a, axis=0)) if order == "F" else np.nonzero(a)
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, other)
    ws.destroy()
