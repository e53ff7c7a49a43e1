"""The file of a workspace: who has it, when others take it at the same time."""

import os
import signal

import pytest

import ndx
from ndx.backends import persistent_file
from ndx.testing import assert_equal

pytestmark = pytest.mark.skipif(
    persistent_file.flock is None, reason="this system has no flock"
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.bin"


@pytest.fixture(autouse=True)
def _no_workspace_left():
    yield
    ndx.memory.destroy_all()


@pytest.fixture
def before_the_lock(monkeypatch):
    """Call a function once, between a file's opening and its lock."""
    flock = persistent_file.flock
    todo = []

    def late(fd, how):
        while todo:
            todo.pop()()
        return flock(fd, how)

    monkeypatch.setattr(persistent_file, "flock", late)
    return todo.append


def test_who_comes_second_leaves_the_file_of_who_was_first(path, before_the_lock):
    first = []
    before_the_lock(
        lambda: first.append(ndx.workspace("first", path=path, size="4KiB"))
    )
    with pytest.raises(ndx.WorkspaceError, match="in use by another workspace"):
        ndx.workspace("second", path=path, size="4KiB")
    with first[0]:
        ndx.full(3, 5.0)
    first[0].close()
    with ndx.workspace("third", path=path):
        assert_equal(ndx.empty(3), [5.0, 5.0, 5.0])


@pytest.mark.parametrize("exists", [False, True])
def test_a_file_that_is_deleted_before_its_lock_is_made_again(
    path, before_the_lock, exists
):
    if exists:
        path.write_bytes(b"old" * 1000)
    before_the_lock(path.unlink)
    with ndx.workspace("state", path=path, size="4KiB") as ws:
        assert_equal(ndx.empty(3), [0.0] * 3)
        ndx.full(3, 5.0)
    ws.flush()
    assert path.stat().st_size == 4096


def test_a_file_that_is_replaced_before_its_lock_is_that_at_the_path(
    path, before_the_lock
):
    path.write_bytes(b"old" * 1000)
    other = path.with_name("other")
    other.write_bytes(bytes(8192))
    before_the_lock(lambda: other.replace(path))
    assert ndx.workspace("state", path=path).size == 8192


def test_what_is_deleted_before_its_lock_is_not_made_without_a_size(
    path, before_the_lock
):
    path.write_bytes(bytes(4096))
    before_the_lock(path.unlink)
    with pytest.raises(FileNotFoundError, match="give a size="):
        ndx.workspace("state", path=path)
    assert not path.exists()


@pytest.mark.parametrize("exists", [False, True])
def test_only_a_file_that_was_made_goes_when_there_is_no_space(
    path, monkeypatch, exists
):
    def full(fd, nbytes):
        raise OSError(28, "No space left on device")

    if exists:
        path.touch()
    monkeypatch.setattr(persistent_file, "reserve", full)
    with pytest.raises(OSError, match="No space left"):
        ndx.workspace("state", path=path, size="4KiB")
    assert path.exists() == exists
    monkeypatch.undo()
    assert ndx.workspace("state", path=path, size="4KiB").size == 4096


@pytest.fixture
def fork():
    """Return a function that runs another in a child, which then waits for its end."""
    children = []

    def start(work=lambda: None):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                work()
                os.write(write, b"done")
                signal.pause()
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        children.append(child)
        os.close(write)
        with open(read, "rb", buffering=0) as pipe:
            assert pipe.read(4) == b"done"

    yield start
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("way", ["close", "read", "drop"])
def test_a_closed_file_is_free_while_a_forked_child_lives(path, fork, way):
    ws = ndx.workspace(path=path, size="4KiB")
    with ws:
        view = ndx.full(3, 5.0)
        view = view.__array__() if way == "read" else None
    fork()
    if way == "close":
        ws.close()
    elif way == "read":
        ws.destroy()
        with pytest.raises(ndx.WorkspaceError, match="in use"):
            ndx.workspace(path=path)
    del ws, view
    with ndx.workspace(path=path):
        assert_equal(ndx.empty(3), [5.0, 5.0, 5.0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_closes_leaves_the_lock_to_its_parent(path, fork):
    ws = ndx.workspace(path=path, size="4KiB")
    fork(ws.close)
    with pytest.raises(ndx.WorkspaceError, match="in use by another workspace"):
        ndx.workspace(path=path)
    with ws:
        ndx.full(3, 5.0)
