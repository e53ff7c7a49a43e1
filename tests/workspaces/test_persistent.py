"""Workspaces in a file: each cycle, and each process, finds what the last one left."""

import gc
import os
import signal
import threading

import numpy as np
import pytest
from helpers.commands import finish, run_python, start
from helpers.disks import open_files

import ndx
from ndx.testing import assert_equal

KIB = 1024


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.bin"


@pytest.fixture(autouse=True)
def _no_workspace_left():
    yield
    ndx.memory.destroy_all()


def is_mapped(path):
    with open("/proc/self/maps") as maps:
        return any(line.rstrip().endswith(str(path)) for line in maps)


def test_values_are_found_again_in_the_next_cycle(path):
    with ndx.workspace("state", path=path, size="1MB", learn="none"):
        x = ndx.full((100, 100), 10.0)
        ndx.full(7, 3)
    with pytest.raises(ndx.StaleArrayError):
        x + 1
    for _ in range(3):
        with ndx.workspace("state") as ws:
            assert_equal(ndx.empty((100, 100)), np.full((100, 100), 10.0))
            assert_equal(ndx.empty(7, dtype="int64"), np.full(7, 3))
    assert ws.stats()["total_spills"] == 0


def test_an_existing_file_without_a_size_is_used_as_long_as_it_is(path):
    """In ND4J such an arena was made, and never used."""
    content = np.arange(12_800, dtype="float64")[: 100_000 // 8]
    path.write_bytes(content.tobytes())
    with ndx.workspace("state", path=path) as ws:
        assert ws.size == 100_000 // 64 * 64
        x = ndx.empty(10_000)
        assert_equal(x, content[:10_000])
        x += 1
        assert ws.stats()["spilled_count"] == 0
        assert ws.stats()["offset"] == 80_000
    assert path.stat().st_size == 100_000
    found = np.fromfile(path)
    np.testing.assert_array_equal(found[:10_000], content[:10_000] + 1)
    np.testing.assert_array_equal(found[10_000:], content[10_000:])


PROGRAM = """
import sys, ndx
with ndx.workspace("state", path=sys.argv[1], size="64KiB") as ws:
    count, total = ndx.empty((), dtype="int64"), ndx.empty(100)
    count += 1
    total += ndx.arange(100.0)
    print(int(count), float(total[99]))
    if len(sys.argv) > 2:
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
"""


def program(*arguments):
    done = finish(start("-c", PROGRAM, *arguments))
    return done.returncode, done.stdout.strip() or done.stderr.strip()


def test_values_are_found_again_by_the_next_process(path):
    assert program(path) == (0, "1 99.0")
    assert program(path) == (0, "2 198.0")
    # What was written is in the file, also if the process is killed.
    assert program(path, "kill")[0] == -signal.SIGKILL
    assert program(path) == (0, "4 396.0")


def test_a_shorter_file_grows_and_keeps_its_content(path):
    path.write_bytes(b"\x07" * 1000)
    with ndx.workspace("state", path=path, size="10KiB") as ws:
        assert ws.size == 10 * KIB
        assert path.stat().st_size == 10 * KIB
        x = ndx.empty(10 * KIB, dtype="uint8")
        assert_equal(x[:1000], np.full(1000, 7, "uint8"))
        assert int(ndx.max(x[1000:])) == 0
    # No holes are left, which a full disk could not fill.
    assert path.stat().st_blocks * 512 >= 10 * KIB


def test_a_longer_file_is_used_in_whole_up_to_the_most(path):
    path.write_bytes(b"\x07" * 4096)
    with ndx.workspace("state", path=path, size=1024) as ws:
        assert ws.size == 4096
    ws.close()
    with ndx.workspace("state", path=path, size=1024, max_size=2000) as ws:
        assert ws.size == 1984
    assert path.read_bytes() == b"\x07" * 4096


def test_overflow_is_spilled_and_never_written_behind_the_file(path):
    """ND4J's #8864: more than the file has crashed the process."""
    with ndx.workspace("state", path=path, size="4KiB") as ws:
        x = ndx.full(300, 1.0)
        y = ndx.full(300, 2.0)
        z = ndx.full(100_000, 3.0)
        assert ws.stats()["spilled_count"] == 2
        assert [each.backend.name for each in (x, y, z)] == ["file", "host", "host"]
        assert float(ndx.sum(x) + ndx.sum(y) + ndx.sum(z)) == 300_900.0
    assert path.stat().st_size == 4096
    np.testing.assert_array_equal(np.fromfile(path)[:300], np.ones(300))


def test_overflow_may_be_refused(path):
    with ndx.workspace("state", path=path, size="4KiB", spill="fail"):
        x = ndx.full(300, 1.0)
        with pytest.raises(ndx.OutOfMemoryError, match="is full"):
            ndx.zeros(300)
        assert float(ndx.sum(x)) == 300.0


def test_overflow_may_let_the_file_grow(path):
    config = {"path": path, "size": "1KiB", "spill": "grow", "overallocation": 0}
    with ndx.workspace("state", **config) as ws:
        ndx.full(100, 1.0)
        ndx.full(1000, 2.0)
    assert ws.size == path.stat().st_size == 832 + 8000
    with ws:
        assert_equal(ndx.empty(100), np.ones(100))
        ndx.empty(1000)[...] = 2.0
        assert ws.stats()["spilled_count"] == 0
    with ws:
        assert_equal(ndx.empty(100), np.ones(100))
        assert_equal(ndx.empty(1000), np.full(1000, 2.0))
    ws.close()
    # The next one takes the file as it has become.
    with ndx.workspace("state", **config) as ws:
        assert ws.size == 8832
        ndx.empty(100)
        assert_equal(ndx.empty(1000), np.full(1000, 2.0))


def test_it_does_not_grow_under_a_view(path):
    with ndx.workspace("state", path=path, size="1KiB", spill="grow") as ws:
        x = ndx.full(100, 1.0)
        view = np.asarray(x)
        ndx.full(1000, 2.0)
    assert ws.size == KIB
    np.testing.assert_array_equal(view, np.ones(100))
    with pytest.raises(ndx.WorkspaceError, match=r"can't be entered.*view"):
        ws.__enter__()
    del view
    with ws:
        assert ws.size > 8000
        assert_equal(ndx.empty(100), np.ones(100))


@pytest.mark.parametrize("debug", [False, True])
def test_nothing_but_arrays_writes_to_it(path, debug):
    """Neither patterns nor zeros, and debug mode has the same places."""
    values = np.arange(1, 51, dtype="float64")
    with ndx.workspace("state", path=path, size="4KiB", debug=debug) as ws:
        x = ndx.asarray(values, copy=True)
        ndx.asarray(values[:3], copy=True)
    assert path.read_bytes()[:400] == values.tobytes()
    assert path.read_bytes()[448:472] == values[:3].tobytes()
    assert not any(path.read_bytes()[400:448] + path.read_bytes()[472:])
    with ws:
        assert_equal(ndx.empty(50), values)
        assert_equal(ndx.empty(3), values[:3])
    ws.destroy()
    assert path.read_bytes()[:400] == values.tobytes()
    with ndx.workspace("state", path=path, debug=not debug):
        assert_equal(ndx.empty(50), values)
        assert_equal(ndx.empty(3), values[:3])
    if debug:
        with pytest.raises(ndx.StaleArrayError, match=os.path.basename(__file__)):
            x + 1


def test_zeros_are_zeros(path):
    path.write_bytes(b"\x07" * 4096)
    with ndx.workspace("state", path=path):
        x = ndx.zeros(100)
        with ndx.no_workspace():
            assert float(ndx.sum(x)) == 0.0
    assert path.read_bytes() == bytes(800) + b"\x07" * 3296


# ------------------------------------------------------------------ letting go of it


def test_close_unmaps_so_that_the_file_can_go(path):
    """ND4J's #8869: the file stayed locked after the scope."""
    with ndx.workspace("state", path=path, size="4KiB") as ws:
        ndx.zeros(3)
    assert is_mapped(path)
    assert open_files(path.parent) == 1
    ws.close()
    assert not is_mapped(path)
    assert open_files(path.parent) == 0
    with pytest.raises(ndx.WorkspaceError, match="in no file"):
        ws.flush()
    path.unlink()
    with ndx.workspace("state", path=path, size="4KiB") as ws:
        assert float(ndx.sum(ndx.empty(512))) == 0.0


def test_close_refuses_while_open_or_read(path):
    with ndx.workspace("state", path=path, size="4KiB") as ws:
        view = np.asarray(ndx.full(3, 5.0))
        with pytest.raises(ndx.WorkspaceError, match="while a scope of it is open"):
            ws.close()
    with pytest.raises(BufferError, match="view"):
        ws.close()
    assert is_mapped(path)
    np.testing.assert_array_equal(view, [5.0, 5.0, 5.0])
    del view
    ws.close()
    assert not is_mapped(path)


def test_destroy_leaves_views_what_they_read(path):
    with ndx.workspace("state", path=path, size="4KiB") as ws:
        view = np.asarray(ndx.full(3, 5.0))
    ws.destroy()
    assert is_mapped(path)
    np.testing.assert_array_equal(view, [5.0, 5.0, 5.0])
    with pytest.raises(ndx.WorkspaceError, match="still read"):
        ws.__enter__()
    with pytest.raises(ndx.WorkspaceError, match="in use by another"):
        ndx.workspace("state", path=path, size="4KiB")
    del view
    assert not is_mapped(path)
    assert open_files(path.parent) == 0
    with ws:
        assert_equal(ndx.empty(3), [5.0, 5.0, 5.0])
    ws.close()


def test_the_last_reference_lets_go(path):
    ws = ndx.workspace(path=path, size="4KiB")
    with ws:
        ndx.zeros(3)
    assert is_mapped(path)
    del ws
    gc.collect()
    assert not is_mapped(path)
    with ndx.workspace(path=path):
        pass


def test_arrays_may_leave_it(path):
    with ndx.workspace("state", path=path, size="4KiB", escape="detach") as ws:
        x = ndx.full(3, 5.0)
    with ws:
        ndx.zeros(3)
    assert_equal(x, [5.0, 5.0, 5.0])
    assert x.backend.name == "host"


# -------------------------------------------------------------- whose the file is


def test_two_workspaces_can_not_have_one_file(path):
    ws = ndx.workspace("state", path=path, size="4KiB")
    with ws:
        ndx.full(3, 5.0)
    link = path.with_name("link")
    link.symlink_to(path)
    for other in (path, link):
        with pytest.raises(ndx.WorkspaceError, match="in use by another workspace"):
            ndx.workspace("another", path=other)
    code, words = program(path)
    assert code == 1
    assert "in use by another workspace" in words
    with pytest.raises(ndx.WorkspaceError, match="exists with"):
        ndx.workspace("state", path=path.with_name("other"), size="4KiB")
    assert ndx.workspace("state", path=path, size="4KiB") is ws
    with ws:
        assert_equal(ndx.empty(3), [5.0, 5.0, 5.0])
    ws.close()
    assert ndx.workspace("another", path=path).size == 4096


@pytest.mark.threads
def test_another_thread_is_another_workspace(path):
    ws = ndx.workspace("state", path=path, size="4KiB")
    caught = []

    def work():
        try:
            ndx.workspace("state", path=path, size="4KiB")
        except ndx.WorkspaceError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "in use" in str(caught[0])
    ws.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_is_refused(path):
    with ndx.workspace("state", path=path, size="4KiB") as ws:
        ndx.full(3, 5.0)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            ws.__enter__()
            os.write(write, b"entered")
        except ndx.WorkspaceError as error:
            os.write(write, str(error).encode())
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(write)
    with open(read) as pipe:
        assert f"belongs to the workspace of process {os.getpid()}" in pipe.read()
    # The lock is still ours.
    with pytest.raises(ndx.WorkspaceError):
        ndx.workspace("another", path=path)
    with ws:
        assert_equal(ndx.empty(3), [5.0, 5.0, 5.0])


# ------------------------------------------------------------------- what is refused


def test_what_is_no_file_for_a_workspace(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "empty").touch()
    before = sorted(os.listdir(tmp_path))
    refused = [
        ({"path": tmp_path / "none"}, FileNotFoundError, "give a size="),
        ({"path": tmp_path / "empty"}, ValueError, "has 0 bytes"),
        ({"path": tmp_path / "none" / "x", "size": 64}, FileNotFoundError, "none"),
        ({"path": tmp_path, "size": 64}, IsADirectoryError, "directory"),
        ({"path": fifo, "size": 64}, OSError, "not a regular file"),
        ({"path": 7}, TypeError, "int"),
        ({"path": "x", "size": 64, "reset": "ring"}, ValueError, "reset='ring'"),
        ({"path": "x", "learn": "liveness"}, ValueError, "learn='liveness'"),
        ({"path": tmp_path / "x", "size": 2**62}, OSError, "asked for"),
    ]
    for policies, error, words in refused:
        with pytest.raises(error, match=words):
            ndx.workspace("refused", **policies)
    assert sorted(os.listdir(tmp_path)) == before
    assert open_files(tmp_path) == 0
    assert "refused" not in [each.name for each in ndx.memory.workspaces()]


def test_the_config_has_an_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = ndx.WorkspaceConfig(path="state.bin", size=64)
    assert config.path == str(tmp_path / "state.bin")
    assert config == ndx.WorkspaceConfig(path=tmp_path / "state.bin", size=64)
    assert "state.bin" in repr(config)
    assert ndx.WorkspaceConfig(path="x", learn="none", spill="fail").size == 0


def test_in_the_mode_bypass_no_file_is_touched(path):
    ndx.memory.debug_mode("bypass")
    try:
        with ndx.workspace("state", path=path, size="4KiB") as ws:
            ndx.zeros(3)
        assert not path.exists()
        with pytest.raises(ndx.WorkspaceError, match="in no file"):
            ws.flush()
    finally:
        ndx.memory.debug_mode("off")


# ------------------------------------------------------------------- flush, and loss


def test_flush_of_the_workspace_and_of_its_arrays(path):
    with ndx.workspace("state", path=path, size="4KiB") as ws:
        x = ndx.full(3, 5.0)
        ws.flush()
        x[1:].flush()
        spilled = ndx.zeros(1000)
        for way in (spilled.flush, spilled.commit, x.commit):
            with pytest.raises(ValueError, match=r"can't be"):
                way()
    ws.flush()
    with ndx.workspace(size="1KiB") as plain, pytest.raises(ndx.WorkspaceError):
        plain.flush()


def test_a_file_cut_short_is_an_error_and_no_signal(path):
    with ndx.workspace("state", path=path, size="64KiB") as ws:
        x = ndx.full(8000, 1.0)
        other = ndx.ones(1000).detach()
        os.truncate(path, 100)
        with pytest.raises(ndx.MappedFileError) as caught:
            ndx.sum(x)
        assert caught.value.filename == str(path)
        with pytest.raises(ndx.MappedFileError):
            ws.flush()
        with pytest.raises(ndx.MappedFileError):
            x.flush()
        with ndx.no_workspace():
            assert float(ndx.sum(other)) == 1000.0
    assert path.stat().st_size == 100
    ws.close()
    assert not is_mapped(path)
    with ndx.workspace("state", path=path, size="64KiB"):
        assert float(ndx.sum(ndx.empty(8000))) == 12.0


def test_larger_than_4_gib(path):
    """ND4J's #5150, of a file whose space is there."""
    size = 5 << 30
    free = os.statvfs(path.parent)
    if free.f_bavail * free.f_frsize < size + (2 << 30):
        pytest.skip("no 7 GiB of free disk")
    with ndx.workspace("state", path=path, size=size) as ws:
        x = ndx.empty(size - 64, dtype="uint8")
        x[-1] = 9
        y = ndx.empty(8)
        y[...] = 5.0
        assert ws.stats()["spilled_count"] == 0
    with ws:
        x, y = ndx.empty(size - 64, dtype="uint8"), ndx.empty(8)
        # Before elements are taken, which are arrays of their own.
        assert_equal(y, np.full(8, 5.0))
        assert int(x[-1]) == 9
    ws.close()
    path.unlink()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_that_was_forked_in_the_scope_changes_nothing(tmp_path):
    code = """
import os, sys, ndx
path = sys.argv[1]
with ndx.workspace("state", path=path, size="1MiB") as ws:
    a = ndx.full(1000, 1.0)
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.read(read, 1)
        ndx.full(1000, 666.0)
        a += 54
        os._exit(0)
    b = ndx.full(1000, 3.0)
    os.write(write, b"x")
    os.waitpid(pid, 0)
    print(float(a[0]), float(b[0]))
ws.close()
with ndx.workspace("again", path=path) as ws:
    a, b = ndx.empty(1000), ndx.empty(1000)
    print(float(a[0]), float(b[0]))
"""
    assert run_python(code, tmp_path / "state.bin").split() == ["1.0", "3.0"] * 2


def test_exit_within_the_scope(tmp_path):
    code = """
import contextlib, logging, sys, ndx
stack = contextlib.ExitStack()
stack.enter_context(ndx.workspace("e", path=sys.argv[1], size="64KiB"))
y = ndx.ones(5)
class Handler(logging.Handler):
    def emit(self, record): print(y)
logging.getLogger().addHandler(Handler())
"""
    assert run_python(code, tmp_path / "e.bin") == ""
