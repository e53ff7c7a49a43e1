"""`ndx.save` and `ndx.load`: NumPy's format, files that are replaced as a whole."""

import errno
import os
import stat
import threading

import numpy as np
import pytest
from helpers import dtypes

import ndx
from ndx._files import replace
from ndx.testing import assert_equal

SHAPES = [(), (0,), (3, 0, 2), (1,), (7,), (3, 4), (2, 1, 3, 2, 2)]


def names(folder):
    """Return all names in a folder, those of temporary files included."""
    return sorted(os.listdir(folder))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.npy"


@pytest.fixture
def small_blocks(monkeypatch):
    """Let files be written and read in blocks of a few elements."""
    for module in (replace, ndx._files.npy):
        monkeypatch.setattr(module, "BLOCK", 1024)


def sample(dtype, shape):
    values = np.arange(np.prod(shape)).reshape(shape) % 100
    return values.astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_numpy_reads_what_is_saved_and_the_other_way(path, dtype, shape):
    a = sample(dtype, shape)
    ndx.save(path, ndx.asarray(a))
    found = np.load(path)
    assert found.dtype == a.dtype
    np.testing.assert_array_equal(found, a)
    np.save(path, a)
    loaded = ndx.load(path)
    assert_equal(loaded, a)
    assert loaded.backend is ndx.current_backend()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::2, 1::3],
        lambda x: x[::-1],
        lambda x: ndx.permute_dims(ndx.reshape(x, (10, 5, 40)), (1, 0, 2)),
        lambda x: ndx.broadcast_to(x[0], (7, 40)),
        lambda x: x[:, 3],
        lambda x: x[:0, ::2],
    ],
)
def test_any_layout_is_saved(path, view):
    x = view(ndx.reshape(ndx.arange(2000.0), (50, 40)))
    ndx.save(path, x)
    found = np.load(path)
    np.testing.assert_array_equal(found, np.asarray(x))
    loaded = ndx.load(path)
    assert_equal(loaded, x)
    # As NumPy: Fortran's order stays.
    if loaded.size:
        assert loaded.strides == found.strides


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_a_large_strided_array_hold_little(path):
    x = ndx.zeros((400, 4000))[:, ::2]
    before = ndx.memory.stats("host")["total_allocations"]
    ndx.save(path, x)
    assert ndx.memory.stats("host")["total_allocations"] == before
    assert np.load(path).shape == (400, 2000)


def test_the_name_is_taken_as_it_is(tmp_path):
    ndx.save(tmp_path / "plain", ndx.ones(2))
    ndx.save(os.fsencode(tmp_path / "bytes"), ndx.ones(3))
    assert names(tmp_path) == ["bytes", "plain"]
    assert ndx.load(str(tmp_path / "plain")).shape == (2,)
    assert ndx.load(os.fsencode(tmp_path / "bytes")).shape == (3,)


def test_numpy_arrays_are_taken_and_other_things_refused(path):
    ndx.save(path, np.arange(3, dtype=">i4"))
    assert_equal(ndx.load(path), np.arange(3, dtype="i4"))
    with pytest.raises(TypeError, match=r"save takes an array, not list"):
        ndx.save(path, [1, 2])
    with pytest.raises(TypeError):
        ndx.save(3, ndx.ones(2))
    with pytest.raises(TypeError):
        ndx.load(0)
    assert_equal(ndx.load(path), np.arange(3, dtype="i4"))


def test_load_goes_to_the_current_backend_and_workspace(path):
    ndx.save(path, ndx.ones(1000))
    with ndx.use("host", limit="1MiB") as backend:
        assert ndx.load(path).backend is backend
    with ndx.workspace(size="64KiB") as ws:
        x = ndx.load(path)
        assert x.workspace == ws.name
        assert ws.stats()["offset"] == 8000
    with pytest.raises(ndx.StaleArrayError):
        ndx.save(path, x)
    with ndx.use("host", limit="4KiB"), pytest.raises(ndx.OutOfMemoryError):
        ndx.load(path)


def test_other_byte_orders_and_odd_places_are_converted(path):
    for dtype in (">f8", ">c8", ">u2"):
        a = np.arange(1000).astype(dtype)
        np.save(path, a)
        loaded = ndx.load(path)
        assert loaded.dtype == a.dtype.newbyteorder("=")
        np.testing.assert_array_equal(np.asarray(loaded), a)


