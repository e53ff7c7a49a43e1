"""What the pools of CuPy, RMM and MXNet promise, over four kinds of source.

Here is what concerns the pool alone; what stands around it (scopes, adaptors) is in
`test_behaviours_around`.
"""

import pickle
import threading

import pytest
from helpers.pools import MAKERS, MIB, STREAMLESS, UNIT, check, device, take

import ndx
from ndx.backends import Buffer, HostBackend, PooledBackend, PythonSource

U = UNIT


@pytest.fixture(params=sorted(MAKERS))
def make(request):
    return MAKERS[request.param]


@pytest.fixture
def pool(make):
    backend = make()
    yield backend
    check(backend)


def test_sizes_are_rounded_to_units(pool):
    unit = take(pool, 1).rounded
    assert unit in (64, 512)
    for nbytes, rounded in ((unit - 1, unit), (unit, unit), (unit + 1, 2 * unit)):
        assert take(pool, nbytes).rounded == rounded


def test_what_is_cut_off_lies_behind(pool):
    first, second = take(pool, 2 * U), take(pool, 2 * U)
    assert second.address == first.address + 2 * U


def test_merging_in_any_order_restores_the_range(pool):
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]):
        parts = [take(pool, U) for _ in range(4)]
        start = min(x.address for x in parts)
        for i in order:
            parts[i].release()
        assert take(pool, 4 * U).address == start


def test_a_freed_range_serves_two_halves(pool):
    whole = take(pool, 4 * U)
    start = whole.address
    whole.release()
    head, tail = take(pool, 2 * U), take(pool, 2 * U)
    assert (head.address, tail.address) == (start, start + 2 * U)


@pytest.mark.parametrize("nbytes", [1, 100, 4096, 65536, U, 5 * MIB])
def test_the_same_size_again_gets_the_same_range(pool, nbytes):
    x = take(pool, nbytes)
    start = x.address
    x.release()
    assert take(pool, nbytes).address == start


def test_a_larger_request_does_not_overlap(pool):
    x, guard = take(pool, 4 * U), take(pool, 4 * U)
    x.release()
    y = take(pool, 8 * U)
    assert not guard.address - 8 * U < y.address < guard.address + 4 * U


def test_a_limit_holds_and_can_be_raised(make):
    pool = make(limit=6 * U)
    live = [take(pool, 5 * U), take(pool, U)]
    with pytest.raises(ndx.OutOfMemoryError):
        take(pool, U)
    pool.limit = 7 * U
    live.append(take(pool, U))
    check(pool, live)


def test_what_is_cached_makes_room_under_a_limit(make):
    pool = make(limit=6 * U)
    take(pool, 5 * U).release()
    assert take(pool, 6 * U).nbytes == 6 * U
    assert pool.stats()["peak_reserved_bytes"] <= 6 * U


def test_trimming_spares_what_is_in_use(pool):
    head, tail = take(pool, 2 * U), take(pool, 2 * U)
    start = tail.address
    tail.release()
    pool.trim()
    assert pool.stats()["reserved_bytes"] >= 2 * U
    assert take(pool, 2 * U).address == start
    head.release()


def test_trimming_covers_all_streams(make):
    pool = device() if make in STREAMLESS else make()
    for stream in range(4):
        take(pool, U, stream).release()
    pool.trim()
    assert pool.stats()["reserved_bytes"] == 0


def test_trimming_before_any_use(pool):
    assert pool.trim() == 0
    assert pool.stats()["cached_bytes"] == 0


def test_used_and_free_add_up(pool):
    live = []
    for n in (1, 3, 2, 5):
        live.append(take(pool, n * U))
        check(pool, live)
    for _ in range(4):
        live.pop(1 if len(live) > 1 else 0).release()
        check(pool, live)
    pool.trim()
    assert pool.stats()["reserved_bytes"] == 0


