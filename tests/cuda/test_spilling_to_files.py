"""What neither a GPU nor the host has room for: files, where a GPU reaches them."""

import os

import pytest
from ndx._cuda.bridge import address_of

import ndx

from .conftest import check_that_release_waits, made_or_skip

MIB = 1 << 20


@pytest.fixture
def pageable(gpu, monkeypatch):
    """Let the GPU reach all memory of the process, or skip where a real one doesn't."""
    if gpu is None:
        made_or_skip(ndx.backends.get, "cudammap:0")
    else:
        monkeypatch.setattr(gpu, "pageable", True)
    return gpu


def mapped_files(directory):
    """Return the bytes of the address space that files of a folder are mapped to."""
    total = 0
    with open("/proc/self/maps") as maps:
        for line in maps:
            if f" {directory}/" in line:
                start, end = line.split()[0].split("-")
                total += int(end, 16) - int(start, 16)
    return total


def test_where_a_gpu_reaches_its_own_memory_only(machine):
    assert not machine.pageable
    for ask in (
        lambda: ndx.use("cudammap"),
        lambda: ndx.use("cuda:0", fallback="mmap"),
        lambda: ndx.workspace("refused", backend="cuda:0", spill="mmap"),
    ):
        with pytest.raises(ndx.DeviceError, match="PageableMemoryAccess.*spill='host'"):
            ask()
    # What the message proposes.
    x = ndx.arange(5, device="cuda:0")
    with ndx.use("mmap"):
        kept = x.to_device("cpu")
    assert kept.backend.name == "mmap"
    assert kept.tolist() == [0, 1, 2, 3, 4]


def test_by_name(pageable, tmp_path):
    with ndx.use("cudammap", directory=tmp_path, limit="8MiB") as backend:
        x = ndx.ones(MIB // 8)
        assert (x.device, backend.name) == ("cuda:0", "cudammap:0")
        assert backend.directory == backend.source.directory == str(tmp_path)
        assert mapped_files(tmp_path) == backend.stats()["reserved_bytes"] >= MIB
        assert backend.memory_info()[1] == os.statvfs(tmp_path).f_blocks * (
            os.statvfs(tmp_path).f_frsize)  # fmt: skip
        assert float(ndx.sum(x * 2)) == MIB // 4
        assert not bool(ndx.any(ndx.zeros_like(x)))
        assert x.to_device("cpu")[-1] == 1.0
        x[...] = ndx.full(MIB // 8, 3.0, device="cpu").to_device("cuda:0")
        assert float(ndx.max(x)) == float(ndx.min(x)) == 3.0
        with pytest.raises(TypeError, match=r"to_device\('cpu'\)"):
            memoryview(x)
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is"):
            ndx.empty(9 * MIB, dtype="int8")
        del x
        backend.trim()
        assert mapped_files(tmp_path) == 0
    assert os.listdir(tmp_path) == []


def test_what_others_are_given(pageable, tmp_path):
    with ndx.use("cudammap:0", directory=tmp_path):
        x = ndx.arange(1000)
    # From the address CuPy could not tell which GPU it is of; a capsule says so.
    with pytest.raises(BufferError, match="lies in a file.*from_dlpack"):
        x.__cuda_array_interface__  # noqa: B018
    y = ndx.from_dlpack(x)
    assert address_of(y) == address_of(x)
    assert y.tolist() == x.tolist()
    del y
    x.close()
    empty = ndx.zeros(0, device="cuda:0")
    assert empty.__cuda_array_interface__["data"] == (0, False)


def test_a_copy_to_another_gpu(pageable, machine, tmp_path):
    with ndx.use("cudammap:0", directory=tmp_path):
        x = ndx.arange(MIB // 8)
    with ndx.use("cudammap:1", directory=tmp_path):
        y = x.to_device("cuda:1")
    assert (x.backend.name, y.backend.name) == ("cudammap:0", "cudammap:1")
    assert bool(ndx.all(y.to_device("cpu") == x.to_device("cpu")))
    assert x.to_device("cuda:1").to_device("cpu")[-1] == MIB // 8 - 1


def test_from_the_gpu_to_the_host_to_files(pageable, tmp_path):
    host = ndx.backends.get(
        "cudahost:0", limit="2MiB",
        fallback=ndx.backends.get("cudammap:0", directory=tmp_path))  # fmt: skip
    with ndx.use("cuda:0", limit="2MiB", fallback=host):
        arrays = [ndx.full(MIB // 8, float(i)) for i in range(6)]
        names = [x.backend.name for x in arrays]
        assert names == sorted(names)  # the GPU, the host, and files
        assert set(names) == {"cuda:0", "cudahost:0", "cudammap:0"}
        stacked = ndx.stack([x[-1] for x in arrays])
        assert stacked.to_device("cpu").tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        del arrays, stacked
    assert host.stats()["allocated_bytes"] == 0
    assert host.fallback.stats()["allocated_bytes"] == 0


def test_the_names_of_fallbacks(pageable):
    with ndx.use("cuda:0", limit="2MiB", fallback="mmap") as backend:
        assert backend.fallback is ndx.backends.get("cudammap:0")
    host = ndx.backends.get("cudahost:0", limit="2MiB", fallback="mmap")
    assert host.fallback is ndx.backends.get("cudammap:0")


@pytest.mark.parametrize("learn", ["first", "liveness"])
def test_spill_mmap(pageable, learn):
    files = ndx.backends.get("cudammap:0")
    with ndx.use("cuda:0", limit="6MiB"):
        ws = ndx.workspace("step", size="1MiB", spill="mmap", learn=learn)
        for _ in range(3):
            with ws:
                arrays = [ndx.full(MIB // 8, float(i)) for i in range(10)]
                held = files.stats()["allocated_bytes"]
                assert MIB <= held < 10 * MIB
                assert {x.device for x in arrays} == {ndx.Device("cuda:0")}
                assert float(ndx.sum(ndx.stack([x[-1] for x in arrays]))) == 45.0
                assert ws.stats()["spilled_bytes"] >= held
            with pytest.raises(ndx.StaleArrayError):
                arrays[-1] + 1
            del arrays
            assert files.stats()["allocated_bytes"] == 0
        ws.destroy()


def test_it_waits_for_its_streams(pageable, machine, stand_in):
    with ndx.use("cudammap:0", limit="4MiB") as backend:
        streams = check_that_release_waits(machine, stand_in)
        for each in streams:
            backend.close_stream(each.ptr)


def test_bad_folders(pageable, tmp_path):
    with pytest.raises(FileNotFoundError, match="directory="):
        ndx.use("cudammap:0", directory=tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        ndx.use("cudammap:0", directory=tmp_path / "file")
    with pytest.raises(TypeError, match="directory"):
        ndx.use("cuda:0", directory=tmp_path)
