"""Temporary memory in files: where it is, that it ends, and what a bad disk does."""

import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import finish_python, run_python, start_python
from helpers.disks import breakable, build_shim, cut, files_in
from helpers.pools import check, take

import ndx
from ndx.backends import MmapBackend

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="reads /proc, of Linux"
)
KIB, MIB, GIB = 2**10, 2**20, 2**30


def disk_bytes(directory):
    return sum(512 * status.st_blocks for _, _, status in files_in(directory))


def test_arrays_lie_in_files_without_names(tmp_path):
    with ndx.use("mmap", directory=tmp_path) as backend:
        x = ndx.ones((300, 1000))
        y = x + 1
    assert x.backend is y.backend is backend
    assert backend.directory == backend.place == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
    ((_, path, status),) = files_in(tmp_path)
    assert path.endswith("(deleted)")
    assert status.st_mode & 0o777 == 0o600
    assert status.st_nlink == 0
    assert 512 * status.st_blocks >= backend.stats()["reserved_bytes"]
    maps = Path("/proc/self/maps").read_text()
    (line,) = (line for line in maps.splitlines() if path in line)
    low, high = (int(word, 16) for word in line.split()[0].split("-"))
    address = x.__array_interface__["data"][0]
    assert low <= address < high
    assert line.split()[1] == "rw-s"
    assert float(ndx.sum(y)) == 600_000


def test_the_files_end_with_the_memory(tmp_path):
    backend = MmapBackend(directory=tmp_path)
    x = take(backend, 10 * MIB)
    assert disk_bytes(tmp_path) >= 10 * MIB
    x.release()
    backend.trim()
    assert files_in(tmp_path) == []
    check(backend)


def test_what_is_idle_goes_back_to_the_disk_at_once(tmp_path):
    backend = MmapBackend(directory=tmp_path, keep_idle="1MiB")
    kept, big = take(backend, 2 * MIB), take(backend, 30 * MIB)
    full = disk_bytes(tmp_path)
    big.release()
    assert disk_bytes(tmp_path) <= full - 29 * MIB
    assert backend.stats()["cached_bytes"] <= MIB
    check(backend, [kept])
    memoryview(take(backend, 30 * MIB))[:8] = b"abcdefgh"


@pytest.mark.parametrize("kind", ["split", "round", "naive", "unpooled", "arena"])
def test_zero_is_zero_in_recycled_memory(tmp_path, kind):
    options = {"initial": "8MiB"} if kind == "arena" else {}
    with ndx.use("mmap", directory=tmp_path, pool=kind, **options) as backend:
        for n in (10, 100_000, 300_000):
            for _ in range(3):
                x = ndx.empty(n)
                x[...] = 7.0
                del x
                assert not bool(ndx.any(ndx.zeros(n)))
            backend.trim()
            assert not bool(ndx.any(ndx.zeros(n)))


def test_idle_memory_goes_back_wherever_a_file_is_mapped(tmp_path):
    # On overlayfs, of containers, and on older systems a file starts at any page.
    program = """
import sys, ndx
with ndx.use("mmap", directory=sys.argv[1]) as backend:
    xs = [ndx.full(8192, n) for n in range(100)]
    assert backend.snapshot()[0]["address"] % 2**16 == 0
    del xs[::2]
    backend.trim()
    stats = backend.stats()
    assert stats["reserved_bytes"] == stats["allocated_bytes"] == 50 * 2**16, stats
    assert [int(x[-1]) for x in xs] == list(range(1, 100, 2))
    del xs[:]
    backend.trim()
    assert backend.stats()["reserved_bytes"] == 0
    assert backend.snapshot() == []
"""
    shim = {"LD_PRELOAD": str(build_shim(tmp_path)), "NDX_FAILS": "alignment of mmap"}
    run_python(program, tmp_path, environment=shim)
    run_python(program, tmp_path)


