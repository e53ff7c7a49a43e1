"""h5py reads into NDArrays, and writes them."""

import numpy as np
import pytest
from helpers.consumers import FEATURES

import ndx
from ndx.testing import assert_equal

h5py = pytest.importorskip("h5py")


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        yield file


def test_writes_ndarrays(file):
    x = ndx.asarray(FEATURES)
    file["assigned"] = x
    file.create_dataset("created", data=x[::2], chunks=(5, 2), compression="gzip")
    file.create_dataset("set", shape=(30, 4), dtype="f8")[2:4] = x[:2]
    file.attrs["x"] = x[0]
    assert np.array_equal(file["assigned"][...], FEATURES)
    assert np.array_equal(file["created"][...], FEATURES[::2])
    assert np.array_equal(file["set"][2:4], FEATURES[:2])
    assert np.array_equal(file.attrs["x"], FEATURES[0])


def test_reads_into_an_ndarray(file):
    file["x"] = FEATURES
    x = ndx.zeros((30, 4))
    file["x"].read_direct(x)
    assert_equal(x, FEATURES)


def test_reads_a_selection_into_a_part(file):
    file["x"] = FEATURES
    x = ndx.zeros((3, 4))
    file["x"].read_direct(x, np.s_[5:7], dest_sel=np.s_[1:])
    assert_equal(x, np.concatenate([np.zeros((1, 4)), FEATURES[5:7]]))


def test_reads_into_a_file_in_memory_of_ndx(file, tmp_path):
    file["x"] = FEATURES
    with ndx.use("mmap", directory=str(tmp_path)):
        x = ndx.zeros((30, 4))
    file["x"].read_direct(x)
    assert_equal(x, FEATURES)


def test_writes_an_ndarray_directly(file):
    data = file.create_dataset("x", (30, 4), dtype="f8")
    data.write_direct(ndx.asarray(FEATURES))
    assert np.array_equal(data[...], FEATURES)


@pytest.mark.parametrize(
    "x", [ndx.zeros((30, 8))[:, ::2], ndx.broadcast_to(ndx.zeros(4), (30, 4))]
)
def test_refuses_what_it_refuses_of_numpy(file, x):
    file["x"] = FEATURES
    with pytest.raises(TypeError, match="C-contiguous and writable"):
        file["x"].read_direct(x)


def test_refuses_stale_arrays(file):
    file["x"] = FEATURES
    with ndx.workspace():
        x = ndx.zeros((30, 4))
    with pytest.raises(ndx.StaleArrayError):
        file["x"].read_direct(x)
    with pytest.raises(ndx.StaleArrayError):
        file["y"] = x


def test_numpy_arrays_are_read_as_before(file):
    file["x"] = FEATURES
    x = np.zeros((30, 4))
    file["x"].read_direct(x)
    assert np.array_equal(x, FEATURES)


def test_indexes_by_an_ndarray(file):
    file["x"] = FEATURES
    assert np.array_equal(file["x"][ndx.asarray([0, 2])], FEATURES[[0, 2]])
