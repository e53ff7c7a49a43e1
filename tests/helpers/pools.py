"""What must hold of every pool at any moment."""

import itertools

from ndx.backends import (
    Buffer,
    HostBackend,
    MmapBackend,
    PythonBackend,
    SimulatedBackend,
)

MIB = 2**20
UNIT = 128 * 1024  # above what is kept unmerged, in quick lists


class Bytes(PythonBackend):
    """A backend of users' code, without a pool."""

    def acquire(self, nbytes):
        return bytearray(nbytes)


def host(**options):
    return HostBackend(**options)


def device(**options):
    """Return a device whose pages can be given back one by one."""
    return SimulatedBackend(**options)


def plain_device(**options):
    """Return a device whose ranges are memory throughout, as of cudaMalloc."""
    return SimulatedBackend(page=0, **options)


def files(**options):
    return MmapBackend(**options)


MAKERS = {"host": host, "files": files, "device": device, "plain device": plain_device}
STREAMLESS = (host, files)


def check(backend, live=()):
    """Check a pool's books against a walk through its blocks, and against its users."""
    stats = backend.stats()
    used = free = requested = reserved = 0
    ranges = []
    for segment in backend.snapshot():
        at = segment["address"]
        cold = 0
        states = []
        for block in segment["blocks"]:
            assert block["address"] == at, "blocks leave no gap and don't overlap"
            assert block["size"] > 0
            at += block["size"]
            states.append((block["state"], block["stream"]))
            if block["state"] == "active_allocated":
                used += block["size"]
                requested += block["requested_size"]
                ranges.append((block["address"], block["requested_size"]))
            elif block["state"] == "unmapped":
                cold += block["size"]
            else:
                free += block["size"]
        assert at == segment["address"] + segment["total_size"]
        assert segment["reserved_size"] == segment["total_size"] - cold
        reserved += segment["reserved_size"]
        for first, second in itertools.pairwise(states):
            assert not first[0] == second[0] == "unmapped", "cold ones are merged"
    assert used + free == reserved
    # Small arrays lie in no segment: each counts as a multiple of 16 bytes.
    small, small_held = stats["rounded_bytes"] - used, stats["small_reserved_bytes"]
    rest = small - stats["small_bytes"]
    assert small % 16 == 0
    assert 0 <= rest <= 15 * stats["small_count"]
    assert small <= small_held
    assert reserved + small_held == stats["reserved_bytes"]
    assert free + small_held - small == stats["cached_bytes"]
    assert requested + stats["small_bytes"] == stats["allocated_bytes"]
    assert len(ranges) + stats["small_count"] == stats["allocated_count"]
    limit = backend.limit
    if isinstance(backend, SimulatedBackend):
        assert backend.source.held == reserved <= backend.source.capacity
    if live:
        assert sorted(ranges) == sorted((x.address, x.nbytes) for x in live)
    return limit


def take(backend, nbytes, stream=0):
    return Buffer(backend, nbytes, stream=stream)
