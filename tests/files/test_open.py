"""`ndx.open`: arrays over files, by mode."""

import contextlib
import os
import pickle
import signal
import threading

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.disks import open_files

import ndx
from ndx._files.npy import make_header
from ndx.testing import assert_equal

MODES = ("r", "r+", "w+", "c")
THERE = ("r", "r+", "c")
SHAPES = [(), (0,), (3, 0, 2), (1,), (7,), (3, 4)]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.npy"
    ndx.save(path, ndx.arange(12.0))
    return path


def is_mapped(inode):
    """Whether this process has a file mapped, by the number that outlives its name."""
    with open("/proc/self/maps") as maps:
        return inode in {int(line.split(maxsplit=5)[4]) for line in maps}


# ------------------------------------------------------------------- what modes do


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", THERE)
def test_what_numpy_wrote(tmp_path, mode, shape):
    a = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    np.save(tmp_path / "x.npy", a)
    x = ndx.open(tmp_path / "x.npy", mode)
    assert_equal(x, a)
    assert_equal(x + 1, a + 1)
    assert x.backend is None
    assert not x.attached
    assert repr(x) == repr(ndx.asarray(a))
    assert_equal(pickle.loads(pickle.dumps(x)), a)
    x.close()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [None, "bool", "complex64"])
def test_a_new_file_is_zeros_that_numpy_reads(tmp_path, shape, dtype):
    path = tmp_path / "x.npy"
    x = ndx.open(path, "w+", shape=shape, dtype=dtype)
    assert x.dtype == (dtype or "float64")
    found = np.load(path)
    assert found.shape == x.shape == shape
    assert found.dtype == x.dtype
    assert not found.any()
    x[...] = True
    x.flush()
    assert np.load(path).all()


@pytest.mark.parametrize("mode", THERE)
def test_fortran_order(tmp_path, mode):
    a = np.asfortranarray(np.arange(24).reshape(2, 3, 4))
    np.save(tmp_path / "x.npy", a)
    x = ndx.open(tmp_path / "x.npy", mode)
    assert x.strides == a.strides
    assert_equal(x, a)
    assert_equal(ndx.sum(x, axis=1), a.sum(axis=1))
    if mode != "r":
        x[1, 2, 3] = -5
        a[1, 2, 3] = -5
        assert_equal(x, a)
    if mode == "r+":
        x.flush()
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), a)


def test_r_refuses_to_be_written_to(path):
    before = path.read_bytes()
    x = ndx.open(path)
    view = x[2:]

    def write(way):
        with pytest.raises(ValueError, match="read-only") as caught:
            way()
        words = str(caught.value)
        assert str(path) in words
        assert "mode 'r'" in words
        assert "'r+'" in words

    write(lambda: x.__setitem__(0, 1.0))
    write(lambda: view.__setitem__([0, 1], 1.0))
    write(lambda: x.__iadd__(1))
    write(lambda: ndx.add(x, 1, out=x))
    write(lambda: np.add(x, 1, out=x))
    assert not np.asarray(x).flags.writeable
    assert memoryview(x).readonly
    with pytest.raises(ValueError, match="flushed.*mode 'r'"):
        x.flush()
    with pytest.raises(ValueError, match="committed.*mode 'r'"):
        x.commit()
    assert path.read_bytes() == before


def test_a_broadcast_view_of_a_writable_file_says_what_it_is(path):
    x = ndx.open(path, "r+")
    with pytest.raises(ValueError, match="broadcast"):
        ndx.broadcast_to(x, (2, 12))[0, 0] = 1.0


def test_rplus_changes_the_file_and_not_its_header(path):
    header = path.read_bytes()[:128]
    x = ndx.open(path, "r+")
    x[3:6] = -1.0
    x *= 2
    assert float(np.load(path)[3]) == -2.0  # others see it at once
    x[::2].flush()
    with pytest.raises(ValueError, match=r"committed.*x\.flush"):
        x.commit()
    x.close()
    assert path.read_bytes()[:128] == header
    assert_equal(ndx.load(path), [0, 2, 4, -2, -2, -2, 12, 14, 16, 18, 20, 22])


def test_two_arrays_over_a_file_share_it(path):
    x, y = ndx.open(path, "r+"), ndx.open(path, "r")
    x[0] = 99.0
    assert float(y[0]) == 99.0