def test_a_new_file_has_the_permissions_of_new_files(path):
    before = os.umask(0o027)
    try:
        ndx.save(path, ndx.ones(2))
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        ndx.save(path, ndx.ones(3))
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


def test_a_replaced_file_is_a_new_one(path):
    ndx.save(path, ndx.ones(2))
    other = path.with_name("hard link")
    other.hardlink_to(path)
    ndx.save(path, ndx.zeros(3))
    assert ndx.load(other).shape == (2,)
    assert ndx.load(path).shape == (3,)


def test_links_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "target"
    link = tmp_path / "link"
    link.symlink_to("there/target")
    for size in (2, 3):
        # Also where there is no target yet.
        ndx.save(link, ndx.ones(size))
        assert link.is_symlink()
        assert not target.is_symlink()
        assert ndx.load(target).shape == ndx.load(link).shape == (size,)
    assert names(tmp_path) == ["link", "there"]
    assert names(tmp_path / "there") == ["target"]


def test_a_link_without_end_is_refused(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("link")
    with pytest.raises(OSError, match="link"):
        ndx.save(link, ndx.ones(2))
    assert link.is_symlink()
    assert names(tmp_path) == ["link"]


def test_save_of_what_is_open_from_the_same_file(path):
    ndx.save(path, ndx.arange(1000))
    for mode in ("r", "r+", "c"):
        x = ndx.open(path, mode)
        ndx.save(path, x[::-1])
        assert int(x[0]) == 999 - int(ndx.load(path)[0])
        x.close()
    assert int(ndx.load(path)[0]) == 999


@pytest.mark.parametrize("unnamed", [True, False])
def test_what_fails_leaves_the_old_file_and_nothing_else(path, monkeypatch, unnamed):
    ndx.save(path, ndx.arange(5))
    before = path.read_bytes(), path.stat().st_ino
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")

    def broken(*args, **kwargs):
        raise KeyboardInterrupt

    for name in ("fsync", "replace", "write"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, broken)
            with pytest.raises(KeyboardInterrupt):
                ndx.save(path, ndx.zeros(7))
        assert (path.read_bytes(), path.stat().st_ino) == before
        assert names(path.parent) == ["x.npy"]
    ndx.save(path, ndx.zeros(7))
    assert ndx.load(path).shape == (7,)
    assert names(path.parent) == ["x.npy"]


def test_a_file_that_no_disk_could_hold(path):
    """The bytes fit the address space; with the header's they are one too many."""
    ndx.save(path, ndx.ones(3))
    x = ndx.broadcast_to(ndx.asarray(1.0), (2**60 - 1,))
    for call in (
        lambda: ndx.save(path, x),
        lambda: ndx.open(path, "w+", shape=x.shape),
    ):
        with pytest.raises(OSError, match="too large") as caught:
            call()
        assert caught.value.errno == errno.EFBIG
        assert caught.value.filename == os.fspath(path)
    assert_equal(ndx.load(path), np.ones(3))
    assert names(path.parent) == ["x.npy"]


@pytest.mark.threads
def test_the_scope_may_end_while_its_array_is_saved(path, monkeypatch):
    """A thread saves what another's scope reclaims: what was there is written."""
    started, go_on = threading.Event(), threading.Event()
    write = os.write

    def slow(fd, data):
        started.set()
        assert go_on.wait(60)
        return write(fd, data)

    monkeypatch.setattr(os, "write", slow)
    with ndx.workspace(size="64KiB") as ws:
        x = ndx.ones(1000)
        saver = threading.Thread(target=ndx.save, args=(path, x))
        saver.start()
        assert started.wait(60)
    with ws:
        ndx.zeros(1000)
    go_on.set()
    saver.join()
    assert_equal(ndx.load(path), np.ones(1000))
    with ws:
        assert ws.stats()["pinned_bytes"] == 0


def test_a_file_that_is_moved_at_once(path, tmp_path, monkeypatch):
    install = os.replace

    def consumed(source, target):
        install(source, target)
        install(target, tmp_path / "taken.npy")

    monkeypatch.setattr(os, "replace", consumed)
    ndx.save(path, ndx.ones(3))
    x = ndx.open(path, mode="w+", shape=3)
    x[:] = 2
    del x
    monkeypatch.undo()
    assert names(tmp_path) == ["taken.npy"]
    assert_equal(ndx.load(tmp_path / "taken.npy"), np.full(3, 2.0))
