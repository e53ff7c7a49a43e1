"""What passes do to the pages of files: read ahead, drop, and pages that are lost."""

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from helpers.numpy_versions import needs_part
from helpers.passes import in_file, passing, same
from helpers.threads import wait_until

import ndx

pytestmark = [
    needs_part("loops"),
    pytest.mark.threads,
    pytest.mark.skipif(
        not Path("/proc/self/maps").exists(), reason="Linux's advice, and its mincore"
    ),
]
MIB = 2**20
PAGE = os.sysconf("SC_PAGESIZE")
COUNT = 2 * MIB  # elements: 16 MiB


def descriptors(directory):
    """Return the descriptors of this process's files there."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if os.readlink(entry).startswith(f"{directory}/"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def cached(x):
    """Return for each page of an array whether it is in memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    start = x.__array_interface__["data"][0] // PAGE * PAGE
    found = (ctypes.c_ubyte * (x.nbytes // PAGE))()
    length = ctypes.c_size_t(len(found) * PAGE)
    assert libc.mincore(ctypes.c_void_p(start), length, found) == 0
    return np.frombuffer(found, np.uint8) & 1


def forget(x, directory):
    """Write what is not written, and have the system drop the pages of an array."""
    libc = ctypes.CDLL(None, use_errno=True)
    start = x.__array_interface__["data"][0] // PAGE * PAGE
    for fd in descriptors(directory):
        os.fsync(fd)
    libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(x.nbytes), 4)  # DONTNEED
    for fd in descriptors(directory):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if cached(x).mean() > 0.1:
        pytest.skip("the file system keeps its pages")


@pytest.fixture
def unaided(monkeypatch):
    """Let the system not read ahead by itself."""
    monkeypatch.setattr("ndx._compute.passes.run.read_ahead_of", lambda fd: 0)


def test_what_fits_in_memory_stays_there(tmp_path):
    with passing(tmp_path, block="1MiB", memory="1GiB"):
        x = in_file(np.ones(COUNT))
        forget(x, tmp_path)
        assert float(ndx.sum(x)) == COUNT
        assert cached(x).mean() > 0.99


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("unaided")
def test_what_does_not_fit_is_dropped_behind(tmp_path, threads):
    with passing(tmp_path, block="1MiB", memory="1MiB", threads=threads):
        x = in_file(np.ones(COUNT))
        forget(x, tmp_path)
        assert float(ndx.sum(x)) == COUNT
        assert cached(x).mean() < 0.3
        y = x + 1
        # The last tiles may still be in work by the disk.
        assert cached(x).mean() < 0.3
        assert cached(y).mean() < 0.7
        same(y, np.full(COUNT, 2.0))


def test_operands_that_fit_are_left_alone(tmp_path):
    """What is small, and read again and again, is not dropped."""
    with passing(tmp_path, block="1MiB", memory="1MiB"):
        x = in_file(np.ones((COUNT // 512, 512)))
        row = in_file(np.arange(512.0))
        x += row
        assert cached(row).all()
        same(x[:2], np.ones((2, 512)) + np.arange(512.0))


@pytest.mark.parametrize("memory", ["1GiB", "1MiB"])
@pytest.mark.usefixtures("unaided")
def test_the_disk_reads_ahead(tmp_path, memory):
    found = []
    with passing(tmp_path) as _:
        x = in_file(np.ones(COUNT))
    forget(x, tmp_path)
    for fd in descriptors(tmp_path):
        # So that the system does not by itself.
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)

    def look(done, total, name):
        if found:
            return
        wait_until(lambda: cached(x)[1 * 256 : 4 * 256].mean() > 0.9)
        found.append(cached(x).reshape(16, -1).mean(axis=1))

    with ndx.passes(block="1MiB", threads=1, threshold=0, memory=memory, progress=look):
        ndx.sum(x)
    assert (found[0][1:4] > 0.9).all()
    assert (found[0][8:] < 0.1).all(), "not all at once"


@pytest.mark.usefixtures("unaided")
def test_a_pass_starts_with_what_the_last_one_left(tmp_path):
    """The end of a result is in memory still: it need not be read again."""
    with passing(tmp_path, block="1MiB", memory="6MiB", threads=1):
        x, z = in_file(np.arange(float(COUNT))), ndx.empty(COUNT)
        forget(x, tmp_path)
        y = x + 1
        for fd in descriptors(tmp_path):
            os.fsync(fd)
        left = cached(y).reshape(16, -1).mean(axis=1)
        assert left[:8].max() < 0.1
        assert left[-4:].min() > 0.9
        first = []

        def look(done, total, name):
            if not first:
                first.append(cached(z).reshape(16, -1).mean(axis=1))

    with ndx.passes(block="1MiB", memory="6MiB", threads=1, threshold=0, progress=look):
        y[:16] = 5.0
        ndx.add(y, 1.0, out=z)
    expected = np.arange(float(COUNT)) + 2
    expected[:16] = 6
    same(z, expected)
    assert first[0].argmax() >= 8


@pytest.mark.parametrize("memory", ["1GiB", 0])
@pytest.mark.parametrize(
    "compute",
    [
        lambda x, y: ndx.sum(x),
        lambda x, y: ndx.add(x, 1.0, out=y),
        lambda x, y: x.__imul__(2),
        lambda x, y: y.__setitem__(..., x),
        lambda x, y: y.__setitem__(..., 1),
        lambda x, y: ndx.where(x > 2, x, y),
    ],
    ids=["sum", "out", "in place", "copy", "fill", "where"],
)
def test_a_file_that_is_cut_short_meanwhile(tmp_path, compute, memory):
    """It is an error, the file stays as short, and other arrays are whole."""
    other = ndx.ones(1000)
    # With a second thread all may be computed before it is cut.
    with passing(tmp_path, memory=memory, threads=1):
        x = in_file(np.arange(200_000.0))
        y = in_file(np.zeros(200_000))
        files = descriptors(tmp_path)

        def cut(done, total, name):
            for fd in files:
                os.ftruncate(fd, 0)

        one_block = ndx.passes(progress=cut, block="16KiB")
        with one_block, pytest.raises(ndx.MappedFileError):
            compute(x, y)
        assert {os.fstat(fd).st_size for fd in files} == {0}
    same(other + 1, np.full(1000, 2.0))
    del x, y


def test_stale_and_closed_arrays(tmp_path):
    with passing(tmp_path):
        with ndx.workspace():
            stale = in_file(np.ones(50_000))
        with pytest.raises(ndx.StaleArrayError):
            ndx.sum(stale)
        closed = in_file(np.ones(50_000))
        closed.close()
        with pytest.raises(ndx.StaleArrayError):
            closed + 1


@pytest.mark.parametrize("memory", ["1GiB", 0])
def test_files_by_mode(tmp_path, memory):
    """What is private stays so; what is shared is in the file."""
    a = np.arange(100_000.0)
    path, other = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(path, a)
    with passing(tmp_path, memory=memory) as calls:
        private = ndx.open(path, mode="c")
        private *= 2
        private[:50_000] += 1
        expected = a * 2 + (np.arange(100_000) < 50_000)
        same(private + 0, expected)
        same(ndx.sum(private), expected.sum())
        same(np.load(path), a)
        fixed = ndx.open(path)
        with pytest.raises(ValueError, match="read-only"):
            fixed += 1
        out = ndx.open(other, mode="w+", shape=fixed.shape)
        ndx.add(fixed, 1, out=out)
        out.flush()
        same(np.load(other), a + 1)
        assert {"multiply", "sum", "add"} <= {name for _, _, name in calls}
