"""Memory goes from stream to stream with a wait on the device, never on the host."""

import pytest
from helpers.pools import UNIT, check, device, plain_device, take


@pytest.fixture(params=[device, plain_device], ids=["paged", "plain"])
def pool(request):
    backend = request.param()
    yield backend
    check(backend)


def test_its_own_memory_needs_no_wait(pool):
    x = take(pool, UNIT, 1)
    pool.source.submit(1)
    start = x.address
    x.release()
    assert take(pool, UNIT, 1).address == start
    assert pool.source.waits == []


def test_another_streams_memory_is_taken_after_a_wait(pool):
    x = take(pool, UNIT, 1)
    pool.source.submit(1, 5)
    start = x.address
    x.release()
    y = take(pool, UNIT, 2)
    assert y.address == start
    assert pool.source.waits == [(2, 1, 5)]
    assert pool.source.synchronizations == 0
    assert pool.source.live_events == 0
    assert pool.events()["steals"] == 1


def test_nothing_to_wait_for(pool):
    x = take(pool, UNIT, 1)
    pool.source.submit(1)
    pool.source.finish(1)
    x.release()
    take(pool, UNIT, 2)
    assert pool.source.waits == []


def test_what_is_left_stays_with_its_stream(pool):
    x = take(pool, 4 * UNIT, 1)
    pool.source.submit(1)
    x.release()
    y = take(pool, UNIT, 2)
    z = take(pool, UNIT, 2)
    # Each part that another stream takes waits for the first one's work.
    assert pool.source.waits == [(2, 1, 1)] * 2
    check(pool, [y, z])


def test_used_by_several_streams(pool):
    x = take(pool, UNIT, 1)
    x.record_use(2)
    x.record_use(3)
    x.record_use(1)
    for stream in (1, 2, 3):
        pool.source.submit(stream, stream)
    start = x.address
    x.release()
    assert pool.source.live_events == 2
    y = take(pool, UNIT, 1)
    assert y.address == start
    assert sorted(pool.source.waits) == [(1, 2, 2), (1, 3, 3)]
    assert pool.source.live_events == 0


def test_events_that_are_over_let_ranges_merge(pool):
    halves = [take(pool, UNIT, 1) for _ in range(2)]
    start = halves[0].address
    for x in halves:
        x.record_use(2)
    pool.source.submit(2)
    for x in halves:
        x.release()
    pool.source.finish(2)
    pool.synchronize()
    assert take(pool, 2 * UNIT, 1).address == start
    assert pool.source.waits == []


def test_after_a_synchronization_memory_is_anyones(pool):
    x = take(pool, UNIT, 1)
    pool.source.submit(1)
    x.release()
    pool.synchronize()
    take(pool, UNIT, 2)
    assert pool.source.waits == []
    assert pool.events()["steals"] == 0


def test_a_stream_closed_and_another_in_its_place(pool):
    for stream in range(200):
        take(pool, UNIT, stream).release()
        pool.close_stream(stream)


def test_too_many_streams_at_once(pool):
    for stream in range(63):
        take(pool, 1000, stream).release()
    with pytest.raises(ValueError, match=r"63 streams.*close_stream"):
        take(pool, 1000, 63)
