"""All workspaces: lists, table, destruction, defaults, debug modes, collections."""

import gc
import math
import sys
import threading

import numpy as np
import pytest
from helpers.threads import in_thread, run_in_thread

import ndx
from ndx._workspaces.owners import all_workspaces


@in_thread
def test_workspaces_of_this_thread():
    assert ndx.memory.workspaces() == []
    b, a = ndx.workspace("b"), ndx.workspace("a")
    assert ndx.memory.workspaces() == [a, b]
    assert ndx.memory.workspaces(thread=threading.current_thread()) == [a, b]
    assert ndx.memory.workspaces(thread=threading.get_ident()) == [a, b]
    assert a.parent is None
    with a:
        assert a.parent is None
        with b:
            assert b.parent is a
            with a:
                assert a.parent is None
            with ndx.no_workspace(), ndx.workspace("c") as c:
                assert c.parent is None
            with a.borrow(), c:
                assert c.parent is a


@pytest.mark.threads
def test_workspaces_of_other_threads():
    ready, done = threading.Event(), threading.Event()

    def work():
        with ndx.workspace("theirs", size="1KiB"):
            pass
        opened = ndx.workspace("open there", size="1KiB")
        with opened:
            ready.set()
            done.wait()

    thread = threading.Thread(target=work, name="their thread")
    thread.start()
    ready.wait()
    names = [each.name for each in ndx.memory.workspaces(thread=thread)]
    assert names == ["open there", "theirs"]
    assert {*names} <= {each.name for each in ndx.memory.workspaces(all_threads=True)}
    table = ndx.memory.workspace_summary(thread=thread).splitlines()
    assert "their thread" in table[1]
    assert " open " in table[1]
    assert table[-1].split()[:3] == ["total", "2", "KiB"]
    assert ndx.memory.destroy_all(thread=thread) == 1
    assert ndx.memory.workspaces(thread=thread)[0].size == 1024
    done.set()
    thread.join()


@in_thread
def test_the_table():
    with ndx.workspace("a", size="1MiB"):
        ndx.zeros(1000)
        lines = ndx.memory.workspace_summary().splitlines()
    head = "workspace thread state size offset this cycle last max spilled pinned "
    assert lines[0].split() == (head + "retired cycles generation").split()
    assert lines[1].split(" open ")[1].split()[:4] == ["1", "MiB", "7.812", "KiB"]
    assert len({len(line) for line in lines[:2]}) == 1


@pytest.mark.parametrize("thread", ["main", True, 1.5])
def test_threads_are_checked(thread):
    for function in (
        ndx.memory.workspaces,
        ndx.memory.destroy_all,
        ndx.memory.workspace_summary,
    ):
        with pytest.raises(TypeError, match="thread must be"):
            function(thread=thread)


@pytest.mark.parametrize(
    "config", [{"size": 1024}, {}, {"learn": "liveness"}, {"reset": "ring"}]
)
@in_thread
def test_a_destroyed_workspace_starts_anew(config):
    backend = ndx.backends.get("host", limit="1MiB")
    workspace = ndx.workspace("step", backend=backend, **config)
    for _ in range(3):
        with workspace:
            x = ndx.ones(100)
    workspace.destroy()
    assert workspace.size == 0
    assert not x.in_scope
    assert backend.stats()["allocated_bytes"] == 0
    assert ndx.workspace("step", backend=backend, size="2KiB") is not workspace
    for _ in range(3):
        with workspace:
            x = ndx.ones(50)
            assert x.tolist() == [1.0] * 50
    assert workspace.size >= 448
    assert workspace.stats()["spilled_count"] == 0
    workspace.destroy()
    workspace.destroy()
    assert ndx.workspace("step").config.size == 2048


def test_an_open_workspace_is_not_destroyed():
    with ndx.workspace(size="1KiB") as workspace:
        x = ndx.ones(3)
        for call in (workspace.destroy, workspace.initialize):
            with pytest.raises(ndx.WorkspaceError, match="while a scope of it is open"):
                call()
        assert x.tolist() == [1.0] * 3