def test_c_keeps_changes_to_itself_until_they_are_committed(path):
    x, other = ndx.open(path, "c"), ndx.open(path, "c")
    old = ndx.open(path, "r")
    x[0] = 99.0
    assert float(old[0]) == float(ndx.load(path)[0]) == float(other[0]) == 0.0
    with pytest.raises(ValueError, match=r"flushed.*x\.commit"):
        x.flush()
    x[1:].commit()
    assert float(ndx.load(path)[0]) == 99.0
    assert float(old[0]) == float(other[0]) == 0.0
    # The array goes on, over the new file.
    assert float(x[0]) == 99.0
    x[1] = 98.0
    assert float(ndx.load(path)[1]) == 1.0
    x.commit()
    assert_equal(ndx.load(path)[:3], [99.0, 98.0, 2.0])
    # Of several that commit, the last one's file is there, as a whole.
    other[2] = 97.0
    other.commit()
    assert_equal(ndx.load(path)[:3], [0.0, 1.0, 97.0])
    assert os.listdir(path.parent) == ["x.npy"]


def test_a_commit_frees_what_was_changed_in_memory(tmp_path):
    # Alone in its process: beside other threads it keeps what they may change.
    code = """
import sys, ndx
def private():
    with open("/proc/self/smaps_rollup") as rollup:
        fields = dict(line.split(":") for line in rollup.readlines()[1:])
    return int(fields["Anonymous"].split()[0]) * 1024
x = ndx.open(sys.argv[1], "w+", shape=4 << 20)
x.close()
x = ndx.open(sys.argv[1], "c")
x[...] = 1.0
before = private()
x.commit()
print(private() < before - (24 << 20), float(ndx.sum(x)) == 4 << 20)
"""
    assert run_python(code, tmp_path / "x.npy").split() == ["True", "True"]


def test_a_commit_keeps_what_is_behind_the_array(path):
    with open(path, "ab") as file:
        np.save(file, np.arange(3))
    x = ndx.open(path, "c")
    x[0] = 99.0
    x.commit()
    with open(path, "rb") as file:
        assert float(np.load(file)[0]) == 99.0
        np.testing.assert_array_equal(np.load(file), np.arange(3))


def test_wplus_replaces_what_is_there(path):
    before = path.read_bytes()
    path.chmod(0o604)
    old = ndx.open(path, "r")
    kept = path.with_name("kept")
    kept.hardlink_to(path)
    x = ndx.open(path, "w+", shape=(2, 3), dtype="int16")
    x[0] = 7
    x.flush()
    assert kept.read_bytes() == before
    assert float(old[11]) == 11.0
    assert_equal(ndx.load(path), np.asarray([[7, 7, 7], [0, 0, 0]], "int16"))
    assert path.stat().st_mode & 0o777 == 0o604
    with pytest.raises(ValueError, match="committed"):
        x.commit()


# -------------------------------------------------------------------- its arguments


@pytest.mark.parametrize("mode", [None, "", "w", "rw", "a", "R", 1, ["r"]])
def test_modes_that_are_none(path, mode):
    with pytest.raises((ValueError, TypeError), match="mode|unhashable"):
        ndx.open(path, mode)


def test_wplus_needs_a_shape_that_can_be(tmp_path):
    path = tmp_path / "x.npy"
    with pytest.raises(ValueError, match="needs a shape"):
        ndx.open(path, "w+")
    for shape in (-1, (2, -3), (2**62, 2**62), 2**61):
        with pytest.raises((ValueError, OverflowError)):
            ndx.open(path, "w+", shape=shape)
    for dtype in ("longdouble", "O", "U3", "nothing"):
        with pytest.raises(TypeError, match="not a dtype of the array API"):
            ndx.open(path, "w+", shape=3, dtype=dtype)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("mode", THERE)
def test_shape_and_dtype_of_what_is_there_are_checked(path, mode):
    assert ndx.open(path, mode, shape=12, dtype="float64").shape == (12,)
    with pytest.raises(ValueError, match=r"has shape \(12,\), not \(3, 4\)"):
        ndx.open(path, mode, shape=(3, 4))
    with pytest.raises(ValueError, match="has elements of float64, not float32"):
        ndx.open(path, mode, dtype="float32")


@pytest.mark.parametrize("mode", MODES)
def test_what_is_in_no_file_is_said_to_be(path, mode):
    x = ndx.ones(3) if mode != "c" else ndx.asarray(np.load(path, mmap_mode="r"))
    for way in (x.flush, x[1:].commit):
        with pytest.raises(ValueError, match=r"in no file.*ndx\.save"):
            way()
    with ndx.workspace(size="1KiB"):
        x = ndx.ones(3)
        with pytest.raises(ValueError, match="in no file"):
            x.flush()
    for way in (x.flush, x.commit):
        with pytest.raises(ndx.StaleArrayError):
            way()


# ------------------------------------------------------------------ letting go of it