def test_more_than_four_gib(tmp_path):
    # Space is taken on the disk, of which nothing is written but the ends.
    if os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize < 7 * GIB:
        pytest.skip("the disk has less than 7 GiB")
    with ndx.use("mmap", directory=tmp_path):
        x = ndx.empty((5 * GIB,), dtype=ndx.uint8)
    x[-1] = 3
    x[0] = 5
    assert int(x[5 * GIB - 1]) == 3
    assert int(x[4 * GIB]) == 0
    assert x.nbytes == 5 * GIB
    x.close()
    assert files_in(tmp_path) == [] or disk_bytes(tmp_path) < 512 * MIB


def test_limits_are_exact(tmp_path):
    with ndx.use("mmap", directory=tmp_path, limit="1MiB") as backend:
        live = []
        with pytest.raises(ndx.OutOfMemoryError, match=r"limit is 1 MiB.*mmap"):
            live.extend(iter(lambda: ndx.ones(10_000), None))
        assert backend.stats()["peak_reserved_bytes"] <= MIB
        assert len(live) >= 12
    # The file system's own blocks, which say where the others are, are counted there.
    assert disk_bytes(tmp_path) <= MIB + 16 * KIB


def test_a_limit_in_percent_is_of_the_file_system(tmp_path):
    status = os.statvfs(tmp_path)
    backend = MmapBackend(directory=tmp_path, limit="10%")
    whole = status.f_blocks * status.f_frsize
    assert backend.limit == pytest.approx(whole / 10, rel=1e-6)
    assert backend.memory_info()[1] == whole


def test_the_limit_of_the_process_does_not_count_files(tmp_path):
    code = """
import sys, ndx
ndx.memory.set_limit("64MiB")
with ndx.use("mmap", directory=sys.argv[1]):
    x = ndx.ones(100 * 2**17)
print(float(ndx.sum(x)))
try:
    ndx.ones(100 * 2**17)
except ndx.OutOfMemoryError as error:
    print("limit" in str(error))
"""
    assert run_python(code, tmp_path).split() == ["13107200.0", "True"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda path: path / "nowhere", FileNotFoundError),
        (lambda path: path / "file", NotADirectoryError),
    ],
)
def test_a_directory_that_is_none(tmp_path, make, error):
    (tmp_path / "file").write_text("")
    bad = make(tmp_path)
    with pytest.raises(error, match="must be a folder") as raised:
        ndx.use("mmap", directory=bad).__enter__()
    assert raised.value.filename == str(bad)
    with pytest.raises(error):
        MmapBackend(directory=bad)


@pytest.mark.parametrize("bad", [3, 2.5, [], b"\0", "a\0b"])
def test_bad_values_of_directory(bad):
    with pytest.raises((TypeError, ValueError, OSError)):
        MmapBackend(directory=bad)


