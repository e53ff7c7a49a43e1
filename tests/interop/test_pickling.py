"""Functions and arrays travel to other processes: pickle, cloudpickle, pools."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import cloudpickle
import pytest
from helpers.consumers import MATRIX

import ndx
from ndx.testing import assert_equal

MODULES = {"ndx": ndx, "linalg": ndx.linalg, "fft": ndx.fft, "random": ndx.random}
PUBLIC = {
    f"{prefix}.{name}": value
    for prefix, module in MODULES.items()
    for name, value in vars(module).items()
    if not name.startswith("_") and callable(value)
    if getattr(value, "__module__", "").startswith("ndx")
}


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("name", PUBLIC)
def test_public_functions_pickle_by_name(name, protocol):
    data = pickle.dumps(PUBLIC[name], protocol)
    assert pickle.loads(data) is PUBLIC[name]
    assert len(data) < 100


def test_cloudpickle_takes_closures_over_functions_and_arrays():
    x = ndx.asarray(MATRIX)

    def closure(y):
        return ndx.sum(ndx.exp(x) * y)

    again = pickle.loads(cloudpickle.dumps(closure))
    assert_equal(again(2), closure(2))
    assert len(cloudpickle.dumps(closure)) < 3000


def test_cloudpickle_takes_the_namespace():
    assert pickle.loads(cloudpickle.dumps(ndx)) is ndx


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_process_pools():
    parts = [ndx.asarray(MATRIX) + i for i in range(4)]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for part, result in zip(parts, pool.map(ndx.exp, parts), strict=True):
            assert_equal(result, ndx.exp(part))
