"""NumPy's functions of files in `ndx.numpy`: NDArrays go in and come out."""

import copy
import errno
import io
import os

import numpy as np
import pytest

import ndx
import ndx.numpy as face

MATRIX = np.arange(12.0).reshape(3, 4) / 3


def same(found, expected):
    assert isinstance(found, ndx.NDArray)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("order", "CF")
def test_npy(tmp_path, order):
    a = np.asarray(MATRIX, order=order)
    path = tmp_path / "a.npy"
    face.save(path, ndx.asarray(a))
    same(face.load(path), a)
    assert np.array_equal(np.load(path), a)
    with open(path, "rb") as file:
        same(face.load(file), a)


def test_npy_of_numpys_save(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, ndx.asarray(MATRIX))
    assert np.array_equal(np.load(path), MATRIX)


def test_loaded_arrays_are_in_the_current_backend(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.ones(10_000))
    with ndx.use("host") as backend:
        x = face.load(path)
        assert x.backend is backend
        assert backend.stats()["allocated_bytes"] >= 80_000


@pytest.mark.parametrize("save", ["savez", "savez_compressed"])
def test_npz(tmp_path, save):
    path = tmp_path / "a.npz"
    x = ndx.asarray(MATRIX)
    getattr(face, save)(path, x, second=x[0])
    with face.load(path) as archive:
        assert archive.files == ["second", "arr_0"]
        assert set(archive) == {"second", "arr_0"}
        assert len(archive) == 2
        assert "second" in archive
        same(archive["arr_0"], MATRIX)
        same(archive["second"], MATRIX[0])
        with pytest.raises(KeyError):
            archive["third"]
        same(archive.f.second, MATRIX[0])
        assert set(dir(archive.f)) == set(archive)
        with pytest.raises(AttributeError):
            _ = archive.f.third
        assert archive.zip.namelist() == ["second.npy", "arr_0.npy"]
    with np.load(path) as archive:
        assert np.array_equal(archive["arr_0"], MATRIX)


def test_memory_maps_are_views_of_the_file(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, MATRIX)
    x = face.load(path, mmap_mode="r")
    assert np.array_equal(np.asarray(x), MATRIX)


def test_text(tmp_path):
    path = tmp_path / "a.txt"
    x = ndx.asarray(MATRIX)
    face.savetxt(path, x, delimiter=",", header="four columns")
    same(face.loadtxt(path, delimiter=","), np.loadtxt(path, delimiter=","))
    same(face.genfromtxt(path, delimiter=","), np.genfromtxt(path, delimiter=","))
    columns = face.loadtxt(path, delimiter=",", unpack=True, usecols=(0, 2))
    assert columns.shape == (2, 3)


def test_text_as_numpy_writes_it():
    ours, numpys = io.StringIO(), io.StringIO()
    face.savetxt(ours, ndx.asarray(MATRIX), fmt="%.3f")
    np.savetxt(numpys, MATRIX, fmt="%.3f")
    assert ours.getvalue() == numpys.getvalue()


def test_raw_bytes(tmp_path):
    path = tmp_path / "a.bin"
    x = ndx.asarray(MATRIX)
    x.tofile(path)
    same(face.fromfile(path), MATRIX.ravel())
    same(face.fromfile(path, dtype=np.float32), MATRIX.ravel().view(np.float32))
    same(face.frombuffer(x.tobytes()), MATRIX.ravel())


