"""What foreign code still reads of past cycles stays as it was, at a small cost."""

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndx

KIB = 1024
ARENA = 1024 * KIB


def fill_arena(workspace):
    """Write to every free byte of the open workspace's arena."""
    while workspace.stats()["spilled_count"] == 0:
        ndx.full(64, 0xEE, dtype="uint8")


EXPORTS = {
    "np.asarray": np.asarray,
    "__array__": lambda x: x.__array__(),
    "memoryview": memoryview,
    "np.from_dlpack": np.from_dlpack,
    "ndx.from_dlpack": ndx.from_dlpack,
    "numpy slice": lambda x: np.asarray(x)[1:-1],
    "np.frombuffer": np.frombuffer,
    "asarray of a view": lambda x: ndx.asarray(np.asarray(x)),
}


@pytest.mark.parametrize("export", EXPORTS)
def test_a_view_holds_its_values_for_100_cycles(export):
    workspace = ndx.workspace(size=16 * KIB)
    with workspace:
        ndx.zeros(100)
        x = ndx.arange(100) * 1.0
        kept = EXPORTS[export](x)
        expected = np.array(kept)
    del x
    for _ in range(100):
        with workspace:
            fill_arena(workspace)
    np.testing.assert_array_equal(np.array(kept), expected)
    stats = workspace.stats()
    assert stats["pinned_count"] == 1
    assert 0 < stats["pinned_bytes"] <= 1024
    del kept
    assert workspace.stats()["pinned_count"] == 0
    assert workspace.stats()["pinned_bytes"] == 0


def test_array_interface_pins_until_the_array_dies():
    workspace = ndx.workspace(size=16 * KIB)
    with workspace:
        x = ndx.full(100, 7.0)
        pointer = x.__array_interface__["data"][0]
        assert x.__array_interface__["data"][0] == pointer
    with workspace:
        fill_arena(workspace)

    class Reader:
        __array_interface__ = {  # noqa: RUF012
            "data": (pointer, True), "shape": (100,), "typestr": "<f8", "version": 3,
        }  # fmt: skip

    np.testing.assert_array_equal(np.asarray(Reader()), np.full(100, 7.0))
    assert workspace.stats()["pinned_count"] == 1
    del x
    assert workspace.stats()["pinned_count"] == 0


def test_the_range_is_used_again_after_its_release():
    workspace = ndx.workspace(size=4 * KIB)
    with workspace:
        first = np.asarray(ndx.full(4 * KIB, 1, dtype="uint8"))
    with workspace:
        ndx.zeros(4 * KIB, dtype="uint8")
        assert workspace.stats()["spilled_count"] == 1
    assert (first == 1).all()
    del first
    with workspace:
        ndx.zeros(4 * KIB, dtype="uint8")
        assert workspace.stats()["spilled_count"] == 0


def test_a_range_released_within_a_cycle_serves_the_next():
    workspace = ndx.workspace(size=4 * KIB)
    with workspace:
        kept = np.asarray(ndx.full(4 * KIB, 1, dtype="uint8"))
    with workspace:
        del kept
        x = ndx.zeros(4 * KIB, dtype="uint8")
        assert x.tolist() == [0] * 4 * KIB
    with workspace:
        ndx.zeros(4 * KIB, dtype="uint8")
        assert workspace.stats()["spilled_count"] == 0


KEEPERS = {
    "numpy": np.asarray,
    "buffer": memoryview,
    "capsule": lambda x: x.__dlpack__(),
    "versioned capsule": lambda x: x.__dlpack__(max_version=(1, 0)),
}