@pytest.mark.parametrize("mode", MODES)
def test_close_unmaps_so_that_the_file_can_go(path, mode):
    """ND4J's #8869: a mapped file could not be deleted after the scope."""
    x = ndx.open(path, mode, shape=12)
    view = x[3:]
    inode = path.stat().st_ino
    assert is_mapped(inode)
    assert open_files(path.parent) == 1
    x.close()
    assert not is_mapped(inode)
    assert open_files(path.parent) == 0
    path.unlink()
    for use in (lambda: view + 1, view.flush, view.commit, lambda: x[0]):
        with pytest.raises(ndx.StaleArrayError, match="closed"):
            use()
    x.close()


def test_the_last_array_lets_go(path):
    x = ndx.open(path, "r+")
    view = x[2:]
    del x
    assert is_mapped(path.stat().st_ino)
    view[0] = 5.0
    del view
    assert not is_mapped(path.stat().st_ino)
    assert float(np.load(path)[2]) == 5.0


def test_close_refuses_while_others_read(path):
    x = ndx.open(path, "r+")
    a = np.asarray(x)
    with pytest.raises(BufferError):
        x.close()
    assert is_mapped(path.stat().st_ino)
    del a
    x.close()
    assert not is_mapped(path.stat().st_ino)


@pytest.mark.parametrize("mode", MODES)
def test_failures_leak_nothing(path, mode):
    for shape in (-1, "x"):
        with pytest.raises((ValueError, TypeError)):
            ndx.open(path, mode, shape=shape, dtype="float32")
    assert open_files(path.parent) == 0
    assert not is_mapped(path.stat().st_ino)


def test_many_are_open_at_once(tmp_path):
    arrays = [
        ndx.open(tmp_path / f"{i}.npy", "w+", shape=3, dtype="int64")
        for i in range(300)
    ]
    for i, x in enumerate(arrays):
        x[...] = i
    del arrays[::2]
    assert all(int(x[1]) == 2 * i + 1 for i, x in enumerate(arrays))
    assert int(ndx.load(tmp_path / "298.npy")[0]) == 298


# ------------------------------------------------------------- what may happen to it


@pytest.mark.parametrize("mode", THERE)
def test_a_file_cut_short_is_an_error_and_no_signal(path, mode):
    np.save(path, np.arange(100_000.0))
    other = ndx.open(path.with_name("other.npy"), "w+", shape=10)
    x = ndx.open(path, mode)
    head = x[:10]
    kept = ndx.sum(x)
    os.truncate(path, 5000)
    for use in (lambda: ndx.sum(x), lambda: x + 1, lambda: float(x[-1])):
        with pytest.raises(ndx.MappedFileError) as caught:
            use()
        assert caught.value.filename == str(path)
    # Whatever shares the memory is refused from then on.
    for use in (lambda: head + 1, x.flush, x.commit, lambda: np.asarray(x)):
        with pytest.raises((ndx.MappedFileError, ValueError)):
            use()
    other[...] = 1.0
    other.flush()
    assert float(ndx.sum(other)) == 10.0
    assert float(kept) == sum(range(100_000))
    assert repr(x).startswith("<lost NDArray")
    x.close()
    assert not is_mapped(path.stat().st_ino)
    assert path.stat().st_size == 5000


@pytest.mark.parametrize("mode", THERE)
@pytest.mark.parametrize("argument", ["dtype", "shape"])
def test_a_file_cut_short_by_an_argument_is_an_error_and_no_signal(
    path, mode, argument
):
    """What describes the array is the caller's code, which may do anything."""
    code = """
import os, sys, numpy as np, ndx
path, mode, argument = sys.argv[1:]
class Dtype:
    @property
    def dtype(self):
        os.truncate(path, 4096)
        return np.dtype("float64")
class Length:
    def __index__(self):
        os.truncate(path, 4096)
        return 100_000
try:
    given = Dtype() if argument == "dtype" else (Length(),)
    x = ndx.open(path, mode, **{argument: given})
    print(float(x[99_999]))
except ValueError as error:
    print("cut short" in str(error), os.path.getsize(path))
"""
    np.save(path, np.arange(100_000.0))
    assert run_python(code, path, mode, argument).split() == ["True", "4096"]


