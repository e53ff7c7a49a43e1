"""Arenas planned from lifetimes: no two live arrays ever share a byte."""

import gc
import itertools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import ndx


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


def ranges(arrays):
    """Return the (first, last + 1) bytes of arrays that have any, sorted."""
    return sorted((address(x), address(x) + x.nbytes) for x in arrays if x.nbytes)


class Program:
    """A cycle's births and deaths, replayed with values that show any overlap."""

    def __init__(self, workspace):
        self.workspace = workspace
        self.kept = []  # (foreign view, its values) of past cycles
        self.marks = 0

    def run(self, steps):
        live = {}
        with self.workspace:
            for i, (what, size, which) in enumerate(steps):
                if what == "birth" or not live:
                    self.marks = (self.marks + 1) % 251
                    live[i] = (ndx.full((size,), self.marks, dtype="uint8"), self.marks)
                elif what == "death":
                    del live[sorted(live)[which % len(live)]]
                elif what == "view":
                    x, mark = live[sorted(live)[which % len(live)]]
                    live[i] = (x[::2], mark)
                elif what == "keep":
                    x, mark = live[sorted(live)[which % len(live)]]
                    part = x[which % max(1, x.size) :]
                    self.kept.append((np.asarray(part), np.full(part.shape, mark)))
                elif what == "spilled":
                    live[i] = (ndx.argsort(ndx.zeros(3)) * 0, 0)
                self.check(live)
        ring = self.workspace.config.reset == "ring"
        assert all(x.in_scope == ring for x, _ in live.values())

    def check(self, live):
        for x, mark in live.values():
            assert (np.asarray(x) == mark).all()
        for view, values in self.kept:
            np.testing.assert_array_equal(view, values)


SIZES = st.one_of(st.integers(0, 300), st.sampled_from([64, 640, 4096, 5000]))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["birth", "birth", "death", "view", "keep", "spilled"]),
        SIZES,
        st.integers(0, 100),
    ),
    max_size=25,
)


@hypothesis.given(
    first=STEPS,
    others=st.lists(STEPS, max_size=3),
    order=st.lists(st.integers(0, 3), min_size=2, max_size=8),
    policies=st.sampled_from(
        [
            {},
            {"size": 4096},
            {"max_size": 2048},
            {"spill": "grow", "size": 256},
            {"overallocation": 0.5},
            {"reset": "ring", "slots": 3},
            {"debug": True},
        ]
    ),
)
def test_live_arrays_never_share_a_byte(first, others, order, policies):
    program = Program(ndx.workspace(learn="liveness", **policies))
    programs = [first, *others]
    for index in order:
        program.run(programs[index % len(programs)])
        if len(program.kept) > 4:
            del program.kept[:3]
    program.kept.clear()
    for _ in range(program.workspace.config.slots or 1):
        with program.workspace:
            pass
    assert program.workspace.stats()["pinned_count"] == 0


@hypothesis.given(sizes=st.lists(SIZES, min_size=1, max_size=30), data=st.data())
def test_a_repeated_cycle_follows_its_plan(sizes, data):
    orders = data.draw(st.permutations(range(len(sizes))))
    workspace = ndx.workspace(learn="liveness")

    def cycle():
        live, addresses = {}, []
        with workspace:
            for i, size in enumerate(sizes):
                live[i] = ndx.empty((size,), dtype="uint8")
                addresses.append(address(live[i]) if size else 0)
                found = ranges(live.values())
                for (_, end), (start, _) in itertools.pairwise(found):
                    assert end <= start
                if i % 2:
                    live.pop(orders[i] if orders[i] <= i else i, None)
            assert workspace.stats()["spilled_count"] in (
                0,
                len([s for s in sizes if s]),
            )
        return addresses

    cycle()
    second, third = cycle(), cycle()
    assert second == third
    stats = workspace.stats()
    assert stats["departures"] == stats["spilled_count"] == 0
    assert stats["size"] <= stats["peak_live_bytes"] * 2 + 64


def test_it_takes_the_peak_rather_than_the_sum():
    workspace = ndx.workspace(learn="liveness")
    summed = ndx.workspace(overallocation=0)
    for each in (workspace, summed):
        for _ in range(3):
            with each:
                x = ndx.ones(1000)
                for _ in range(50):
                    x = x + 1
    assert workspace.size == 2 * 8000
    assert summed.size == 51 * 8000
    assert workspace.stats()["departures"] == 0


