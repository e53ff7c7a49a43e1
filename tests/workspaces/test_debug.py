"""What ``debug=True`` finds: where arrays were made, and writes past their ends."""

import contextlib
import ctypes
import gc

import numpy as np
import pytest

import ndx


@pytest.mark.parametrize("config", [{}, {"size": "4KiB"}, {"learn": "liveness"}])
def test_a_stale_array_says_where_it_was_made(config):
    workspace = ndx.workspace(debug=True, **config)
    for _ in range(2):
        with workspace:
            x = ndx.exp(ndx.ones(3))
            y = np.exp(x)
            z = ndx.linalg.inv(ndx.eye(2))
        for array, line in ((x, "x = ndx.exp("), (y, "y = np.exp"), (z, "z = ndx.lin")):
            with pytest.raises(ndx.StaleArrayError) as caught:
                array + 1
            place = str(caught.value).split(" made at ")[1].split(" in ")[0]
            file, number = place.rsplit(":", 1)
            with open(file) as source:
                assert line in source.read().splitlines()[int(number) - 1]
            assert "test_a_stale_array_says_where_it_was_made" in str(caught.value)


def overrun(x, nbytes):
    """Write behind an array, as broken foreign code would."""
    address = np.asarray(x).__array_interface__["data"][0]
    ctypes.memset(address + x.nbytes, 0, nbytes)


def overrun_in(workspace, dropped, others):
    with workspace:
        x = ndx.ones(3)
        others.append(ndx.ones(5))
        overrun(x, 2)
        if dropped:
            del x


@pytest.mark.parametrize("config", [{}, {"size": "4KiB"}, {"learn": "liveness"}])
@pytest.mark.parametrize("dropped", [False, True])
def test_guard_bytes(config, dropped):
    workspace = ndx.workspace(debug=True, **config)
    for _ in range(2):
        y = []
        with pytest.raises(ndx.WorkspaceError, match="wrote past the end") as caught:
            overrun_in(workspace, dropped, y)
        assert "an array of 24 bytes, made at " in str(caught.value)
        assert str(caught.value).count("an array of") == 1
        assert not workspace.is_open
        assert not y[0].in_scope
    with workspace:
        assert ndx.ones(3).tolist() == [1.0] * 3


@pytest.mark.parametrize(
    "make", [lambda: ndx.ones(3), lambda: ndx.argsort(ndx.ones(3))]
)
def test_an_interruption_while_a_line_is_recorded(monkeypatch, make):
    from ndx._arenas import debug

    def interrupted():
        raise KeyboardInterrupt

    workspace = ndx.workspace(debug=True, size="4KiB")
    with workspace:
        x = ndx.ones(3)
        monkeypatch.setattr(debug, "current_line", interrupted)
        before = workspace.stats()
        with pytest.raises(KeyboardInterrupt):
            make()
        assert workspace.stats()["live_bytes"] == before["live_bytes"]
        monkeypatch.undo()
        assert (x + 1).tolist() == [2.0] * 3


def test_reclaimed_memory_is_filled():
    workspace = ndx.workspace(debug=True, size="4KiB")
    with workspace:
        ndx.ones(100)
    with workspace:
        assert set(np.asarray(ndx.empty(100, dtype="uint8"))) == {0xDD}


def test_the_error_of_the_scope_is_not_hidden_by_its_end():
    workspace = ndx.workspace(debug=True, size="4KiB")

    def fail():
        with workspace:
            overrun(ndx.ones(3), 1)
            raise KeyError("inside")

    with pytest.raises(ndx.WorkspaceError, match="wrote past") as caught:
        fail()
    assert isinstance(caught.value.__context__, KeyError)


def test_of_many_overruns_the_first_are_told_and_the_rest_counted():
    workspace = ndx.workspace(debug=True, size="4KiB")

    def overrun_many():
        with workspace:
            for x in [ndx.ones(3) for _ in range(11)]:
                overrun(x, 1)

    with pytest.raises(ndx.WorkspaceError, match="wrote past the end") as caught:
        overrun_many()
    assert str(caught.value).count("an array of") == 8
    assert "; of 3 more. " in str(caught.value)


# ---- the collector runs while a scope ends ------------------------------------


class Holder:
    """Drops what it holds when the collector finds it."""

    def __init__(self, held):
        self.held = held
        self.me = self

    def __del__(self):
        self.held.clear()


@contextlib.contextmanager
def collecting_after(count):
    """Let the collector run at the object that it counts after so many others."""
    # Else the first lists come from CPython's own store, and are not counted.
    kept = [[] for _ in range(300)]
    before = gc.get_threshold()
    gc.set_threshold(gc.get_count()[0] + count, 1000, 1000)
    gc.enable()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        del kept


@pytest.mark.parametrize("exported", [False, True])
@pytest.mark.parametrize("policies", [{}, {"escape": "detach"}])
def test_what_was_overrun_is_dropped_while_its_scope_ends(policies, exported):
    workspace = ndx.workspace(debug=True, size="4KiB", **policies)
    for count in range(12):
        gc.collect()
        gc.disable()
        try:
            workspace.__enter__()
            x = ndx.ones(3)
            overrun(x, 1)
            held = [np.asarray(x) if exported else x]
            del x
            Holder(held)
            with contextlib.suppress(ndx.WorkspaceError), collecting_after(count):
                workspace.__exit__(None, None, None)
        finally:
            gc.enable()
        held.clear()
        assert not workspace.is_open
        assert workspace.stats()["live_bytes"] == 0
        assert workspace.stats()["pinned_count"] == 0
    with workspace:
        assert ndx.ones(3).tolist() == [1.0] * 3


def test_what_is_read_is_dropped_while_the_arena_grows():
    for count in range(12):
        workspace = ndx.workspace(size="4KiB")
        with workspace:
            held = [np.asarray(ndx.ones(3)) for _ in range(4)]
        gc.collect()
        gc.disable()
        try:
            Holder(held)
            with collecting_after(count):
                workspace.reserve(8192 + 64 * count)
        finally:
            gc.enable()
        held.clear()
        assert workspace.stats()["pinned_count"] == 0
        assert workspace.stats()["retired_bytes"] == 0
        workspace.destroy()
