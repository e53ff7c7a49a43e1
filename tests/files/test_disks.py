"""Disks that are full, read-only, gone or broken: errors that name the file."""

import errno
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.disks import breakable, build_shim

import ndx
from ndx.testing import assert_equal

MIB = 1 << 20


@pytest.fixture
def disk(small_disk):
    return small_disk(MIB)


@pytest.fixture
def old(disk):
    """A file that is there before."""
    path = disk / "x.npy"
    ndx.save(path, ndx.arange(1000.0))
    return path


def unchanged(path, *others):
    assert_equal(ndx.load(path), np.arange(1000.0))
    assert sorted(os.listdir(path.parent)) == sorted(["x.npy", *others])


def refused(way, path, *codes):
    """Check that a call is refused with one of some errors, which names the file."""
    with pytest.raises(OSError, match=path.name) as caught:
        way()
    assert caught.value.filename == str(path)
    assert caught.value.errno in (codes or (errno.ENOSPC,))
    return caught.value


# --------------------------------------------------------------------- a full disk


def test_save_on_a_full_disk(disk, old):
    big = ndx.zeros(MIB)
    for x in (big, ndx.reshape(big, (1024, 1024))[:, ::2]):
        refused(lambda x=x: ndx.save(old, x), old)
        unchanged(old)
        refused(lambda x=x: ndx.save(disk / "new.npy", x), disk / "new.npy")
        unchanged(old)
    ndx.save(disk / "new.npy", ndx.ones(10))
    unchanged(old, "new.npy")


def test_new_files_on_a_full_disk(disk, old):
    """Before anything is mapped: to write to it can't fail later."""
    refused(lambda: ndx.open(old, "w+", shape=MIB), old)
    unchanged(old)
    x = ndx.open(disk / "new.npy", "w+", shape=50_000)
    refused(lambda: ndx.open(disk / "more.npy", "w+", shape=100_000), disk / "more.npy")
    x[...] = 1.0
    x.flush()
    unchanged(old, "new.npy")


def test_holes_on_a_full_disk(disk):
    """A file of holes: r+ reserves what it may have to write, so no signal comes."""
    path = disk / "x.npy"
    header = ndx._files.npy.make_header((MIB,), np.dtype("float64"), False)
    path.write_bytes(header + np.arange(10.0).tobytes())
    os.truncate(path, len(header) + 8 * MIB)
    before = path.read_bytes()[:4096]
    assert "holes" in str(refused(lambda: ndx.open(path, "r+"), path))
    assert path.stat().st_size == len(header) + 8 * MIB
    assert path.read_bytes()[:4096] == before
    for mode in ("r", "c"):
        x = ndx.open(path, mode)
        assert_equal(x[:10], np.arange(10.0))
        assert float(x[-1]) == 0.0
    x[:10] += 1
    refused(x.commit, path)
    assert_equal(x[:10], np.arange(10.0) + 1)
    assert path.read_bytes()[:4096] == before
    # Holes that are only read take space, too, in a file system in memory.
    with pytest.raises(ndx.MappedFileError, match="full"):
        ndx.sum(x)


def test_commit_on_a_full_disk_can_be_tried_again(disk, old):
    filler = disk / "filler"
    x = ndx.open(old, "c")
    x += 1
    with open(filler, "wb") as file:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        os.posix_fallocate(file.fileno(), 0, free)
    refused(x.commit, old)
    assert_equal(ndx.load(old), np.arange(1000.0))
    assert_equal(x, np.arange(1000.0) + 1)
    filler.unlink()
    x.commit()
    assert_equal(ndx.load(old), np.arange(1000.0) + 1)


def test_workspaces_on_a_full_disk(disk, old):
    path = disk / "state.bin"
    refused(lambda: ndx.workspace(path=path, size="2MiB"), path)
    unchanged(old)
    path.write_bytes(b"\x07" * 100)
    refused(lambda: ndx.workspace(path=path, size="2MiB"), path)
    assert path.read_bytes()[:100] == b"\x07" * 100
    unchanged(old, "state.bin")


def test_a_workspace_that_can_not_grow_keeps_what_it_has(disk):
    with ndx.workspace(path=disk / "state.bin", size="4KiB", spill="grow") as ws:
        ndx.full(100, 5.0)
        ndx.zeros(MIB)
    for _ in range(3):
        with ws:
            assert_equal(ndx.empty(100), np.full(100, 5.0))
            assert ws.size == 4096
            ndx.zeros(MIB)
    ws.close()


def test_a_limit_of_the_process_is_like_a_full_disk(tmp_path):
    """Without being root: ``ulimit -f``."""
    run_python(
        """
import errno, os, resource, sys, ndx
path = sys.argv[1]
ndx.save(path, ndx.arange(1000.0))
before = open(path, "rb").read()
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for way in (
    lambda: ndx.save(path, ndx.zeros(100_000)),
    lambda: ndx.save(path, ndx.zeros((1000, 200))[:, ::2]),
    lambda: ndx.open(path, "w+", shape=100_000),
    lambda: ndx.workspace(path=path + ".bin", size="1MiB"),
):
    try:
        way()
        raise SystemExit("not refused")
    except OSError as error:
        assert error.errno == errno.EFBIG, error
        assert error.filename.startswith(path)
    assert open(path, "rb").read() == before
    assert os.listdir(os.path.dirname(path)) == ["x.npy"]
ndx.save(path, ndx.ones(10))
""",
        tmp_path / "x.npy",
    )