@pytest.mark.costly
@pytest.mark.parametrize("mode", THERE)
@pytest.mark.parametrize("left", [0, 100, 4096, 800_127])
def test_a_file_cut_short_after_its_header_was_read_is_an_error(path, mode, left):
    """Another process can do it at any moment: the length that is mapped counts."""
    code = """
import os, sys, ndx, ndx._api.file_io as persistence
path, mode, left = sys.argv[1:]
read_header = persistence.read_header
def read_and_cut(*arguments):
    header = read_header(*arguments)
    os.truncate(path, int(left))
    return header
persistence.read_header = read_and_cut
for use in (ndx.open, ndx.load):
    try:
        x = use(path, mode) if use is ndx.open else use(path)
        print(float(x[99_999]))
    except ValueError as error:
        print("cut short" in str(error), os.path.getsize(path))
    ndx.save(path, ndx.arange(100_000.0))
"""
    np.save(path, np.arange(100_000.0))
    assert run_python(code, path, mode, left).split() == ["True", str(left)] * 2


@pytest.mark.parametrize("mode", THERE)
@pytest.mark.parametrize("opened", [False, True])
def test_elements_of_a_file_cut_short_are_not_written(path, mode, opened):
    np.save(path, np.arange(1_000_000.0))
    x = ndx.open(path, mode)
    os.truncate(path, 50_000)
    target = path.with_name("elements")
    target.write_bytes(b"before")
    with (
        target.open("ab") if opened else contextlib.nullcontext(target) as file,
        pytest.raises(ndx.MappedFileError, match="cut it short"),
    ):
        x.tofile(file)
    if not opened:
        assert target.read_bytes() == b"before"


def test_a_file_cut_short_is_noticed_before_it_is_said_to_be_safe(path):
    """No page was touched since: only the flush and the commit look."""
    np.save(path, np.arange(100_000.0))
    shared, private = ndx.open(path, "r+"), ndx.open(path, "c")
    os.truncate(path, 5000)
    with pytest.raises(ndx.MappedFileError, match="cut it short"):
        shared.flush()
    with pytest.raises(ndx.MappedFileError, match="cut it short"):
        private.commit()
    with pytest.raises(ndx.MappedFileError) as caught:
        ndx.save(path.with_name("copy.npy"), shared)
    assert caught.value.filename == str(path)
    assert os.listdir(path.parent) == ["x.npy"]
    assert path.stat().st_size == 5000


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_shares_files_but_for_c(path):
    shared, private = ndx.open(path, "r+"), ndx.open(path, "c")
    child = os.fork()
    if not child:
        try:
            shared[0] = 50.0
            private[0] = 60.0
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert float(shared[0]) == 50.0
    # A private page that was not touched shows the file.
    assert float(private[0]) == 50.0
    private[1] = 70.0
    assert float(shared[1]) == 1.0


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_larger_than_4_gib(tmp_path, mode):
    """ND4J's #5150: sizes of 64 bits. A file of holes; r+ would fill them."""
    path = tmp_path / "x.npy"
    count = (5 << 30) + 3
    header = make_header((count,), np.dtype("uint8"), False)
    with open(path, "wb") as file:
        file.write(header + b"\x01")
        file.seek(len(header) + count - 1)
        file.write(b"\x02")
    if mode == "r+":
        free = os.statvfs(tmp_path)
        if free.f_bavail * free.f_frsize < 7 << 30:
            pytest.skip("no 7 GiB of free disk")
    x = ndx.open(path, mode)
    assert x.nbytes == count
    assert (int(x[0]), int(x[-1]), int(x[count // 2])) == (1, 2, 0)
    assert int(x[(4 << 30) + 1]) == 0
    if mode != "r":
        x[-2] = 3
        assert_equal(x[-3:], np.asarray([0, 3, 2], "uint8"))
    if mode == "r+":
        assert path.stat().st_blocks * 512 >= count
        x.flush()
    x.close()
    with open(path, "rb") as file:
        file.seek(len(header) + count - 2)
        assert file.read() == (b"\x03\x02" if mode == "r+" else b"\x00\x02")
    path.unlink()


@pytest.mark.threads
def test_a_commit_beside_another_thread_loses_nothing(tmp_path):
    path = tmp_path / "x.npy"
    ndx.save(path, ndx.zeros(300_000))
    x = ndx.open(path, "c")
    done = threading.Event()

    def commit():
        while not done.is_set():
            x.commit()

    thread = threading.Thread(target=commit)
    thread.start()
    for _ in range(100):
        x += 1
    done.set()
    thread.join()
    assert float(ndx.min(x)) == float(ndx.max(x)) == 100
    x.commit()
    assert float(ndx.min(ndx.load(path))) == 100


def test_a_commit_keeps_what_a_view_may_change(tmp_path):
    path = tmp_path / "x.npy"
    ndx.save(path, ndx.zeros(3))
    x = ndx.open(path, "c")
    view = np.asarray(x)
    x += 1
    x.commit()
    view += 1
    assert x.tolist() == [2.0, 2.0, 2.0]
    assert ndx.load(path).tolist() == [1.0, 1.0, 1.0]