@pytest.mark.parametrize("keep", KEEPERS)
@pytest.mark.parametrize("sliced", [False, True], ids=["small array", "slice of big"])
@pytest.mark.parametrize("learned", [False, True], ids=["sized", "learned"])
def test_100_cycles_each_keeping_a_small_view(keep, sliced, learned):
    backend = ndx.backends.get("host", limit="1GiB")
    workspace = ndx.workspace(size=0 if learned else ARENA, backend=backend)

    def cycle(number):
        with workspace:
            big = ndx.full(20_000, float(number))
            small = big[-16:] if sliced else ndx.full(16, float(number))
            temporary = big + 1
            return KEEPERS[keep](small), temporary.shape

    cycle(0)
    cycle(0)
    backend.trim()
    before = backend.stats()
    kept = [cycle(number)[0] for number in range(1, 101)]
    backend.trim()
    after = backend.stats()
    assert after["reserved_bytes"] - before["reserved_bytes"] <= 100 * 64 * KIB
    stats = workspace.stats()
    assert stats["pinned_count"] == 100
    assert stats["pinned_bytes"] <= 100 * 64 * KIB
    if keep in ("numpy", "buffer"):
        for number in range(1, 101):
            assert (np.asarray(kept[number - 1]) == number).all()
    size = workspace.size
    del kept
    gc.collect()
    backend.trim()
    assert workspace.stats()["pinned_count"] == 0
    assert workspace.size == size
    # The arena is whole again: a cycle neither spills nor asks for memory.
    before = backend.stats()
    cycle(0)
    assert workspace.stats()["spilled_count"] == 0
    assert backend.stats()["total_allocations"] == before["total_allocations"]
    assert backend.stats()["allocated_bytes"] == size


@pytest.mark.parametrize("size", [1024 * KIB, 0], ids=["too small", "learned"])
def test_100_slices_from_the_middle_of_big_arrays(size):
    """They leave no room for the next big array in the arena, so that it spills."""
    backend = ndx.backends.get("host", limit="1GiB")
    workspace = ndx.workspace(size=size, backend=backend)
    kept = []
    for number in range(103):
        if number == 3:
            before = backend.stats()["reserved_bytes"]
        with workspace:
            big = ndx.full(128 * KIB, float(number))
            kept.append(np.asarray(big[64 * KIB : 64 * KIB + 16]))
    for number in range(103):
        assert (kept[number] == number).all()
    assert backend.stats()["reserved_bytes"] - before <= 100 * 64 * KIB


def test_a_spilled_array_that_is_exported_is_kept_and_freed():
    backend = ndx.backends.get("host", limit="1GiB")
    workspace = ndx.workspace(backend=backend, learn="none")
    with workspace:
        kept = np.asarray(ndx.full(1000, 3.0))
        ndx.full(1000, 4.0)
    assert backend.stats()["allocated_bytes"] == 8000
    with workspace:
        ndx.full(1000, 5.0)
    assert (kept == 3.0).all()
    assert workspace.stats()["pinned_bytes"] >= 8000
    del kept
    assert backend.stats()["allocated_bytes"] == 0


def test_an_adopted_array_that_is_exported_is_kept_and_freed():
    backend = ndx.backends.get("host", limit="1GiB")
    workspace = ndx.workspace(backend=backend, size="8KiB")
    with workspace:
        # Too large for what the arena has left beside its operand.
        kept = np.asarray(ndx.arange(1000)[np.arange(1000)])
        stale = ndx.arange(1000)
    with pytest.raises(ndx.StaleArrayError):
        stale + 1
    assert kept.tolist() == list(range(1000))
    # The arena and one array.
    assert backend.stats()["allocated_count"] == 2
    del kept
    assert backend.stats()["allocated_count"] == 1


def test_many_exports_of_one_array():
    workspace = ndx.workspace(size=16 * KIB)
    with workspace:
        x = ndx.arange(1000)
        views = [np.asarray(x[start : start + 10]) for start in range(0, 1000, 50)]
    del x
    for step in (1, 2):
        with workspace:
            fill_arena(workspace)
        for number, view in enumerate(views):
            if view is not None:
                assert view.tolist() == list(range(50 * number, 50 * number + 10))
        views[::step] = [None] * len(views[::step])
        views[::2] = [None] * len(views[::2])
    del view
    assert workspace.stats()["pinned_bytes"] == 0


def test_an_export_of_no_elements():
    workspace = ndx.workspace(size=KIB)
    with workspace:
        kept = np.asarray(ndx.zeros((0, 3))), np.asarray(ndx.zeros(100)[5:5])
    with workspace:
        fill_arena(workspace)
    assert [view.shape for view in kept] == [(0, 3), (0,)]