def test_regular_expressions(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 foo\n2 bar\n")
    found = face.fromregex(path, r"(\d+)\s+(...)", [("n", np.int64), ("s", "S3")])
    assert type(found) is np.ndarray  # structured: NumPy's own
    assert found["n"].tolist() == [1, 2]


def test_records_stay_numpys(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,x\n2,y\n")
    found = face.genfromtxt(
        path, delimiter=",", names=True, dtype=None, encoding="utf8"
    )
    assert type(found) is np.ndarray
    assert found.dtype.names == ("a", "b")


def test_files_that_are_missing_or_bad(tmp_path):
    with pytest.raises(FileNotFoundError):
        face.load(tmp_path / "none.npy")
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00nonsense")
    with pytest.raises(ValueError, match=r"."):
        face.load(tmp_path / "bad.npy")


def test_stale_arrays_are_not_written(tmp_path):
    with ndx.workspace("files"):
        x = ndx.ones(3)
    path = tmp_path / "a.npy"
    for write in (face.save, face.savetxt, face.savez, np.save, np.savetxt):
        with pytest.raises(ndx.StaleArrayError):
            write(path, x)


WRITERS = {
    "save": (face.save, ".npy", np.load),
    "numpy.save": (np.save, ".npy", np.load),
    "savez": (face.savez, ".npz", lambda path: np.load(path)["arr_0"]),
    "savez_compressed": (
        face.savez_compressed,
        ".npz",
        lambda path: np.load(path)["arr_0"],
    ),
    "savetxt": (face.savetxt, ".txt", np.loadtxt),
    "savetxt, packed": (face.savetxt, ".txt.gz", np.loadtxt),
    "tofile": (lambda path, x: x.tofile(path), ".bin", np.fromfile),
    "tofile as text": (
        lambda path, x: x.tofile(path, sep=" "),
        ".txt",
        lambda path: np.fromfile(path, sep=" "),
    ),
    "dump": (
        lambda path, x: x.dump(path),
        ".pickle",
        lambda path: np.asarray(np.load(path, allow_pickle=True)),
    ),
}


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@pytest.mark.parametrize("name", WRITERS)
def test_arrays_are_written_to_the_file_that_they_are_mapped_from(tmp_path, name, mode):
    write, suffix, read = WRITERS[name]
    path = tmp_path / f"a{suffix}"
    a = np.arange(20_000.0)
    ndx.save(path, a)
    x = ndx.open(path, mode)
    write(path, x)
    assert np.array_equal(read(path), a)
    assert np.array_equal(x, a)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_that_fails_leaves_the_old_file(tmp_path, name, monkeypatch):
    write, suffix, _ = WRITERS[name]
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"old")

    def refuse(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="what was there is as it was"):
        write(path, ndx.ones(3))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_of_numpys_writers_leave_the_old_file(tmp_path):
    path = tmp_path / "a.npy"
    face.save(path, ndx.ones(3))
    with pytest.raises(ValueError, match="allow_pickle"):
        face.save(path, np.array([None]), allow_pickle=False)
    assert np.array_equal(np.load(path), np.ones(3))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["savetxt", "tofile", "dump"])
def test_devices_are_written_to_as_they_are(name):
    WRITERS[name][0](os.devnull, ndx.ones(3))
    assert not os.path.isfile(os.devnull)


def test_suffixes_are_numpys(tmp_path):
    face.save(tmp_path / "a", ndx.ones(3))
    face.savez(file=tmp_path / "b", x=ndx.ones(3))
    face.savetxt(fname=str(tmp_path / "c"), X=ndx.ones(3), header="é")
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "b.npz", "c"]
    assert (tmp_path / "c").read_text().startswith("# é\n")


def test_text_is_numpys(tmp_path):
    a = np.arange(6.0).reshape(2, 3) / 7
    options = {"fmt": "%.3f", "delimiter": ";", "header": "é", "encoding": "utf-8"}
    face.savetxt(tmp_path / "a", ndx.asarray(a), **options)
    np.savetxt(tmp_path / "b", a, **options)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_an_archive_claims_works(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez(path, first=MATRIX, second=MATRIX[0])
    with face.load(path) as archive:
        assert isinstance(archive, np.lib.npyio.NpzFile)
        for read in archive.get, archive.__getitem__, dict(archive.items()).get:
            assert isinstance(read("first"), ndx.NDArray)
        with pytest.raises(TypeError):
            reversed(archive)
        # The names' attributes are no endless recursion.
        with pytest.raises((TypeError, copy.Error)):
            copy.copy(archive.f)
        monkeypatch.setattr(np.lib.format, "read_array", None)
        # Looking for a name reads no array.
        assert "first" in archive
        assert "first" in archive.keys()  # noqa: SIM118
        assert "third" not in archive


@pytest.mark.parametrize("name", ["save", "savez"])
def test_a_write_names_the_file_that_the_array_is_mapped_from(tmp_path, name):
    np.save(tmp_path / "x.npy", np.arange(1_000_000.0))
    x = ndx.open(tmp_path / "x.npy", "r")
    os.truncate(tmp_path / "x.npy", 50_000)
    with pytest.raises(ndx.MappedFileError, match="cut it short"):
        getattr(face, name)(tmp_path / "copy", x)
    assert os.listdir(tmp_path) == ["x.npy"]