# -------------------------------------------------- read-only, gone, not permitted


def test_a_read_only_disk(disk, old):
    state = disk / "state.bin"
    state.write_bytes(bytes(4096))
    x = ndx.open(old, "c")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    for way in (
        lambda: ndx.save(old, ndx.ones(3)),
        lambda: ndx.open(old, "w+", shape=3),
        lambda: ndx.open(old, "r+"),
        x.commit,
    ):
        refused(way, old, errno.EROFS)
    refused(lambda: ndx.workspace(path=state), state, errno.EROFS)
    x += 1
    assert_equal(x, np.arange(1000.0) + 1)
    assert_equal(ndx.open(old), np.arange(1000.0))
    unchanged(old, "state.bin")


def test_a_folder_that_is_gone(tmp_path):
    path = tmp_path / "folder" / "x.npy"
    path.parent.mkdir()
    ndx.save(path, ndx.arange(1000.0))
    private, shared = ndx.open(path, "c"), ndx.open(path, "r+")
    with ndx.workspace(path=path.with_name("state.bin"), size="4KiB") as ws:
        x = ndx.full(3, 5.0)
        private[...] = ndx.arange(1000.0)
        shutil.rmtree(path.parent)
        for way in (
            private.commit,
            lambda: ndx.save(path, private),
            lambda: ndx.open(path, "w+", shape=3),
            lambda: ndx.load(path),
        ):
            refused(way, path, errno.ENOENT)
        # What is mapped stays, until it is closed.
        shared += 1
        shared.flush()
        ws.flush()
        assert_equal(private, np.arange(1000.0))
        assert_equal(shared, np.arange(1000.0) + 1)
        assert_equal(x, [5.0, 5.0, 5.0])
    ws.close()


@pytest.fixture
def open_folder():
    """A folder that other users can reach, as those of pytest are not."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_what_is_not_permitted(open_folder):
    """As another user, where the tests run as root."""
    tmp_path = open_folder
    folder = tmp_path / "folder"
    folder.mkdir()
    ndx.save(folder / "secret.npy", ndx.ones(3))
    ndx.save(folder / "x.npy", ndx.ones(3))
    ndx.save(tmp_path / "mine.npy", ndx.ones(3))
    (folder / "secret.npy").chmod(0)
    (folder / "x.npy").chmod(0o444)
    (tmp_path / "mine.npy").chmod(0o444)
    before = sorted(os.listdir(folder))
    user = os.getuid() or 65534
    if not os.getuid():
        for path in (tmp_path, folder, *folder.iterdir(), tmp_path / "mine.npy"):
            os.chown(path, user, user)
    folder.chmod(0o555)
    run_python(
        """
import errno, os, sys, ndx
folder, user = sys.argv[1], int(sys.argv[2])
if not os.getuid():
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
x = ndx.open(folder + "/x.npy", "c")
for name, way in [
    ("secret.npy", ndx.load),
    ("secret.npy", ndx.open),
    ("x.npy", lambda path: ndx.open(path, "r+")),
    ("x.npy", lambda path: ndx.save(path, ndx.ones(3))),
    ("x.npy", lambda path: ndx.open(path, "w+", shape=3)),
    ("x.npy", lambda path: x.commit()),
    ("new.npy", lambda path: ndx.save(path, ndx.ones(3))),
    ("new.bin", lambda path: ndx.workspace(path=path, size=64)),
    # The folder lets it be replaced, but the file itself says no.
    ("../mine.npy", lambda path: ndx.save(path, ndx.zeros(3))),
]:
    path = os.path.normpath(os.path.join(folder, name))
    try:
        way(path)
        raise SystemExit(f"{name} was not refused")
    except PermissionError as error:
        assert error.filename == path, error
assert float(ndx.sum(x)) == 3.0
assert float(ndx.sum(ndx.open(folder + "/../mine.npy"))) == 3.0
""",
        folder,
        user,
    )
    folder.chmod(0o755)
    assert sorted(os.listdir(folder)) == before
    assert sorted(os.listdir(tmp_path)) == ["folder", "mine.npy"]


# -------------------------------------------------------------------- a broken disk

BROKEN = """
import errno, os, sys, ndx
path = sys.argv[1]
folder = os.path.dirname(path)

def expect(call, way, words, code=errno.EIO):
    os.environ["NDX_FAILS"] = call
    try:
        way()
    except OSError as error:
        assert error.errno == code and error.filename == path, repr(error)
        assert words in str(error), str(error)
    else:
        raise SystemExit(f"{call}: no error")
    finally:
        del os.environ["NDX_FAILS"]
    assert os.listdir(folder) == ["x.npy"], os.listdir(folder)

