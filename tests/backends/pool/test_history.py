"""What a pool has long not needed goes back, whatever comes and goes beside it."""

import time

import pytest
from helpers.pools import MIB, check, device, host, plain_device, take

import ndx
from ndx.backends import HostBackend


def churn(backend, seconds, sizes, until=None):
    """Take and give back ranges of some sizes for a time, or until something holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (until and until()):
        for number in range(70):
            take(backend, sizes[number % len(sizes)]).release()
        time.sleep(0.005)


def holds_at_most(backend, nbytes):
    return lambda: backend.stats()["reserved_bytes"] <= nbytes


@pytest.mark.parametrize("make", [host, device, plain_device])
@pytest.mark.parametrize("nbytes", [100, 100_000, 2 * MIB])
def test_idle_memory_goes_back_while_others_come_and_go(make, nbytes):
    options = {} if make is host else {"capacity": "256MiB"}
    backend = make(idle_release=0.2, **options)
    take(backend, 64 * MIB).release()
    assert backend.idle_nbytes >= 64 * MIB
    churn(backend, 30, [nbytes], until=holds_at_most(backend, 24 * MIB))
    assert backend.stats()["reserved_bytes"] <= 24 * MIB
    check(backend)


def test_idle_memory_goes_back_beside_what_lives():
    backend = host(idle_release=0.2)
    live = [take(backend, MIB) for _ in range(16)]
    take(backend, 64 * MIB).release()
    churn(backend, 30, [MIB, 70_000], until=holds_at_most(backend, 20 * MIB))
    assert 16 * MIB <= backend.stats()["reserved_bytes"] <= 20 * MIB
    check(backend, live)


def test_what_was_needed_lately_stays():
    """A peak that comes again before the time is over costs no new pages."""
    backend = host(idle_release=10)
    for _ in range(5):
        peak = [take(backend, MIB) for _ in range(32)]
        for x in peak:
            x.release()
        churn(backend, 0.1, [100_000])
        assert backend.stats()["reserved_bytes"] >= 32 * MIB
    assert backend.trim(idle=0.05) > 28 * MIB or backend.trim(idle=0) > 28 * MIB


def test_the_first_slow_request_looks():
    """Requests in quick succession read the clock now and then, slow ones each time."""
    for _ in range(2):
        backend = host(idle_release=0.2)
        churn(backend, 0.1, [3000])
        take(backend, 64 * MIB).release()
        time.sleep(0.5)
        take(backend, 3000).release()
        time.sleep(0.5)
        take(backend, 3000).release()
        assert backend.stats()["reserved_bytes"] <= MIB
        check(backend)


def test_never_is_never():
    backend = host(idle_release=None)
    take(backend, 64 * MIB).release()
    churn(backend, 0.3, [100_000])
    assert backend.stats()["reserved_bytes"] >= 64 * MIB
    check(backend)


def test_trimming_by_age_knows_it_too():
    backend = HostBackend(idle_release=4)
    take(backend, 64 * MIB).release()
    begun = time.monotonic()
    churn(backend, 1, [100_000])
    assert backend.trim(idle=100) == 0
    released = 0

    def trim():
        nonlocal released
        released = backend.trim(idle=0.6)
        return released or backend.stats()["reserved_bytes"] < 60 * MIB

    # Windows end with requests, so late on a busy machine; after 4 seconds, the memory
    # goes without a trim.
    churn(backend, 30, [100_000], until=trim)
    assert released >= 60 * MIB or time.monotonic() - begun > 4
    assert backend.stats()["reserved_bytes"] <= 4 * MIB
    assert backend.trim(idle=0.6) == 0
    check(backend)


@pytest.mark.parametrize("idle", [-1, float("nan")])
def test_ages_that_are_none(idle):
    with pytest.raises(ValueError, match="is not a time"):
        host().trim(idle=idle)


def test_memory_of_busy_streams_is_left_to_others():
    """A stream that is not done is waited for, rather than that the pool grows."""
    backend = ndx.backends.SimulatedBackend(
        capacity="256MiB", reserve_fraction=0.5, idle_release=None
    )
    for x in [take(backend, 24 * MIB + number, stream=7) for number in range(3)]:
        backend.source.submit(7)
        x.release()
    assert backend.idle_nbytes >= 72 * MIB
    peak = take(backend, 78 * MIB)
    peak.release()
    backend.trim()
    live = [take(backend, 24 * MIB, stream=7) for _ in range(4)]
    for x in live[::2]:
        backend.source.submit(7)
        x.release()
    # 96 MiB are held, half of that idle, and the half of the device is to be free.
    big = take(backend, 60 * MIB, stream=8)
    assert backend.memory_info()[0] >= 128 * MIB
    check(backend, [*live[1::2], big])


def test_a_busy_stream_is_not_waited_for_in_vain():
    backend = ndx.backends.SimulatedBackend(
        capacity="64MiB", reserve_fraction=0.25, idle_release=None
    )
    live = []
    for _ in range(8):
        live.append(take(backend, MIB, stream=7))
        backend.source.submit(7)
    assert backend.source.synchronizations == 0
    check(backend, live)
