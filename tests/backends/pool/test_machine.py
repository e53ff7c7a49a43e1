"""Random programs: the books agree, nothing overlaps, no byte is beyond the limit."""

import os

from helpers.examples import examples
from helpers.pools import MAKERS, STREAMLESS, check, take
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import ndx
from ndx.backends import SimulatedBackend

SIZES = st.one_of(
    st.integers(1, 2000),
    st.integers(1, 200_000),
    st.sampled_from([63, 64, 65, 512, 4096, 65536, 65537, 2**20, 2**20 + 1, 3 * 2**20]),
    st.integers(1, 12 * 2**20),
)


class PoolMachine(RuleBasedStateMachine):
    """A pool against a model: the set of live ranges, each filled with its mark."""

    @initialize(
        maker=st.sampled_from(sorted(MAKERS)),
        kind=st.sampled_from(["split"] * 4 + ["round", "naive", "unpooled", "arena"]),
        limit=st.sampled_from([None, "6MiB", "20MiB"]),
    )
    def start(self, maker, kind, limit):
        self.streams = MAKERS[maker] not in STREAMLESS
        options = {"capacity": "32MiB"} if self.streams else {}
        if kind == "arena":
            options["initial"] = "6MiB"
        self.backend = MAKERS[maker](
            pool=kind, limit=limit, idle_release=None, **options
        )
        self.live = []
        self.peak_limit = self.backend.limit
        self.mark = 0

    @rule(nbytes=SIZES, stream=st.integers(0, 3))
    def allocate(self, nbytes, stream):
        before = self.backend.stats()
        try:
            x = take(self.backend, nbytes, stream if self.streams else 0)
        except ndx.OutOfMemoryError:
            after = self.backend.stats()
            for key in ("allocated_bytes", "allocated_count", "total_allocations"):
                assert after[key] == before[key]
            return
        self.mark = (self.mark + 1) % 251
        view = memoryview(x)
        view[:8] = bytes([self.mark]) * min(8, nbytes)
        view[-1:] = bytes([self.mark])
        view.release()
        self.live.append((x, self.mark))

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def free(self, data):
        x, mark = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        view = memoryview(x)
        assert view[0] == view[-1] == mark
        view.release()
        x.release()

    @precondition(lambda self: self.live)
    @rule(data=st.data(), stream=st.integers(0, 3))
    def use_elsewhere(self, data, stream):
        x, _ = self.live[data.draw(st.integers(0, len(self.live) - 1))]
        x.record_use(stream)

    @precondition(lambda self: self.streams)
    @rule(stream=st.integers(0, 3), done=st.booleans())
    def work(self, stream, done):
        if done:
            self.backend.source.finish(stream)
        else:
            self.backend.source.submit(stream)

    @precondition(lambda self: self.streams)
    @rule(after=st.integers(0, 2))
    def fail(self, after):
        self.backend.source.fail_at = {self.backend.source.calls + after}

    @precondition(lambda self: self.streams)
    @rule(stream=st.integers(0, 3))
    def close_stream(self, stream):
        self.backend.close_stream(stream)

    @rule(goal=st.sampled_from([0, 2**20, 5 * 2**20]))
    def trim(self, goal):
        before = self.backend.stats()["reserved_bytes"]
        released = self.backend.trim(goal)
        assert self.backend.stats()["reserved_bytes"] == before - released

    @rule(limit=st.sampled_from([None, 0, "1MiB", "6MiB", "20MiB"]))
    def change_limit(self, limit):
        self.backend.limit = limit

    @invariant()
    def books_agree(self):
        if not hasattr(self, "backend"):
            return
        check(self.backend, [x for x, _ in self.live])
        stats = self.backend.stats()
        assert stats["peak_reserved_bytes"] >= stats["reserved_bytes"]
        assert stats["peak_bytes"] >= stats["allocated_bytes"]

    def teardown(self):
        if not hasattr(self, "backend"):
            return
        for x, mark in self.live:
            with memoryview(x) as view:
                assert view[0] == view[-1] == mark
            x.release()
        self.backend.trim()
        stats = self.backend.stats()
        assert stats["reserved_bytes"] == stats["allocated_bytes"] == 0
        assert stats["system_allocations"] == stats["system_frees"]
        if isinstance(self.backend, SimulatedBackend):
            assert self.backend.source.held == 0
            assert self.backend.source.live_events == 0


TestPool = PoolMachine.TestCase
# `make fuzz` takes more steps, and draws more.
STEPS = int(os.environ.get("NDX_FUZZ_STEPS", "60"))
TestPool.settings = examples(40, stateful_step_count=STEPS, deadline=None)