def test_a_directory_that_vanishes(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    with ndx.use("mmap", directory=folder) as backend:
        x = ndx.ones(10)
        folder.rmdir()
        # What has its file goes on; a new file can't be made.
        x += 1
        assert float(x[0]) == 2
        with pytest.raises(FileNotFoundError, match="made room") as raised:
            ndx.ones(MIB)
        assert raised.value.filename == str(folder)
        folder.mkdir()
        assert float(ndx.sum(ndx.ones(MIB))) == MIB
    check(backend)


def test_a_read_only_directory(small_disk):
    with pytest.raises(OSError, match=r"(?i)read-only") as raised:
        MmapBackend(directory=small_disk(MIB, "ro"))
    assert "disk0" in raised.value.filename


def test_a_full_disk(small_disk):
    disk = small_disk(4 * MIB)
    with ndx.use("mmap", directory=disk) as backend:
        kept = ndx.ones(100_000)
        before = backend.stats()
        with pytest.raises(ndx.OutOfMemoryError) as raised:
            ndx.ones(MIB)
        assert str(disk) in str(raised.value)
        assert "4 MiB in all" in str(raised.value)
        after = backend.stats()
        for key in ("allocated_bytes", "allocated_count", "reserved_bytes"):
            assert after[key] == before[key]
        # A part was not kept: there is room for what fits.
        more = ndx.ones(350_000)
        assert float(ndx.sum(kept)) + float(ndx.sum(more)) == 450_000
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.ones(90_000)
        del kept
        assert float(ndx.sum(ndx.ones(90_000))) == 90_000
    check(backend)


def test_a_full_disk_frees_what_is_idle_first(small_disk):
    with ndx.use("mmap", directory=small_disk(4 * MIB)) as backend:
        for n in (300_000, 400_000, 350_000, 500_000):
            x = ndx.ones(n)
            del x
        live = [ndx.ones(40_000) for _ in range(12)]
        del live[::2]
        assert backend.stats()["largest_free_bytes"] < 900_000
        assert float(ndx.sum(ndx.ones(150_000))) == 150_000
    check(backend)


def test_another_takes_the_room_meanwhile(small_disk):
    # What was handed out is reserved: whoever fills the disk, writing never fails.
    disk = small_disk(8 * MIB)
    with ndx.use("mmap", directory=disk) as backend:
        x = ndx.empty(500_000)
        with pytest.raises(OSError, match="space"):
            (disk / "other").write_bytes(bytes(8 * MIB))
        x[...] = 3.0
    assert float(ndx.sum(x)) == 1_500_000
    check(backend)


def test_limits_of_the_process_on_files():
    code = """
import resource, tempfile, ndx
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
with tempfile.TemporaryDirectory() as folder, ndx.use("mmap", directory=folder):
    x = ndx.ones(1000)
    try:
        ndx.ones(2**20)
    except ndx.OutOfMemoryError as error:
        print(folder in str(error), float(ndx.sum(x)))
    del x
"""
    assert run_python(code).split() == ["True", "1000.0"]


def test_no_more_descriptors():
    code = """
import os, tempfile, resource, ndx
with tempfile.TemporaryDirectory() as folder:
    with ndx.use("mmap", directory=folder):
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
        held = []
        try:
            while True: held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError: pass
        try:
            ndx.ones(2**20)
        except OSError as error:
            print(error.errno, "ulimit" in str(error))
        for fd in held: os.close(fd)
        print(float(ndx.sum(ndx.ones(2**20))))
"""
    assert run_python(code).split() == ["24", "True", "1048576.0"]


def float_of_one(x):
    return float(x[5])


def test_a_file_that_is_cut_short(tmp_path):
    with ndx.use("mmap", directory=tmp_path) as backend:
        x, y = ndx.ones(MIB), ndx.ones(1000)
        other = ndx.asarray([1.0, 2.0], copy=True)
    host = ndx.ones(1000)
    assert cut(tmp_path) >= 1
    for operation in (ndx.sum, ndx.sort, ndx.cumulative_sum, ndx.exp, float_of_one):
        with pytest.raises(ndx.MappedFileError, match="cut that short") as raised:
            operation(x)
        assert str(tmp_path) in raised.value.filename
    assert "lost" in repr(x)
    with pytest.raises(ndx.MappedFileError):
        float(ndx.sum(y))
    with pytest.raises(ndx.MappedFileError):
        other + 1
    # All else goes on, the pool too.
    assert float(ndx.sum(host)) == 1000
    with ndx.use(backend):
        z = ndx.ones(MIB) + ndx.ones(MIB)
        assert float(ndx.sum(z)) == 2 * MIB
        assert not bool(ndx.any(ndx.zeros(200_000)))
    x.close()
    del x, y, other
    with ndx.use(backend):
        for n in (10, 1000, 100_000, MIB):
            assert float(ndx.sum(ndx.ones(n))) == n


@pytest.mark.parametrize(
    "operation",
    [
        "x[...] = 2.0",
        "x[2:5] * 2",
        "x.detach() + 1",
        "x += 1",
        "np.asarray(x)[0] = 5; x[0] + 1",
        "ndx.add(ndx.ones(2**20), 1, out=x)",
        "ndx.matmul(x[:1000], x[:1000])",
        "ndx.any(x)",
        "ndx.take(x, ndx.asarray([3, 2**20 - 1]))",
        "ndx.where(x > 0, x, x)",
        "str(x)",
        "x.tolist()",
        "np.asarray(x).sum(); x.item() if x.ndim == 0 else float(x[0])",
        "ndx.linalg.vector_norm(x)",
        "ndx.fft.fft(x)",
        "bool(x[7])",
        "pickle.dumps(x)",
    ],
)
def test_no_operation_misses_a_loss(tmp_path, operation):
    with ndx.use("mmap", directory=tmp_path):
        x = ndx.ones(MIB)
    cut(tmp_path)
    names = {"x": x, "ndx": ndx, "np": np, "pickle": pickle}
    with pytest.raises(ndx.MappedFileError):
        exec(operation, names)


def test_a_disk_that_fails(tmp_path):
    """Pages were written out and dropped, and can't be read again: SIGBUS."""
    code = """
import os, sys, mmap, ctypes, ndx
with ndx.use("mmap", directory=sys.argv[1]):
    x, y = ndx.ones(2**20), ndx.ones(3)
# The process lets go of its pages, so that they leave the machine's memory.
libc = ctypes.CDLL(None, use_errno=True)
start = x.__array_interface__["data"][0] // 4096 * 4096
libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(x.nbytes), mmap.MADV_DONTNEED)
print("ready", flush=True)
sys.stdin.readline()
host = ndx.ones(1000)
for _ in range(2):
    try:
        print(float(ndx.sum(x)))
    except ndx.MappedFileError as error:
        print("lost", error.filename.startswith(sys.argv[1]))
print(float(ndx.sum(host)), float(ndx.sum(y)))
"""
    with breakable(tmp_path / "disk") as (folder, fail):
        process = start_python(code, folder)
        assert process.stdout.readline() == "ready\n"
        fail()
        words = finish_python(process, "go on\n").split()
    assert words == ["lost", "True", "lost", "True", "1000.0", "3.0"]


def test_the_directory_comes_from_the_environment(tmp_path):
    code = "import ndx; print(ndx.backends.get('mmap').directory)"
    for name in ("NDX_MMAP_DIRECTORY", "TMPDIR"):
        where = run_python(code, environment={name: str(tmp_path)})
        assert where.split() == [str(tmp_path)]
    bad = {"NDX_MMAP_DIRECTORY": str(tmp_path / "nowhere")}
    code = """
try:
    import ndx
except ValueError as error:
    print("NDX_MMAP_DIRECTORY" in str(error))
"""
    assert run_python(code, environment=bad).split() == ["True"]


def test_a_host_that_is_full_falls_back_to_files():
    with ndx.use("host", limit="1MiB", fallback="mmap") as backend:
        x, y = ndx.ones(50_000), ndx.ones(500_000)
        z = x[:10] + y[:10]
    assert backend.stats()["reserved_bytes"] <= MIB
    assert x.backend is backend
    assert y.backend is ndx.backends.get("mmap")
    address = y.__array_interface__["data"][0]
    maps = Path("/proc/self/maps").read_text().splitlines()
    for line in maps:
        low, high = (int(word, 16) for word in line.split()[0].split("-"))
        if low <= address < high:
            assert re.search(r"/var/tmp|/tmp|\(deleted\)", line)
            break
    else:
        pytest.fail("the address is in no mapping")
    assert z.tolist() == [2.0] * 10


def test_repr_names_the_backend(tmp_path):
    with ndx.use("mmap", directory=tmp_path):
        assert "backend='mmap'" in repr(ndx.ones(3))
