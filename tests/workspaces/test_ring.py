"""Rings: arrays live until their slot's turn comes again, and raise from then on."""

import numpy as np
import pytest
from helpers.nd4j import cycle, lines, offset, spilled
from helpers.paths import PATHS
from helpers.stale import message_of
from helpers.threads import in_thread
from hypothesis import given
from hypothesis import strategies as st

import ndx

# Where a ring's array lies: in its slot, beyond it, or in memory that NumPy made.
KINDS = ("slot", "learning", "overflow", "adopted", "view")


def ring_array(make, kind, slots=2):
    """Return an array in a new ring, the ring, and the message's generation."""
    size = {"learning": 0, "overflow": 64}.get(kind, "1MiB")
    ring = ndx.workspace(reset="ring", slots=slots, size=size)
    with ring:
        ndx.ones(8)
        x = make()
        if kind == "adopted":
            x = x[np.arange(len(x))] if x.ndim else x[np.ones((), bool)][0, ...]
        elif kind == "view":
            x = x[...]
    return x, ring


@pytest.mark.parametrize("path", PATHS)
def test_an_array_kept_too_long(path):
    """Rule 1: whatever is done with it raises; nothing reads what is there now."""
    make, use = PATHS[path]
    for kind in KINDS:
        x, ring = ring_array(make, kind)
        with ring:
            # The other slot's turn.
            assert x.in_scope
        with ring:
            assert not x.in_scope
            live = make()
            before = np.array(live)
            message = message_of(use, x, live)
            assert f"shape {x.shape}" in message
            assert f"dtype {x.dtype}" in message
            assert repr(ring.name) in message
            assert "detach()" in message
            np.testing.assert_array_equal(np.array(live), before)
        message_of(use, x, make())


@pytest.mark.parametrize("path", PATHS)
def test_the_same_use_is_fine_until_then(path):
    make, use = PATHS[path]
    for kind in KINDS:
        x, ring = ring_array(make, kind, slots=3)
        for _ in range(2):
            with ring:
                assert x.in_scope
        try:
            use(x, make())
        except BufferError:
            assert path == "close"


@pytest.mark.parametrize("slots", [2, 3, 7])
def test_each_array_lives_for_as_many_cycles_as_there_are_slots(slots):
    ring = ndx.workspace(reset="ring", slots=slots, size="4KiB")
    kept = []
    for number in range(4 * slots):
        with ring:
            kept.append(ndx.full(10, float(number)))
            for past, x in enumerate(reversed(kept)):
                assert x.in_scope == (past < slots)
                if x.in_scope:
                    assert x.tolist() == [float(number - past)] * 10
                else:
                    assert repr(x).startswith("<stale NDArray")
    assert [x.in_scope for x in kept[-slots:]] == [True] * slots


