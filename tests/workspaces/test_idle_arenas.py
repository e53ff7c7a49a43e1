"""Arenas of closed workspaces go back by themselves: the option `idle_release`."""

import time

import pytest
from helpers.commands import run_python
from helpers.threads import wait_until

import ndx
from ndx.backends import HostBackend
from ndx.backends._pressure import release_old_arenas
from ndx.backends.adaptors import LimitingAdaptor

pytestmark = pytest.mark.threads
MIB = 1 << 20


def cycle(workspace, nbytes=4 * MIB):
    with workspace:
        return memoryview(ndx.ones(nbytes, dtype="uint8"))


def is_empty(workspace):
    """Whether no arena has memory: between two steps of Python they may go back."""
    return lambda: workspace.stats()["size"] == 0


@pytest.mark.parametrize("adapted", [False, True])
@pytest.mark.parametrize("policies", [{}, {"learn": "liveness"}, {"size": "5MiB"}])
def test_an_arena_goes_back_and_its_memory_then_too(policies, adapted):
    pool = HostBackend(idle_release=0.05)
    backend = LimitingAdaptor(pool, "1GiB") if adapted else pool
    workspace = ndx.workspace(backend=backend, **policies)
    for _ in range(4):
        cycle(workspace).release()
        size = workspace.stats()["size"]
    assert size >= 4 * MIB
    if adapted:
        # What is under an adaptor is known when the arenas are looked at.
        wait_for_a_look(workspace)
    wait_until(is_empty(workspace))
    wait_until(lambda: pool.stats()["reserved_bytes"] <= MIB)
    # The next cycle has an arena of the size that was learned.
    cycle(workspace)
    assert workspace.stats()["size"] == size
    assert workspace.stats()["spilled_count"] == 0


def wait_for_a_look(workspace):
    """Look by hand: the first one after the usual time would come in half a minute."""
    wait_until(lambda: release_old_arenas(time.monotonic_ns() // 10**6) is None or
               workspace.stats()["size"] == 0)  # fmt: skip


def test_an_arena_in_use_stays():
    backend = HostBackend(idle_release=0.02)
    used, closed, pinned = (
        ndx.workspace(size="5MiB", backend=backend) for _ in range(3)
    )
    cycle(pinned)
    view = cycle(pinned)
    with used:
        x = ndx.ones(4 * MIB, dtype="uint8")
        cycle(closed)
        cycle(closed)
        wait_until(is_empty(closed))
        assert used.stats()["size"] > 0
        assert int(ndx.sum(x, dtype="int64")) == 4 * MIB
    assert bytes(view[:3]) == b"\1\1\1"
    assert pinned.stats()["size"] > 0
    view.release()
    wait_until(is_empty(pinned))


def test_none_keeps_arenas():
    backend = HostBackend(idle_release=None)
    kept = ndx.workspace(backend=backend)
    cycle(kept)
    size = kept.stats()["size"]
    release_old_arenas(0)
    release_old_arenas(10**15)
    assert kept.stats()["size"] == size > 0


def test_cycles_count_from_the_last_look():
    backend = HostBackend(idle_release=1000)
    workspace = ndx.workspace(backend=backend)
    cycle(workspace)
    now = 10**12
    assert release_old_arenas(now) <= 10**6
    release_old_arenas(now + 999_999)
    assert not is_empty(workspace)()
    cycle(workspace)
    release_old_arenas(now + 10**6)
    release_old_arenas(now + 2 * 10**6 - 1)
    assert not is_empty(workspace)()
    release_old_arenas(now + 2 * 10**6)
    assert is_empty(workspace)()


@pytest.mark.parametrize("thread", ["0", "1"])
def test_requests_ask_where_there_is_no_thread(thread):
    """And a process that ends meanwhile ends as always."""
    run_python(
        "import time, ndx\n"
        "backend = ndx.backends.HostBackend(idle_release=0.02)\n"
        "workspace = ndx.workspace(backend=backend)\n"
        "for _ in range(2):\n"
        "    with workspace:\n"
        "        ndx.ones(4 << 20, dtype='uint8')\n"
        "end = time.monotonic() + 30\n"
        "while workspace.stats()['size'] and time.monotonic() < end:\n"
        "    ndx.empty(1000)\n"
        "    time.sleep(0.001)  # before 3.13 only who takes the GIL sees what is due\n"
        "assert not workspace.stats()['size']\n"
        "with workspace:\n"
        "    ndx.ones(4 << 20, dtype='uint8')\n",
        environment={"NDX_IDLE_THREAD": thread},
    )