def test_on_several_streams_too(make):
    pool = device() if make in STREAMLESS else make()
    live = [take(pool, U, stream) for stream in (1, 2, 3, 1, 2, 3)]
    while live:
        live.pop(len(live) // 2).release()
        check(pool, live)


@pytest.mark.parametrize(
    ("limit", "nbytes"),
    [("0", 0), ("1073741824", 2**30), ("0%", 0), ("50%", 2**25), ("100%", 2**26)],
)
def test_limits_are_written_in_many_ways(limit, nbytes):
    assert device(capacity="64MiB", limit=limit).limit == nbytes


def test_a_limit_that_is_set_later(make):
    pool = make()
    assert pool.limit is None
    for limit in (1024, 2**33, 0, None):
        pool.limit = limit
        assert pool.limit == limit
    with pytest.raises(ValueError, match="limit"):
        pool.limit = -1
    assert pool.limit is None


def test_releasing_twice_is_harmless(pool):
    x = take(pool, U)
    x.release()
    x.release()
    assert pool.stats()["allocated_count"] == 0


@pytest.mark.threads
def test_threads_have_pools_of_their_own(make):
    pools = [make(), make()]
    counts = []

    def work():
        with ndx.use(pools[1]):
            x = ndx.ones(100)
            counts.extend(p.stats()["allocated_bytes"] for p in pools)
            del x
        assert ndx.current_backend() is before

    before = ndx.current_backend()
    with ndx.use(pools[0]):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert counts == [0, 800]


@pytest.mark.threads
def test_freed_by_another_thread(pool):
    x = take(pool, U)
    start = x.address
    thread = threading.Thread(target=x.release)
    thread.start()
    thread.join()
    assert take(pool, U).address == start


def test_the_error_pickles(make):
    with pytest.raises(ndx.OutOfMemoryError) as caught:
        take(make(limit="1MiB"), "2MiB")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.args, vars(again)) == (caught.value.args, vars(caught.value))


def test_hooks_see_each_request(pool):
    seen = []
    pool.add_hook(lambda *event: seen.append(event))
    for _ in range(2):
        x = take(pool, 1000)
        start = x.address
        x.release()
    assert seen == [("allocate", 1000, start), ("free", 1000, start)] * 2
    assert pool.events()["misses"] == 1


def test_a_hook_that_raises_fails_the_request(pool):
    def refuse(action, nbytes, address):
        raise KeyError(action)

    pool.add_hook(refuse)
    with pytest.raises(KeyError, match="allocate"):
        take(pool, 1000)
    pool.remove_hook(refuse)
    assert pool.stats()["allocated_count"] == 0
    with pytest.raises(ValueError, match="not a hook"):
        pool.remove_hook(refuse)


def test_a_limit_is_filled_exactly(make):
    pool = make(limit=MIB)
    live = [take(pool, MIB // 2), take(pool, MIB // 2)]
    assert pool.stats()["allocated_bytes"] == pool.stats()["reserved_bytes"] == MIB
    with pytest.raises(ndx.OutOfMemoryError):
        take(pool, 1)
    check(pool, live)


@pytest.mark.parametrize("error", [MemoryError, RuntimeError, KeyError])
def test_errors_of_a_source_in_python(error):
    class Source(PythonSource):
        def acquire(self, nbytes):
            raise error("no")

    backend = PooledBackend(Source())
    expected = ndx.OutOfMemoryError if error is MemoryError else error
    with pytest.raises(expected):
        take(backend, 100)
    assert backend.stats()["reserved_bytes"] == 0


def test_a_source_lives_as_long_as_its_memory():
    given, taken = [], []

    class Source(PythonSource):
        def acquire(self, nbytes):
            given.append(nbytes)
            return bytearray(nbytes)

        def discard(self, buffer):
            taken.append(len(buffer))

    x = Buffer(PooledBackend(Source()), 100)
    memoryview(x)[:] = bytes(100)
    assert not taken
    x.release()
    del x
    assert given == taken


def test_device_information(make):
    free, total = make().memory_info()
    assert 0 < free <= total


def test_a_failed_request_leaves_the_pool_usable(make):
    pool = make(limit=8 * U)
    first = take(pool, U)
    pool.trim()
    before = pool.stats()
    with pytest.raises(ndx.OutOfMemoryError):
        take(pool, 8 * U)
    assert pool.stats() == before
    live = [first, take(pool, 2 * U), take(pool, U)]
    check(pool, live)


def test_a_stream_that_is_over(make):
    pool = device() if make in STREAMLESS else make()
    x = take(pool, U, 7)
    pool.source.submit(7)
    x.release()
    pool.close_stream(7)
    y = take(pool, U, 3)
    assert pool.source.waits == []
    check(pool, [y])


def test_pools_used_in_turn(make):
    pools = [make(), make()]
    live = [[], []]
    for i in range(20):
        live[i % 2].append(take(pools[i % 2], 1000 * (i + 1)))
    for pool, mine in zip(pools, live, strict=True):
        check(pool, mine)


def test_round_and_naive():
    pool = HostBackend(pool="round")
    for first, second in ((32, 4095), (2 * MIB + 1, 3 * MIB)):
        x = take(pool, first)
        start = x.address
        x.release()
        assert take(pool, second).address == start
    assert take(pool, 16 * MIB + 1).rounded == 32 * MIB
    pool = HostBackend(pool="naive")
    x = take(pool, 10_000)
    start, kept = x.address, pool.stats()["reserved_bytes"]
    x.release()
    assert pool.stats()["reserved_bytes"] == kept == 12288
    y = take(pool, 8000)
    assert y.address != start
    assert take(pool, 10_000).address == start
