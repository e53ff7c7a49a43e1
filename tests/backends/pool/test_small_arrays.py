"""Arrays of at most 48 bytes, whose elements lie in the array objects."""

import itertools

import numpy as np
import pytest
from helpers.pools import check
from helpers.together import only_with_small_arrays

import ndx
import ndx.numpy
from ndx import memory
from ndx.backends import HostBackend


def small(backend):
    stats = backend.stats()
    return stats["small_count"], stats["small_bytes"]


@only_with_small_arrays
def test_they_are_counted_as_others():
    backend = HostBackend()
    with ndx.use(backend):
        arrays = [ndx.zeros(n, dtype="uint8") for n in range(1, 51)]
        assert all(x.backend is backend for x in arrays)
    stats = backend.stats()
    assert stats["allocated_bytes"] == stats["peak_bytes"] == sum(range(1, 51))
    assert stats["allocated_count"] == stats["total_allocations"] == 50
    assert stats["peak_count"] == 50
    assert small(backend) == (48, sum(range(1, 49)))
    assert (49, 1) in backend.largest_live()
    assert (48, 1) in backend.largest_live()
    check(backend)
    del arrays
    check(backend)
    assert small(backend) == (0, 0)
    backend.trim()
    assert backend.stats()["reserved_bytes"] == 0
    assert backend.stats()["peak_bytes"] == sum(range(1, 51))


def test_they_are_zeros_where_that_is_asked():
    for _ in range(3):
        many = [ndx.full(2, 7.0) for _ in range(1000)]
        del many
        many = [ndx.zeros(2) for _ in range(1000)]
        assert not any(x[1].item() or x[0].item() for x in many)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float64", "complex128"])
def test_their_data_is_aligned(dtype):
    arrays = [ndx.ones(1, dtype=dtype) for _ in range(300)]
    assert all(x.__array_interface__["data"][0] % 64 == 0 for x in arrays)


@pytest.mark.parametrize("limit", [0, 4095])
def test_a_limit_refuses_them(limit):
    backend = HostBackend(limit=limit)
    with ndx.use(backend), pytest.raises(ndx.OutOfMemoryError, match="limit"):
        ndx.ones(1)
    check(backend)


@only_with_small_arrays
def test_a_limit_bounds_them():
    backend = HostBackend(limit=8192)
    kept = []
    with ndx.use(backend):
        with pytest.raises(ndx.OutOfMemoryError):
            kept.extend(map(ndx.ones, itertools.repeat(1)))
        assert 512 <= len(kept) <= 576
        assert backend.stats()["reserved_bytes"] <= 8192
        check(backend)
        kept = kept[::2]
        kept.append(ndx.ones(2))
    check(backend)
    # A lowered limit refuses them, too.
    backend.limit = 4096
    with ndx.use(backend), pytest.raises(ndx.OutOfMemoryError):
        ndx.ones(1)
    del kept
    with ndx.use(backend):
        ndx.ones(1)
    check(backend)


@only_with_small_arrays
def test_the_limit_of_all_bounds_them():
    before = memory.limit()
    memory.empty_cache()
    backend = HostBackend()
    try:
        memory.set_limit(sum(b.stats()["reserved_bytes"] for b in
                             memory_pools()))  # fmt: skip
        with ndx.use(backend), pytest.raises(ndx.OutOfMemoryError):
            ndx.ones(1)
    finally:
        memory.set_limit(before)
    check(backend)


def memory_pools():
    from ndx.backends import _pressure

    return [each for each in _pressure.live_pools() if each.budgeted]


@only_with_small_arrays
def test_room_for_them_is_idle_memory():
    backend = HostBackend()
    with ndx.use(backend):
        many = [ndx.ones(1) for _ in range(100_000)]
    held = backend.stats()["reserved_bytes"]
    assert held >= 1_600_000
    check(backend)
    del many
    # Most of it is given back without a trim.
    assert backend.stats()["reserved_bytes"] <= 2**18
    check(backend)


def test_a_hook_is_told_of_them():
    told = []
    backend = HostBackend()
    backend.add_hook(lambda action, nbytes, address: told.append((action, nbytes)))
    with ndx.use(backend):
        x = ndx.ones(1)
        del x
    assert told == [("allocate", 8), ("free", 8)]


def test_closing_gives_one_back():
    backend = HostBackend()
    with ndx.use(backend):
        x = ndx.ones(2)
    view = x[1:]
    x.close()
    assert small(backend) == (0, 0)
    with pytest.raises(ndx.StaleArrayError):
        view.item()
    del x, view
    check(backend)


def test_they_are_recorded():
    with memory.record() as trace:
        x = ndx.ones(1)
        address = x.__array_interface__["data"][0]
        del x
    births = [event for event in trace.events if event.kind == "allocate"]
    assert [(each.nbytes, each.freed) for each in births] == [(8, "dropped")]
    assert births[0].place == "backend"
    assert address


@only_with_small_arrays
def test_workspaces_have_none():
    backend = HostBackend()
    with ndx.use(backend):
        step = ndx.workspace("no small ones", size="4KiB")
        with step:
            inside = ndx.ones(1)
            assert small(backend) == (0, 0)
            kept = inside.detach()
        assert small(backend) == (1, 8)
        assert kept.item() == 1
        step.destroy()
    del inside, kept
    check(backend)


def test_results_lie_there_and_are_written_over():
    backend = HostBackend()
    with ndx.use(backend):
        x = ndx.asarray([1.0, 2.0])
        y = (x + x) * x - x
        np.testing.assert_array_equal(np.asarray(y), [1.0, 6.0])
        z = ndx.matmul(x, y)
        assert z.item() == 13
        y += z
    np.testing.assert_array_equal(np.asarray(y), [14.0, 19.0])
    del x, y, z
    check(backend)
    assert backend.stats()["allocated_count"] == 0


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 2), (3, 1), (1, 1, 2), (1,) * 4])
def test_elements_stay_where_they_were_shared(shape):
    backend = HostBackend()
    with ndx.use(backend):
        x = ndx.full(shape, 2.0)
    views = [x[...], x.reshape(-1), np.asarray(x), np.from_dlpack(x), memoryview(x)]
    address = x.__array_interface__["data"][0]
    assert x.flags.owndata
    assert x.base is None
    x[...] = 5.0
    assert all(np.all(np.asarray(each) == 5.0) for each in views)
    assert views[2].ctypes.data == address
    check(backend)
    del x
    assert all(np.all(np.asarray(each) == 5.0) for each in views)
    assert backend.stats()["allocated_count"] == 1
    del views
    check(backend)
    assert backend.stats()["allocated_count"] == 0


def test_a_new_shape_leaves_the_elements_as_they_are():
    x = ndx.asarray([1.0, 2.0, 3.0, 4.0])
    x.shape = (2, 2)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_hook_is_told_of_those_before_it():
    told = []
    backend = HostBackend()
    with ndx.use(backend):
        inside, shared = ndx.ones(1), ndx.ones(2)
    view = shared[1:]
    backend.add_hook(lambda action, nbytes, address: told.append((action, nbytes)))
    del inside, shared, view
    assert told == [("free", 8), ("free", 16)]


def test_views_of_numbers_are_copies_of_their_own():
    number = ndx.numpy.ones(3)[0]
    first, second = number.reshape(1), number.reshape(1)
    first[0] = 7.0
    assert number == 1.0
    assert second[0] == 1.0
    with memoryview(number) as exported:
        assert exported.readonly
        assert exported[()] == 1.0