def test_what_foreign_code_reads_outlives_a_destruction():
    backend = ndx.backends.get("host", limit="1MiB")
    workspace = ndx.workspace(backend=backend, size="64KiB")
    with workspace:
        seen = np.asarray(ndx.arange(4000.0)[100:110])
    workspace.destroy()
    stats = workspace.stats()
    assert (stats["size"], stats["pinned_count"]) == (0, 0)
    assert 0 < stats["retired_bytes"] <= 65536
    with workspace:
        ndx.full(8000, 7.0)
        assert workspace.size == 65536
    assert seen.tolist() == list(range(100, 110))
    del seen
    assert workspace.stats()["retired_bytes"] == 0
    assert backend.stats()["allocated_bytes"] == 65536
    del workspace
    assert backend.stats()["allocated_bytes"] == 0


def test_growth_leaves_what_is_read_where_it_is():
    workspace = ndx.workspace(spill="grow", overallocation=0)
    kept = []
    for n in (10, 100, 1000, 2000):
        with workspace:
            kept.append(np.asarray(ndx.full(n, n)[1:4]))
    assert workspace.size == 16000
    assert [view.tolist() for view in kept] == [[n] * 3 for n in (10, 100, 1000, 2000)]
    kept.clear()
    with workspace:
        pass
    stats = workspace.stats()
    assert (stats["pinned_bytes"], stats["retired_bytes"]) == (0, 0)


def test_a_chunk_that_cannot_grow_keeps_its_size():
    backend = ndx.backends.get("host", limit="16KiB")
    workspace = ndx.workspace(backend=backend, spill="grow", overallocation=0)
    for n in (4, 20, 20, 20):
        with workspace:
            for i in range(n):
                x = ndx.full(128, i)
                assert x.tolist() == [i] * 128
        del x
    assert workspace.size == 4096
    assert backend.stats()["allocated_bytes"] == workspace.size


def test_over_time_is_sized_by_the_largest():
    workspace = ndx.workspace(learn="over-time", cycles=3, overallocation=0)
    for n, size in [(100, 0), (300, 0), (50, 2432), (400, 2432)]:
        with workspace:
            ndx.empty(n)
        assert workspace.size == size


@pytest.fixture
def default_config():
    before = ndx.memory.default_workspace_config()
    yield
    ndx.memory.default_workspace_config(before)


def test_the_default_config(default_config):
    config = ndx.WorkspaceConfig(size="2KiB", spill="fail")
    assert ndx.memory.default_workspace_config(config) is config
    assert ndx.workspace().config is config
    assert ndx.workspace(spill="grow").config == ndx.WorkspaceConfig(
        size=2048, spill="grow"
    )
    other = ndx.WorkspaceConfig(learn="none")
    assert ndx.workspace(config=other).config is other
    assert ndx.workspace(config=other, escape="detach").config.learn == "none"
    with pytest.raises(TypeError, match=r"an ndx\.WorkspaceConfig"):
        ndx.memory.default_workspace_config("fast")
    assert ndx.memory.default_workspace_config() is config


def test_configs_are_values():
    config = ndx.WorkspaceConfig(size="1KiB", learn="none")
    assert config == ndx.WorkspaceConfig(learn="none", size=1024)
    assert len({config, ndx.WorkspaceConfig(learn="none", size=1024)}) == 1
    assert eval(repr(config), {"WorkspaceConfig": ndx.WorkspaceConfig}) == config
    with pytest.raises(AttributeError):
        config.size = 3


@pytest.fixture
def debug_mode():
    yield
    ndx.memory.debug_mode("off")


def test_debug_modes(debug_mode):
    before = ndx.workspace(size="1KiB")
    assert ndx.memory.debug_mode("bypass") == "off"
    with ndx.workspace(size="1KiB") as workspace:
        x = ndx.ones(3)
        with workspace, workspace.borrow():
            assert not ndx.ones(3).attached
        assert workspace.is_open
    assert x.tolist() == [1.0] * 3
    assert workspace.size == workspace.generation == 0
    assert workspace.stats()["cycles"] == 0
    assert "bypassed" in ndx.memory.workspace_summary()
    workspace.destroy()
    workspace.initialize()
    with before:
        assert ndx.ones(3).attached
    with pytest.raises(ValueError, match="'off', 'spill', 'bypass'"):
        ndx.memory.debug_mode("on")
    assert ndx.memory.debug_mode() == "bypass"