@pytest.mark.parametrize("config", [{}, {"size": KIB}, {"learn": "liveness"}])
@pytest.mark.parametrize("export", sorted({*EXPORTS} - {"np.frombuffer"}))
@given(
    shape=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    place=st.integers(0, 3),
    data=st.data(),
)
def test_an_export_of_a_view_of_no_elements(config, export, shape, place, data):
    shape[place % len(shape)] = 0
    workspace = ndx.workspace(**config)
    with workspace:
        index = tuple(
            data.draw(st.integers(0, length - 1))
            if length and data.draw(st.booleans())
            else slice(data.draw(st.integers(0, 3)), None)
            for length in shape
        )
        x = ndx.zeros(tuple(shape))[index]
        kept = EXPORTS[export](x)
        del x
    # Its strides lead beyond the memory, of which there is none.
    assert workspace.stats()["pinned_bytes"] == 0
    with workspace:
        fill_arena(workspace)
    del kept
    assert workspace.stats()["pinned_count"] == 0


def test_an_export_of_no_elements_keeps_no_more_than_a_page_of_what_spilled():
    backend = ndx.backends.get("host", limit="64MiB")
    kept = []
    workspace = ndx.workspace(backend=backend, learn="none")
    for _ in range(10):
        with workspace:
            kept.append(np.asarray(ndx.ones(2**20)[7:7]))
    assert workspace.stats()["pinned_bytes"] <= 10 * 2**16
    assert backend.stats()["reserved_bytes"] <= 10 * 2**16
    kept.clear()
    assert backend.stats()["allocated_bytes"] == 0


def test_a_view_of_negative_strides_is_kept_whole():
    workspace = ndx.workspace(size=16 * KIB)
    with workspace:
        ndx.zeros(10)
        x = ndx.asarray(np.arange(24.0).reshape(4, 6), copy=True)
        kept = np.asarray(x[::-1, 4:0:-2])
        expected = kept.copy()
    del x
    with workspace:
        fill_arena(workspace)
    np.testing.assert_array_equal(kept, expected)


def test_writing_through_a_kept_view_touches_nothing_else():
    workspace = ndx.workspace(size=4 * KIB)
    with workspace:
        kept = np.asarray(ndx.zeros(8))
    with workspace:
        arrays = [ndx.zeros(8) for _ in range(50)]
        kept[...] = 9.0
        assert all(x.tolist() == [0.0] * 8 for x in arrays)


@pytest.mark.parametrize("keep", KEEPERS)
def test_close_of_an_exported_array(keep):
    x = ndx.ones(10)
    kept = KEEPERS[keep](x[2:4])
    with pytest.raises(BufferError, match="alive"):
        x.close()
    assert x.tolist() == [1.0] * 10
    del kept
    x.close()
    assert repr(x) == "<closed NDArray shape=(10,) dtype=float64>"


def test_close_frees_at_once_and_for_all_views():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):
        x = ndx.ones(1000)
    view = x[3:]
    x.close()
    assert backend.stats()["allocated_bytes"] == 0
    for closed in (x, view):
        assert not closed.in_scope
        with pytest.raises(ndx.StaleArrayError, match="was closed"):
            closed + 1
        with pytest.raises(ndx.StaleArrayError, match="was closed"):
            np.asarray(closed)
    assert x.shape == (1000,)
    x.close()
    view.close()


def test_close_within_a_workspace():
    workspace = ndx.workspace(size="64KiB")
    with workspace:
        x = ndx.ones(100)
        y = ndx.ones(100)
        x.close()
        with pytest.raises(ndx.StaleArrayError, match="was closed"):
            x + y
        assert ndx.sum(y).item() == 100.0
    with pytest.raises(ndx.StaleArrayError, match="was closed"):
        x + 1
    with pytest.raises(ndx.StaleArrayError, match="is stale"):
        y.close()


def test_a_closed_spilled_array_is_freed_at_once():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.workspace(backend=backend, learn="none"):
        x = ndx.ones(1000)
        assert backend.stats()["allocated_bytes"] == 8000
        x.close()
        assert backend.stats()["allocated_bytes"] == 0
