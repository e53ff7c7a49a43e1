"""Which backend a workspace is on, when it takes its memory, where that goes."""

import numpy as np
import pytest
from helpers.nd4j import where
from helpers.threads import in_thread

import ndx

# ---- the backend of a cycle, where none is given -----------------------------


@pytest.mark.parametrize(
    "config", [{"size": "4KiB"}, {}, {"learn": "liveness"}, {"reset": "ring"}]
)
@in_thread
def test_a_cycle_takes_the_backend_that_is_current(config):
    first = ndx.backends.get("host", limit="1MiB")
    second = ndx.backends.get("host", limit="1MiB")
    workspace = ndx.workspace("step", **config)
    for _ in range(3):
        for backend in (first, second):
            with ndx.use(backend), workspace:
                assert workspace.backend is backend
                x = ndx.ones(100)
                assert x.backend is ndx.current_backend() is backend
                with ndx.use(first), workspace:
                    # It goes on with its cycle.
                    assert ndx.ones(3).backend is backend
    # Both learned, and have an arena that is used again.
    assert workspace.stats()["spilled_count"] == 0
    assert workspace.stats()["cycles"] == 6
    held = [backend.stats()["allocated_bytes"] for backend in (first, second)]
    assert held[0] == held[1] == workspace.stats()["size"] // 2 > 0
    workspace.destroy()
    assert first.stats()["allocated_bytes"] == second.stats()["allocated_bytes"] == 0


@in_thread
def test_the_arenas_of_the_last_few_backends_are_kept():
    backends = [ndx.backends.get("host", limit="1MiB") for _ in range(8)]
    workspace = ndx.workspace("step", size="4KiB")
    for backend in backends:
        with ndx.use(backend), workspace:
            kept = np.asarray(ndx.ones(100))
    held = [backend.stats()["allocated_bytes"] for backend in backends]
    assert held == [0] * 4 + [4096] * 4
    assert kept.tolist() == [1.0] * 100


def test_a_decorated_function_computes_where_it_is_called():
    backend = ndx.backends.get("host", limit="1MiB")

    @ndx.workspace("decorated")
    def make():
        return ndx.current_backend(), ndx.ones(3)

    assert make()[0] is not backend
    with ndx.use(backend):
        found, x = make()
    assert found is x.backend is backend
    ndx.workspace("decorated").destroy()


@in_thread
def test_the_default_backend_is_followed_too():
    workspace = ndx.workspace("step", size="4KiB")
    before = ndx.current_backend()
    backend = ndx.backends.get("host", limit="1MiB")
    with workspace:
        pass
    ndx.set_default(backend)
    with workspace:
        assert ndx.ones(3).backend is backend
    ndx.set_default(before)
    with workspace:
        assert ndx.ones(3).backend is before


# ---- when its memory is taken ------------------------------------------------


@in_thread
def test_a_size_is_taken_by_the_first_cycle():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):

        @ndx.workspace("step", size="64KiB")
        def decorated():
            return ndx.workspace("step").stats()["size"]

        workspace = ndx.workspace("step")
        assert workspace.size == 65536
        assert workspace.stats()["size"] == backend.stats()["allocated_bytes"] == 0
        assert decorated() == 65536
        assert backend.stats()["allocated_bytes"] == workspace.size == 65536
        workspace.destroy()
        assert backend.stats()["allocated_bytes"] == workspace.size == 0


@pytest.mark.parametrize("config", [{}, {"reset": "ring", "slots": 3}])
@in_thread
def test_a_size_that_the_first_cycle_cannot_have(config):
    backend = ndx.backends.get("host", limit="1MiB")
    workspace = ndx.workspace("step", size="400KiB", **config)
    with ndx.use(backend):
        kept = ndx.zeros(700 * 1024, dtype="uint8")
        for _ in range(2):
            with pytest.raises(ndx.OutOfMemoryError), workspace:
                pass
            assert not workspace.is_open
            assert where() is None
            assert backend.stats()["allocated_count"] == 1
        if not config:
            del kept
            with workspace:
                assert ndx.ones(3).in_scope


@pytest.mark.parametrize("trim", [True, False])
@in_thread
def test_what_is_destroyed_goes_back_to_the_system(trim):
    backend = ndx.backends.get("host", limit="1GiB")
    with ndx.use(backend):
        with ndx.workspace("a", size="16MiB"):
            ndx.ones(2**20)
        with ndx.workspace("b", size="16MiB") as b:
            ndx.ones(2**20)
    assert backend.stats()["reserved_bytes"] >= 2**25
    b.destroy(trim=trim)
    assert (backend.stats()["reserved_bytes"] < 2**25) is trim
    ndx.memory.destroy_all(trim=trim)
    assert (backend.stats()["reserved_bytes"] == 0) is trim


# ---- the default config ------------------------------------------------------


@in_thread
def test_the_same_call_finds_it_after_the_default_has_changed():
    before = ndx.memory.default_workspace_config()
    workspace = ndx.workspace("step", size="1KiB")
    sized = ndx.WorkspaceConfig(size="1KiB")
    ndx.memory.default_workspace_config(ndx.WorkspaceConfig(escape="detach"))
    try:
        assert ndx.workspace("step", size="1KiB") is workspace
        assert ndx.workspace("step", config=sized) is workspace
        assert ndx.workspace("step") is workspace
        for other in ({"size": "2KiB"}, {"size": "1KiB", "escape": "detach"}):
            with pytest.raises(ndx.WorkspaceError, match="'step' exists with"):
                ndx.workspace("step", **other)
        assert ndx.workspace("new", size="1KiB").config.escape == "detach"
    finally:
        ndx.memory.default_workspace_config(before)


def test_cycles_on_all_backends_are_counted_after_destroy():
    workspace = ndx.workspace(size="1KiB", escape="detach")
    kept = []
    for limit in ("1MiB", "2MiB", "3MiB", "4MiB", "5MiB", "6MiB"):
        with ndx.use("host", limit=limit), workspace:
            kept.append(ndx.ones(3))
    counted = {"cycles": 6, "escaped_count": 6, "escaped_bytes": 6 * 24}
    for _ in range(2):
        stats = workspace.stats()
        assert {key: stats[key] for key in counted} == counted
        workspace.destroy()
    assert all(x.tolist() == [1.0] * 3 for x in kept)
