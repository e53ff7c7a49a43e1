"""What the tests of other pools assert of what stands around one: scopes, adaptors."""

import gc
import random
import threading
import weakref

import numpy as np
import pytest
from helpers.pools import (
    MAKERS,
    MIB,
    STREAMLESS,
    check,
    device,
    host,
    plain_device,
    take,
)

import ndx
from ndx.backends import Buffer
from ndx.memory import FailureCallbackAdaptor, LimitingAdaptor

KINDS = ["split", "round", "naive", "unpooled"]


@pytest.fixture(params=sorted(MAKERS))
def make(request):
    return MAKERS[request.param]


@pytest.fixture
def pool(make):
    backend = make()
    yield backend
    check(backend)


def test_the_default_does_not_serve_a_scope(pool):
    default = ndx.current_backend()
    before = default.stats()
    with ndx.use(pool):
        x = ndx.ones(1000)
        y = x + x
        del x
    assert pool.stats()["total_allocations"] == 2
    del y
    assert default.stats() == before


def test_memory_of_others(pool):
    """Its address, its size, its device; and it lives as long as the array."""

    class Owner(np.ndarray):
        pass

    owner = np.arange(10.0).view(Owner)
    address, gone = owner.ctypes.data, weakref.ref(owner)
    with ndx.use(pool):
        x = ndx.asarray(owner, copy=None)
    del owner
    gc.collect()
    assert gone() is not None
    assert np.asarray(x).ctypes.data == address
    assert (x.nbytes, str(x.device)) == (80, "cpu")
    assert x.tolist() == list(range(10))
    assert pool.stats()["allocated_bytes"] == 0
    del x
    assert gone() is None


@pytest.mark.parametrize("make_device", [device, plain_device])
def test_a_stream_that_is_over_before_its_memory_is_freed(make_device):
    pool = make_device()
    x, y = take(pool, MIB, 7), take(pool, MIB, 7)
    pool.source.submit(7)
    pool.close_stream(7)
    x.release()
    # Freed by another stream, that used it.
    y.record_use(3)
    pool.source.submit(3)
    y.release()
    check(pool)
    z = take(pool, MIB, 5)
    check(pool, [z])
    assert all(waited_for == 3 for _, waited_for, _ in pool.source.waits)