def test_a_short_last_batch_follows_the_plan():
    workspace = ndx.workspace(learn="liveness")
    for n in (1000, 1000, 300, 1000, 1):
        with workspace:
            x = ndx.ones(n)
            for _ in range(10):
                x = x * 2 + 1
    assert workspace.stats()["departures"] == 0
    assert workspace.stats()["spilled_count"] == 0


def test_a_short_first_batch_is_planned_again():
    workspace = ndx.workspace(learn="liveness")
    for n in (10, 1000, 1000, 10, 1000):
        with workspace:
            x = ndx.ones(n)
            for _ in range(10):
                x = x * 2 + 1
    before = workspace.stats()
    assert before["spilled_count"] == 0
    assert 2 * 8000 <= before["size"] <= 3 * 8000
    with workspace:
        x = ndx.ones(1000)
        for _ in range(10):
            x = x * 2 + 1
    assert workspace.stats()["departures"] == before["departures"]


def test_two_kinds_of_cycles_in_turn_settle():
    workspace = ndx.workspace(learn="liveness")

    def train():
        x = [ndx.ones(100 * (i + 1)) for i in range(5)]
        return ndx.sum(x[0]) + ndx.sum(x[4])

    def evaluate():
        x = ndx.ones(700)
        y = ndx.exp(x)
        del x
        return ndx.sum(y)

    for i in range(20):
        with workspace:
            (evaluate if i % 2 else train)()
    before = workspace.stats()["departures"]
    for i in range(10):
        with workspace:
            (evaluate if i % 2 else train)()
    assert workspace.stats()["departures"] == before
    assert workspace.stats()["total_spills"] < 40


def test_cycles_of_the_collector_are_departures():
    workspace = ndx.workspace(learn="liveness")
    gc.disable()
    try:
        for collect in (True, False, True, False, True, True):
            with workspace:
                loop = [ndx.ones(100)]
                loop.append(loop)
                del loop
                if collect:
                    gc.collect()
                x = ndx.ones(100) + ndx.ones(100)
                assert x.tolist() == [2.0] * 100
    finally:
        gc.enable()
    assert workspace.stats()["spilled_count"] == 0


def test_kept_views_are_planned_around():
    workspace = ndx.workspace(learn="liveness")
    kept = []
    for i in range(50):
        with workspace:
            x = ndx.full(1000, i)
            kept.append(np.asarray(x[:4]))
            y = x + 1
            del x
            y = y * 2
    assert [view.tolist() for view in kept] == [[i] * 4 for i in range(50)]
    assert workspace.stats()["pinned_count"] == 50
    kept.clear()
    with workspace:
        pass
    assert workspace.stats()["pinned_bytes"] == 0


def test_many_allocations():
    workspace = ndx.workspace(learn="liveness")
    for _ in range(3):
        with workspace:
            live = [ndx.empty(8) for _ in range(3000)]
            for i in range(0, 3000, 2):
                live[i] = None
            live += [ndx.empty(8) for _ in range(1500)]
    stats = workspace.stats()
    assert stats["size"] == 3000 * 64
    assert stats["departures"] == 0


def test_more_allocations_than_are_planned_one_by_one():
    workspace = ndx.workspace(learn="liveness")
    for _ in range(3):
        with workspace:
            x = [ndx.empty(8) for _ in range(20_000)]
            for i, each in enumerate(x):
                each[0] = i
            assert [float(each[0]) for each in x[::1000]] == list(
                range(0, 20_000, 1000)
            )
    stats = workspace.stats()
    assert stats["spilled_count"] == 0
    assert 20_000 * 64 <= stats["size"] <= 21_500 * 64


@pytest.mark.parametrize("spill", ["external", "grow"])
def test_a_bound_is_kept(spill):
    workspace = ndx.workspace(learn="liveness", max_size=4096, spill=spill)
    for _ in range(5):
        with workspace:
            x = [ndx.ones(128) for _ in range(10)]
            assert all(each.tolist() == [1.0] * 128 for each in x)
        assert workspace.size <= 4096
    assert workspace.stats()["spilled_count"] == 6


def test_a_full_plan_fails_if_it_was_asked_to():
    workspace = ndx.workspace(learn="liveness", spill="fail")
    with workspace:
        x = ndx.ones(100)
    with workspace:
        x = ndx.ones(100)
        with pytest.raises(ndx.OutOfMemoryError, match="is full"):
            ndx.ones(100)
        assert x.tolist() == [1.0] * 100
        del x
        assert ndx.ones(50).tolist() == [1.0] * 50
    assert workspace.size == 832
