"""Memory that a workspace has before its first cycle."""

import numpy as np
import pytest

import ndx
from ndx.backends import HostBackend

MIB = 2**20


def test_a_workspace_reserves():
    with ndx.use(HostBackend(limit="64MiB")) as backend:
        ws = ndx.workspace("reserving", learn="first")
        ws.reserve("4MiB")
        assert ws.size == 4 * MIB
        with ws:
            x = ndx.ones(100_000)
            assert ws.stats()["spilled_bytes"] == 0
            x = ndx.ones(MIB)
            with pytest.raises(ndx.WorkspaceError, match="can't be enlarged while"):
                ws.reserve("8MiB")
        ws.reserve("1MiB")
        assert ws.size >= 4 * MIB
        # It is learned all the same what a cycle needs.
        with ws:
            x = ndx.ones(100_000)
            x = ndx.ones(MIB)
            assert ws.stats()["spilled_bytes"] == 0
        assert ws.size >= 8 * MIB
        size = ws.size
        with pytest.raises(ndx.OutOfMemoryError):
            ws.reserve("128MiB")
        assert ws.size == size
        with ws:
            x = ndx.ones(MIB)
            assert ws.stats()["spilled_bytes"] == 0
        del x
        ws.destroy()
        assert ws.size == 0
        bounded = ndx.workspace("bounded", max_size="1MiB")
        with pytest.raises(ValueError, match="whose max_size is 1048576"):
            bounded.reserve("2MiB")
        backend.trim()
        assert backend.stats()["allocated_bytes"] == 0


def test_each_slot_of_a_ring_reserves_or_none():
    with ndx.use(HostBackend(limit="8MiB")) as backend:
        ring = ndx.workspace("ring", reset="ring", slots=3, learn="none")
        ring.reserve(MIB)
        assert ring.size == 3 * MIB
        with pytest.raises(ndx.OutOfMemoryError):
            ring.reserve(3 * MIB)
        assert ring.size == 3 * MIB
        arrays = []
        for _ in range(5):
            with ring:
                arrays.append(ndx.ones(MIB // 16))
                assert ring.stats()["spilled_bytes"] == 0
        assert ring.size == 3 * MIB
        ring.reserve(2 * MIB)
        # The slots that are in use keep their memory until it is their turn.
        assert float(arrays[-1][0]) == 1
        for _ in range(5):
            with ring:
                x = ndx.ones(MIB // 8)
        assert ring.size >= 6 * MIB
        del x, arrays
        ring.destroy()
        assert backend.stats()["allocated_bytes"] == 0


def test_nothing_was_reserved_where_that_failed_the_first_time():
    with ndx.use(HostBackend(limit="4MiB")):
        ring = ndx.workspace("ring", reset="ring", slots=3)
        with pytest.raises(ndx.OutOfMemoryError):
            ring.reserve(2 * MIB)
        assert ring.size == 0
        for _ in range(4):
            with ring:
                x = ndx.ones(1000)
        # As ever, it has learned.
        assert 0 < ring.size < MIB
        del x
        ring.destroy()


def test_it_reserves_where_its_next_cycle_is():
    one, other = HostBackend(), HostBackend()
    ws = ndx.workspace("moving")
    with ndx.use(one), ws:
        x = ndx.ones(1000)
    with ndx.use(other):
        ws.reserve("2MiB")
        assert other.stats()["allocated_bytes"] == 2 * MIB
        with ws:
            x = ndx.ones(1000)
            assert ws.stats()["spilled_bytes"] == 0
            assert x.backend is other
    del x
    ws.destroy()
    assert one.stats()["allocated_bytes"] == other.stats()["allocated_bytes"] == 0


def test_a_fixed_size_grows_by_what_is_reserved():
    with ndx.use(HostBackend()):
        ws = ndx.workspace("fixed", size="1MiB", spill="fail")
        ws.reserve("4MiB")
        for _ in range(2):
            with ws:
                x = ndx.ones(MIB // 4)
                y = ndx.ones(MIB // 8)
        assert ws.size == 4 * MIB
        del x, y
        ws.destroy()


def test_a_workspace_in_a_file_reserves(tmp_path):
    path = tmp_path / "arena"
    ws = ndx.workspace("kept", path=path, size="1MiB")
    with ws:
        x = ndx.full(1000, 5.0)
        view = np.asarray(x)
    with pytest.raises(ndx.WorkspaceError, match="can't be enlarged"):
        ws.reserve("4MiB")
    assert view.sum() == 5000
    del view, x
    ws.reserve("4MiB")
    assert ws.size == 4 * MIB
    with ws:
        x = ndx.empty(1000)
        # What was there is there.
        assert float(x[0]) == 5
        del x
    ws.close()


def test_bad_reservations():
    ws = ndx.workspace("plain")
    for wrong in ("lots", -1, None, 1.5):
        with pytest.raises((ValueError, TypeError), match="nbytes"):
            ws.reserve(wrong)
    assert ws.size == 0
    ws.destroy()
