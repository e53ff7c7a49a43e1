"""joblib sends, stores and hashes NDArrays."""

import numpy as np
import pytest
from helpers.consumers import FEATURES

import ndx
from ndx.testing import assert_equal

joblib = pytest.importorskip("joblib")


@pytest.fixture
def _no_process_left():
    yield
    # Its processes would wait for minutes, and be children of other tests too.
    joblib.externals.loky.get_reusable_executor().shutdown(kill_workers=True)


@pytest.mark.threads
@pytest.mark.usefixtures("_no_process_left")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_calls_in_parallel(backend):
    x = ndx.asarray(FEATURES)
    sums = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(np.sum)(x[i:], axis=0) for i in range(3)
    )
    for i, found in enumerate(sums):
        assert isinstance(found, ndx.NDArray)
        assert_equal(found, np.asarray(ndx.sum(x[i:], axis=0)))


@pytest.mark.parametrize("compress", [0, 3])
def test_dumps_and_loads(tmp_path, compress):
    path = tmp_path / "x.joblib"
    joblib.dump({"x": ndx.asarray(FEATURES)}, path, compress=compress)
    found = joblib.load(path)["x"]
    assert isinstance(found, ndx.NDArray)
    assert_equal(found, FEATURES)


def test_equal_arrays_have_equal_hashes():
    x = ndx.asarray(FEATURES)
    assert joblib.hash(x) == joblib.hash(ndx.asarray(x, copy=True))
    assert joblib.hash(x[::2]) == joblib.hash(ndx.asarray(FEATURES[::2], copy=True))
    assert joblib.hash(x) != joblib.hash(x + 1)
    assert joblib.hash(x) != joblib.hash(ndx.astype(x, ndx.float32))


def test_remembers_results(tmp_path):
    calls = []

    def total(x):
        calls.append(1)
        return ndx.sum(x, axis=0)

    remembered = joblib.Memory(tmp_path, verbose=0).cache(total)
    for _ in range(2):
        found = remembered(ndx.asarray(FEATURES))
        assert isinstance(found, ndx.NDArray)
    assert len(calls) == 1