@given(st.data())
def test_a_ring_against_a_model(data):
    """Sizes, slots and policies at random: each array is right, or it is stale."""
    slots = data.draw(st.integers(2, 5))
    ring = ndx.workspace(
        reset="ring",
        slots=slots,
        size=data.draw(st.sampled_from([0, 1024, 8192])),
        spill=data.draw(st.sampled_from(["external", "grow"])),
        overallocation=data.draw(st.sampled_from([0, 0.3])),
    )
    kept, views, number = [], {}, 0
    for turn in range(data.draw(st.integers(1, 15))):
        with ring:
            for _ in range(data.draw(st.integers(0, 4))):
                number += 1
                size = data.draw(st.sampled_from([0, 1, 8, 9, 100, 500]))
                x = ndx.full(size, float(number))
                kept.append((turn, number, x))
                if data.draw(st.integers(0, 3)) == 0:
                    views[number] = np.asarray(x[size // 2 :])
                if data.draw(st.integers(0, 3)) == 0:
                    del kept[data.draw(st.integers(0, len(kept) - 1))]
            check(kept, views, turn, slots)
        check(kept, views, turn, slots)
        for key in sorted(views):
            if data.draw(st.booleans()):
                del views[key]
    del kept
    views.clear()
    assert ring.stats()["pinned_count"] == 0


def check(kept, views, turn, slots):
    for made, value, x in kept:
        assert x.in_scope == (turn - made < slots)
        if x.in_scope:
            assert (np.array(x) == value).all()
    for value, view in views.items():
        assert (view == value).all()


def test_a_view_of_numpy_outlives_the_turn():
    ring = ndx.workspace(reset="ring", slots=2, size="4KiB")
    with ring:
        x = ndx.arange(100.0)
        view = np.asarray(x[10:20])
    for _ in range(20):
        with ring:
            while ring.stats()["spilled_count"] == 0:
                ndx.full(64, 0xEE, dtype="uint8")
    assert view.tolist() == list(range(10, 20))
    with pytest.raises(ndx.StaleArrayError):
        x + 1
    assert ring.stats()["pinned_count"] == 1
    del view, x
    assert ring.stats()["pinned_count"] == 0


def test_survivors_leave_a_ring_that_lets_them_escape():
    ring = ndx.workspace(reset="ring", slots=2, size="4KiB", escape="detach")
    kept = []
    for number in range(6):
        with ring:
            x = ndx.full(10, float(number))
            kept.append((x, x[5:]))
        del x
        assert all(x.in_scope and view.in_scope for x, view in kept)
    assert [x.attached for x, _ in kept] == [False] * 4 + [True] * 2
    for number, (x, view) in enumerate(kept):
        assert x.tolist() == [float(number)] * 10
        view += 1
        assert x.tolist() == [float(number)] * 5 + [number + 1.0] * 5
    assert ring.stats()["escaped_count"] == 4


@in_thread
def test_a_ring_entered_again_stays_in_its_slot():
    ring, other = ndx.workspace("ring", reset="ring", size="4KiB"), ndx.workspace()
    with ring:
        x = ndx.ones(10)
        with other, ring:
            y = x + 1
            assert y.workspace == "ring"
            with ring.borrow():
                z = x + y
        assert ring.stats()["slot"] == 0
        assert offset(ring) == 3 * lines(10)
    assert z.tolist() == [3.0] * 10
    assert ring.stats()["cycles"] == 1


def test_leverage_into_and_out_of_a_ring():
    ring = ndx.workspace(reset="ring", size="4KiB")
    with ndx.workspace(size="4KiB") as outer, ring:
        x = ndx.ones(10)
        outward = x.leverage()
        assert outward.workspace == outer.name
        with ndx.workspace(size="4KiB"):
            inward = ndx.full(10, 2.0).leverage_to(ring)
    # The ring's arrays outlive the scope; the other one's don't.
    assert not outward.in_scope
    assert inward.tolist() == [2.0] * 10
    assert (x + inward).tolist() == [3.0] * 10
    detached = x.detach()
    assert not detached.attached


def test_an_empty_cycle_takes_a_slot():
    ring = ndx.workspace(reset="ring", slots=2, size="4KiB")
    x = cycle(ring, 10)[0]
    cycle(ring)
    assert x.in_scope
    cycle(ring)
    assert not x.in_scope


def test_a_destroyed_ring():
    backend = ndx.backends.get("host", limit="1MiB")
    ring = ndx.workspace(reset="ring", size="4KiB", backend=backend)
    x = cycle(ring, 10)[0]
    view = np.asarray(cycle(ring, 10)[0])
    ring.destroy()
    assert not x.in_scope
    assert view.tolist() == [10.0] * 10
    del view
    assert backend.stats()["allocated_bytes"] == 0
    assert ring.size == 0
    # Entered again, it starts anew.
    kept = [cycle(ring, 10)[0] for _ in range(2)]
    assert [float(y[0]) for y in kept] == [10.0, 10.0]
    assert spilled(ring)[0] == 0 or ring.size == 0