def whole(*values):
    assert ndx.load(path).tolist() in [[value] * 1000 for value in values]

ndx.save(path, ndx.zeros(1000))
private, shared = ndx.open(path, "c"), ndx.open(path, "r+")
private += 1
for call in ("write", "fsync", "posix_fallocate"):
    expect(call, lambda: ndx.save(path, ndx.ones(1000)), "is as it was")
    expect(call, private.commit, "is as it was")
    if call != "write":
        expect(call, lambda: ndx.open(path, "w+", shape=3), "is as it was")
    whole(0.0)
    assert float(ndx.sum(private)) == 1000.0
expect("posix_fallocate", lambda: ndx.open(path, "r+"), "holes")
for call in ("msync", "fsync"):
    expect(call, shared.flush, "may not be on disk")
shared.flush()
for x in (private, ndx.zeros(1000)):
    way = private.commit if x is private else lambda: ndx.save(path, x)
    expect("fsync of the folder", way, "was replaced")
    whole(float(x[0]))
private += 1
private.commit()
whole(2.0)
expect("read", lambda: ndx.load(path), "")

# Where a file system can't reserve, nothing else changes.
os.environ["NDX_FAILS"] = "support of posix_fallocate"
ndx.save(path, ndx.full(1000, 3.0))
whole(3.0)
x = ndx.open(path, "w+", shape=1000)
whole(0.0)
x[...] = 4.0
x.flush()
x = ndx.open(path, "r+")
x += 1
x.flush()
whole(5.0)
x = ndx.open(path, "c")
x += 1
x.commit()
whole(6.0)
with ndx.workspace(path=path + ".bin", size="64KiB") as ws:
    ndx.full(8000, 1.0)
with ws:
    y = ndx.empty(8000)
    assert y.tolist() == [1.0] * 8000
del os.environ["NDX_FAILS"]
os.unlink(path + ".bin")
path += ".bin"
os.environ["NDX_FAILS"] = "msync"
try:
    ws.flush()
except OSError as error:
    assert error.errno == errno.EIO and error.filename == path
else:
    raise SystemExit("no error")
"""


def test_calls_that_fail(tmp_path):
    library = build_shim(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    run_python(BROKEN, folder / "x.npy", environment={"LD_PRELOAD": str(library)})


def test_what_is_new_is_on_disk_before_it_is_in_its_place(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    ndx.save(path, ndx.zeros(1000))
    calls = []
    fsync, replace = os.fsync, os.replace

    def logged_fsync(fd):
        is_folder = os.path.samestat(os.fstat(fd), tmp_path.stat())
        calls.append("fsync of the folder" if is_folder else "fsync")
        # Not yet installed, but all of it is written.
        if not is_folder:
            assert os.fstat(fd).st_size == 8128
            assert float(np.load(path)[0]) == 0.0
        fsync(fd)

    def logged_replace(*names):
        calls.append("replace")
        replace(*names)

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "replace", logged_replace)
    private = ndx.open(path, "c")
    for way in (
        private.commit,
        lambda: ndx.open(path, "w+", shape=1000),
        lambda: ndx.save(path, ndx.ones(1000)),
    ):
        calls.clear()
        way()
        assert calls == ["fsync", "replace", "fsync of the folder"]


def test_the_name_of_a_new_workspace_is_on_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    for count in (1, 1):
        ws = ndx.workspace(path=tmp_path / "state.bin", size=64)
        ws.close()
        assert synced == [tmp_path.stat().st_ino] * count


def test_a_disk_that_fails_while_it_is_read(tmp_path):
    """The system's own SIGBUS, from a page that can't be read."""
    with breakable(tmp_path / "disk") as (folder, fail):
        path = folder / "x.npy"
        ndx.save(path, ndx.ones(1_000_000))
        other = ndx.ones(1000)
        x, y = ndx.open(path, "r"), ndx.open(path, "c")
        fail()
        for way in (y.commit, lambda: ndx.save(tmp_path / "x.npy", y)):
            # The system's calls meet such pages without a signal.
            with pytest.raises(OSError, match=r"x\.npy") as caught:
                way()
            assert caught.value.errno == errno.EIO
        assert sorted(os.listdir(tmp_path)) == ["disk", "disk.image"]
        with pytest.raises(ndx.MappedFileError) as caught:
            ndx.sum(x)
        assert caught.value.filename == str(path)
        assert float(ndx.sum(other)) == 1000.0
        x.close()
        y.close()


def test_what_is_idle_on_the_same_disk_makes_room(small_disk):
    folder = small_disk(8 * MIB)
    with ndx.use("mmap", directory=folder) as backend:
        x = ndx.ones(900_000)
        del x
        assert backend.stats()["cached_bytes"] > 6 * MIB
        ndx.save(folder / "x.npy", ndx.ones(200_000))
    assert float(ndx.sum(ndx.load(folder / "x.npy"))) == 200_000