@pytest.mark.parametrize("learn", ["first", "liveness"])
def test_the_debug_mode_that_spills(debug_mode, learn):
    ndx.memory.debug_mode("spill")
    workspace = ndx.workspace(learn=learn)
    for _ in range(3):
        with workspace:
            x = ndx.ones(3)
            assert x.attached
            assert workspace.stats()["spilled_count"] == 1
        assert not x.in_scope
        assert workspace.size == 0
    ndx.memory.debug_mode("off")
    for _ in range(2):
        with workspace:
            ndx.ones(3)
    assert workspace.size > 0
    assert workspace.stats()["spilled_count"] == 0


# ---- the collector -----------------------------------------------------------


@pytest.fixture
def collections(monkeypatch):
    """Count the collections that ndx starts."""
    calls = []
    monkeypatch.setattr(gc, "collect", lambda *args: calls.append(args) or 0)
    yield calls
    ndx.memory.gc_window(0)
    ndx.memory.periodic_gc(False)


def test_no_scope_collects_by_default(collections):
    workspace = ndx.workspace()
    for _ in range(50):
        with workspace:
            ndx.ones(100)
    assert collections == []


def test_periodic_collections(collections):
    assert ndx.memory.periodic_gc(True) is True
    outer, inner = ndx.workspace(), ndx.workspace()
    with outer:
        with outer:
            pass
        assert len(collections) == 0
        with inner:
            pass
    assert len(collections) == 2
    assert ndx.memory.gc_window(3600) == 3600
    with outer:
        pass
    assert len(collections) == 2
    assert ndx.memory.periodic_gc(False) is False
    ndx.memory.gc_window(0)
    with outer:
        pass
    assert len(collections) == 2


def test_the_window_of_collections_for_memory(collections):
    backend = ndx.backends.get("host", limit="1MiB")

    def fail():
        with ndx.use(backend):
            x = ndx.ones(100_000)
            with pytest.raises(ndx.OutOfMemoryError):
                ndx.ones(100_000)
            del x

    fail()
    assert len(collections) == 1
    ndx.memory.gc_window(math.inf)
    fail()
    assert len(collections) == 1
    ndx.memory.gc_window(0)
    fail()
    assert len(collections) == 2


@pytest.mark.parametrize("seconds", [-1, math.nan])
def test_bad_windows(seconds):
    with pytest.raises(ValueError, match="gc_window"):
        ndx.memory.gc_window(seconds)
    with pytest.raises(TypeError, match="takes a bool"):
        ndx.memory.periodic_gc(1)
    assert ndx.memory.gc_window() == 0


@pytest.mark.threads
def test_workspaces_of_a_thread_go_with_it():
    backend = ndx.backends.get("host", limit="1MiB")

    def work():
        with ndx.workspace("mine", backend=backend, size="1KiB"):
            ndx.ones(3)

    run_in_thread(work)
    assert backend.stats()["allocated_bytes"] == 0


@pytest.mark.threads
def test_lists_while_other_threads_make_more(monkeypatch):
    """A weak set can't be iterated while one is added."""
    kept = [ndx.workspace(f"kept {i}") for i in range(3)]
    members, turns = type(all_workspaces).__iter__, []

    def iterate(weak_set):
        for each in members(weak_set):
            if not turns:
                turns.append(each)
                kept.append(ndx.workspace("made meanwhile"))
            yield each

    monkeypatch.setattr(type(all_workspaces), "__iter__", iterate)
    found = ndx.memory.workspaces()
    assert turns
    # From Python 3.14 on, weak sets are copied before they are iterated.
    assert set(kept if sys.version_info < (3, 14) else kept[:3]) <= set(found)
