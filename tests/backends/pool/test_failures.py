"""Every allocation fails in turn: nothing is lost, and the pool goes on."""

import pytest
from helpers.pools import check, device, plain_device, take
from ndx.backends._budget import process_reserved

import ndx
from ndx.backends import Buffer, PooledBackend, PythonSource

SIZES = (300, 5000, 70_000, 300_000, 2_500_000)
# Without a pool there are no classes of sizes, and each request takes new pages,
# whose faults cost more than all the rest: so the sizes are a few pages.
FEW_PAGES = (300, 5000, 9000, 70_000, 140_000)


def program(backend, sizes=SIZES, rng_seed=1):
    """Run 200 operations; return how many were refused."""
    state = rng_seed
    live, refused = [], 0
    for number in range(200):
        state = (state * 1103515245 + 12345) % 2**31
        try:
            if state % 5 < 3 or not live:
                nbytes = sizes[state // 7 % len(sizes)]
                live.append(take(backend, nbytes + state % 97, state % 3))
            elif state % 5 == 3:
                live.pop(state // 11 % len(live)).release()
            else:
                backend.source.submit(state % 3)
                live[state // 13 % len(live)].record_use(state % 3)
        except ndx.OutOfMemoryError:
            refused += 1
            check(backend, live)
        if len(live) > 12:
            live.pop(0).release()
        if number % 50 == 49:
            backend.trim()
    check(backend, live)
    for x in live:
        x.release()
    backend.trim()
    assert backend.stats()["reserved_bytes"] == backend.source.held == 0
    assert backend.stats()["allocated_count"] == 0
    assert backend.source.live_events == 0
    return refused


@pytest.mark.costly
@pytest.mark.parametrize("make", [device, plain_device])
@pytest.mark.parametrize("pool", ["split", "round", "naive", "unpooled"])
def test_each_allocation_of_a_program_fails_once(make, pool):
    sizes = FEW_PAGES if pool == "unpooled" else SIZES
    calls = make(pool=pool)
    assert program(calls, sizes) == 0
    for fail_at in range(calls.source.calls):
        backend = make(pool=pool)
        backend.source.fail_at = {fail_at}
        # What was refused once is asked for again, when all that is idle is freed.
        assert program(backend, sizes) <= 1


@pytest.mark.parametrize("make", [device, plain_device])
def test_from_one_request_on_all_fail(make):
    calls = make()
    program(calls)
    for fail_at in range(0, calls.source.calls, 3):
        backend = make()
        backend.source.fail_at = set(range(fail_at, 100_000))
        assert program(backend) > 0


def test_memory_that_can_not_be_given_back_stays_counted():
    backend = device()
    take(backend, 300_000).release()
    before = backend.stats()["reserved_bytes"]
    backend.source.broken = True
    assert backend.trim() == 0
    assert backend.stats()["reserved_bytes"] == before
    backend.source.broken = False
    assert backend.trim() == before
    check(backend)


def test_the_system_is_asked_for_less_before_it_is_given_up():
    asked = []

    class Small(PythonSource):
        def acquire(self, nbytes):
            asked.append(nbytes)
            if nbytes > 200_000:
                raise MemoryError
            return bytearray(nbytes)

    x = Buffer(PooledBackend(Small()), 100_000)
    assert len(asked) == 2
    assert asked[0] > 2_000_000 > asked[1] >= 100_000
    x.release()


def test_callbacks_are_asked_a_bounded_number_of_times():
    backend = device(capacity="1MiB")
    asked = []

    def always(nbytes):
        asked.append(nbytes)
        return True

    ndx.memory.on_oom(always)
    try:
        full = take(backend, "1MiB")
        with pytest.raises(ndx.OutOfMemoryError):
            take(backend, 1000)
        assert asked == [1000] * 3
    finally:
        ndx.memory.remove_on_oom(always)
    full.release()


def test_a_callback_makes_room():
    backend = device(capacity="1MiB")
    cache = [take(backend, "1MiB")]

    def drop(nbytes):
        return bool(cache) and not cache.clear()

    ndx.memory.on_oom(drop)
    try:
        assert take(backend, 1000).nbytes == 1000
    finally:
        ndx.memory.remove_on_oom(drop)


def test_a_callback_that_removes_itself():
    called = []

    def once(nbytes):
        ndx.memory.remove_on_oom(once)
        called.append(nbytes)
        return True

    ndx.memory.on_oom(once)
    with pytest.raises(ndx.OutOfMemoryError):
        take(device(capacity="1MiB"), "2MiB")
    assert len(called) == 1


def test_a_callback_that_raises():
    def fail(nbytes):
        raise KeyError(nbytes)

    ndx.memory.on_oom(fail)
    backend = device(capacity="1MiB")
    try:
        with pytest.raises(KeyError):
            take(backend, "2MiB")
        relief = backend.relief()
        assert relief["refused_requests"] == relief["out_of_memory_errors"] == 1
    finally:
        ndx.memory.remove_on_oom(fail)
    with pytest.raises(ValueError, match="not a callback"):
        ndx.memory.remove_on_oom(fail)
    with pytest.raises(TypeError, match="callable"):
        ndx.memory.on_oom(3)


def test_other_pools_give_up_what_is_idle():
    ndx.memory.empty_cache()
    other = ndx.backends.HostBackend()
    take(other, "8MiB").release()
    assert other.stats()["cached_bytes"] >= 8 * 2**20
    ndx.memory.set_limit(process_reserved() + 2**20)
    try:
        take(device(), "4MiB").release()
    finally:
        ndx.memory.set_limit(None)
    assert other.stats()["cached_bytes"] == 0
