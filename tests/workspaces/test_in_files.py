"""Workspaces whose arenas are files, and host ones that spill to files."""

import numpy as np
import pytest
from helpers.pools import check

import ndx
from ndx.backends import MmapBackend

MIB = 2**20
POLICIES = [
    {"size": "1MiB"},
    {"learn": "first"},
    {"learn": "over-time", "cycles": 2},
    {"learn": "liveness"},
    {"learn": "none", "size": "64KiB", "spill": "external"},
    {"size": "64KiB", "spill": "grow"},
    {"reset": "ring", "slots": 3, "size": "1MiB"},
    {"escape": "detach", "size": "1MiB"},
    {"debug": True, "size": "1MiB"},
]


@pytest.fixture
def backend(tmp_path):
    made = MmapBackend(directory=tmp_path)
    yield made
    check(made)


def work(n):
    """Return sums of arrays made in the workspace; of a few sizes each cycle."""
    x = ndx.ones(20_000)
    y = x * n + 1
    z = ndx.zeros(1000)
    return float(ndx.sum(y)), float(ndx.sum(z)), x, y


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_every_policy(backend, policy):
    workspace = ndx.workspace("files", backend=backend, **policy)
    for n in range(6):
        with workspace:
            total, nothing, x, y = work(n)
            assert x.backend is backend
        assert (total, nothing) == (20_000 * (n + 1), 0)
        if policy.get("escape") == "detach":
            assert float(ndx.sum(y)) == total
            assert not y.attached
        elif policy.get("reset") != "ring":
            with pytest.raises(ndx.StaleArrayError):
                y + 1
        del x, y
    if policy.get("learn") != "none":
        assert workspace.stats()["spilled_count"] == 0
    # Nothing but the arena is held, and no cycle takes more.
    held = backend.stats()["allocated_bytes"]
    for n in range(20):
        with workspace:
            work(n)
    assert backend.stats()["allocated_bytes"] <= held
    workspace.destroy()


def test_what_leaves_and_what_foreign_code_reads(backend):
    kept = []
    with ndx.workspace("files", backend=backend, size="1MiB") as workspace:
        x = ndx.ones(1000)
        out = x.detach()
        kept.append(np.asarray(x[:10]))
    for n in range(50):
        with workspace:
            ndx.full(1000, float(n))
            kept.append(np.asarray(ndx.full(10, float(n))))
    assert float(ndx.sum(out)) == 1000
    assert kept[0].tolist() == [1.0] * 10
    assert [float(view[0]) for view in kept[1:]] == [float(n) for n in range(50)]
    kept.clear()
    workspace.destroy()


def test_a_host_workspace_spills_to_files():
    mmap = ndx.backends.get("mmap")
    before = mmap.stats()["total_allocations"]
    with ndx.workspace("spills", size="64KiB", spill="mmap") as workspace:
        x = ndx.ones(1000)
        y = ndx.ones(100_000)
        assert x.backend.name == "host"
        assert y.backend is mmap
        z = y + 1
        assert z.backend is mmap
    assert workspace.stats()["spilled_count"] == 2
    assert mmap.stats()["total_allocations"] == before + 2
    for array in (x, y, z):
        with pytest.raises(ndx.StaleArrayError):
            array + 1
    with workspace:
        kept = ndx.ones(100_000).detach()
    assert float(ndx.sum(kept)) == 100_000
    workspace.destroy()


def test_spilling_to_files_waits_until_a_size_is_learned():
    with ndx.workspace("learns", spill="mmap") as workspace:
        assert ndx.ones(1000).backend.name == "host"
    with workspace:
        assert ndx.ones(1000).backend.name == "host"
        assert ndx.ones(10_000).backend.name == "mmap"
    workspace.destroy()
    with pytest.raises(ValueError, match="spill='mmap' is not valid with learn='none'"):
        ndx.WorkspaceConfig(spill="mmap", learn="none")


def test_the_scope_may_outlive_its_disk_space(small_disk):
    # An arena that no longer fits the disk spills, and the cycle goes on.
    with ndx.use("mmap", directory=small_disk(2 * MIB), fallback="host"):
        for n in (10_000, 100_000, 200_000, 10_000):
            with ndx.workspace("tight", spill="grow"):
                x = ndx.ones(n)
                assert float(ndx.sum(x + 1)) == 2 * n
        ndx.workspace("tight").destroy()
