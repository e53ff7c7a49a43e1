"""zarr stores NDArrays, and reads them if it is told to."""

import numpy as np
import pytest
from helpers.consumers import FEATURES

import ndx
from ndx.testing import assert_equal

zarr = pytest.importorskip("zarr", minversion="3")

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3:UserWarning")


def test_stores_ndarrays():
    x = ndx.asarray(FEATURES)
    assert np.array_equal(zarr.array(x)[...], FEATURES)
    assert np.array_equal(zarr.array(x[::2], chunks=(4, 2))[3:], FEATURES[::2][3:])
    assert np.array_equal(zarr.create_array({}, data=x)[...], FEATURES)


def test_saves_and_loads(tmp_path):
    zarr.save(tmp_path / "x.zarr", ndx.asarray(FEATURES))
    assert np.array_equal(zarr.load(tmp_path / "x.zarr"), FEATURES)


def test_parts_are_set_and_selected_by_ndarrays():
    z = zarr.zeros((30, 4), chunks=(7, 2))
    z[...] = ndx.asarray(FEATURES)
    z[3] = ndx.ones(4)
    z[0, 0] = ndx.asarray(7.0)
    expected = FEATURES.copy()
    expected[3], expected[0, 0] = 1.0, 7.0
    assert np.array_equal(z[...], expected)
    rows = ndx.asarray([0, 3, 5])
    assert np.array_equal(z.oindex[rows], expected[[0, 3, 5]])
    assert np.array_equal(z.get_mask_selection(z[...] > 0.5), expected[expected > 0.5])


@pytest.fixture
def reads_ndarrays():
    with zarr.config.set({"ndbuffer": "ndx.zarr.NDBuffer"}):
        yield


@pytest.mark.parametrize("options", [{}, {"compressors": None}, {"shards": (10, 4)}])
def test_reads_ndarrays(reads_ndarrays, options):
    z = zarr.create_array({}, shape=(30, 4), chunks=(5, 2), dtype="f8", **options)
    z[...] = ndx.asarray(FEATURES)
    for key in (..., np.s_[3:17, ::2], np.s_[5], np.s_[:, 1]):
        assert isinstance(z[key], ndx.NDArray)
        assert_equal(z[key], FEATURES[key])
    assert_equal(z.oindex[[1, 20]], FEATURES[[1, 20]])
    assert_equal(z.vindex[[1, 20], [2, 3]], FEATURES[[1, 20], [2, 3]])


def test_reads_the_value_of_empty_chunks(reads_ndarrays):
    z = zarr.create_array({}, shape=5, chunks=2, dtype="f4", fill_value=3)
    z[1:3] = ndx.ones(2)
    assert_equal(z[...], np.asarray([3, 1, 1, 3, 3], dtype=np.float32))


def test_strings_stay_with_numpy(reads_ndarrays):
    z = zarr.create_array({}, shape=3, dtype=str)
    z[:] = np.asarray(["a", "bc", "d"])
    assert type(z[:]) is np.ndarray
    assert z[:].tolist() == ["a", "bc", "d"]


def test_reads_numpy_arrays_by_default():
    assert type(zarr.array(ndx.ones(3))[...]) is np.ndarray


def test_an_array_of_zarr_becomes_an_ndarray():
    assert_equal(ndx.asarray(zarr.array(ndx.asarray(FEATURES))[...]), FEATURES)