@pytest.mark.parametrize("kind", [*KINDS, "arena"])
@pytest.mark.parametrize("dtype", ["uint8", "float64", "complex128"])
def test_values_survive(make, kind, dtype):
    options = {"initial": "1MiB"} if kind == "arena" else {}
    pool = make(pool=kind, **options)
    with ndx.use(pool):
        live = []
        for n in (1, 2, 7, 8, 9, 32, 128):
            expected = np.arange(n).astype(dtype)
            live.append((ndx.asarray(expected, copy=True), expected))
            # What is freed between them is had again.
            live.append((ndx.zeros(n, dtype=dtype), np.zeros(n, dtype)))
            del live[len(live) // 2]
        for x, expected in live:
            assert x.dtype == dtype
            np.testing.assert_array_equal(np.asarray(x), expected)
        del live, x
    check(pool)


@pytest.mark.parametrize("limit", ["1MiB", 2**20])
def test_more_at_first_than_ever(make, limit):
    with pytest.raises(ValueError, match="initial='2MiB' is more than limit="):
        make(pool="arena", initial="2MiB", limit=limit)
    with pytest.raises(ValueError, match="initial='2kilo'"):
        make(pool="arena", initial="2kilo")
    assert take(make(pool="arena", initial="2mib"), "2MiB").rounded == 2**21


def test_an_exception_of_a_callback_comes_through(make):
    def fail(nbytes):
        raise KeyError(nbytes)

    failing = FailureCallbackAdaptor(make(limit="64KiB"), fail)
    with ndx.use(failing):
        with pytest.raises(KeyError):
            ndx.zeros(100_000)
        assert ndx.zeros(10).tolist() == [0] * 10


@pytest.mark.parametrize("stream", [0, 5])
def test_a_range_for_other_libraries(make, stream):
    pool = make() if stream == 0 or make is not MAKERS["host"] else device()
    x = Buffer(pool, 42, stream=stream)
    view = memoryview(x)
    assert (x.nbytes, view.nbytes, view.obj) == (42, 42, x)
    array = np.frombuffer(x, np.uint8)
    assert array.ctypes.data == x.address != 0
    array[:] = 7
    nothing = Buffer(pool, 0, stream=stream)
    assert (nothing.address, bytes(nothing)) == (0, b"")
    pool.close_stream(stream)
    del view, x
    assert (array == 7).all()
    assert pool.stats()["allocated_count"] == 1
    del array
    assert pool.stats()["allocated_count"] == 0


def test_all_of_what_is_allowed(make):
    pool = make(pool="arena", initial="4MiB", limit="4MiB")
    quarters = [take(pool, MIB) for _ in range(2)]
    check(pool, quarters)
    for x in quarters:
        x.release()
    check(pool, [take(pool, 4 * MIB)])
    pool = device(capacity="16MiB", limit="90%")
    assert pool.limit == 16 * MIB * 9 // 10
    check(pool, [take(pool, "14MiB")])


@pytest.mark.threads
@pytest.mark.parametrize("kind", KINDS)
def test_all_sizes_by_several_threads(make, kind):
    """Each thread frees what another one allocated, and overwrites nothing."""
    streams = 1 if make in STREAMLESS else 3
    options = {"capacity": "256MiB"} if streams > 1 else {}
    pool = make(pool=kind, **options)
    passed, lock, wrong = [], threading.Lock(), []

    def work(seed):
        draw = random.Random(seed)
        for n in range(25):
            nbytes = draw.choice([0, draw.randrange(1, 5000), draw.randrange(5 * MIB)])
            x = take(pool, nbytes, draw.randrange(streams))
            mark = bytes([1 + (seed * 61 + n) % 250]) * min(nbytes, 64)
            memoryview(x)[: len(mark)] = mark
            with lock:
                passed.append((x, mark))
                x, mark = passed.pop(draw.randrange(len(passed)))
            if bytes(memoryview(x)[: len(mark)]) != mark:
                wrong.append(seed)
            if draw.random() < 0.7:
                x.release()
            else:
                with lock:
                    passed.append((x, mark))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    check(pool, [x for x, _ in passed if x.nbytes])
    for x, mark in passed:
        assert bytes(memoryview(x)[: len(mark)]) == mark
        x.release()
    check(pool)


def test_an_arena_is_whole_again(make):
    pool = make(pool="arena", initial="2MiB")
    live = [take(pool, MIB // 4) for _ in range(8)]
    with pytest.raises(ndx.OutOfMemoryError):
        take(pool, MIB // 4)
    check(pool, live)
    for i in (1, 0, 2, 7, 6, 4, 5, 3):
        live[i].release()
        check(pool, [x for x in live if x.address])
    check(pool, [take(pool, 2 * MIB)])
    with pytest.raises(ndx.OutOfMemoryError):
        take(pool, 4 * MIB)


def test_an_arena_of_less_than_it_is_made_of(make):
    page = make().page_nbytes
    with pytest.raises(ValueError, match="less than a page"):
        make(pool="arena", initial=page - 1)
    assert take(make(pool="arena", initial=page), 1).nbytes == 1


def test_what_upstream_refuses_is_not_counted(make):
    with ndx.use(LimitingAdaptor(make(limit="64KiB"), "1MiB")) as limited:
        x = ndx.zeros(1000)
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.zeros(50_000)
        assert limited.stats()["allocated_bytes"] == 8000
        del x
    assert limited.stats()["allocated_bytes"] == 0


def test_the_address_space_of_many_pools_is_whole_pages():
    """Each of several hundred reserves less, down to no fraction of a page."""
    pools = [host() for _ in range(300)]
    live = [take(each, MIB) for each in pools]
    sizes = {segment["total_size"] for each in pools for segment in each.snapshot()}
    assert len(sizes) > 1
    assert all(size % pools[0].page_nbytes == 0 for size in sizes)
    assert len(live) == 300
