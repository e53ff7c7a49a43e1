"""What tools with processes of their own need, and anybody may use."""

import gc
import os
import pickle
import sys

import numpy as np
import pytest

import ndx


@pytest.fixture
def saved(tmp_path):
    path = os.fspath(tmp_path / "x.npy")
    ndx.save(path, ndx.arange(1000.0))
    return path


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_an_array_outlives_the_name_of_its_file(saved, mode):
    x = ndx.open(saved, mode, unlink=True)
    assert not os.path.exists(saved)
    assert float(ndx.sum(x)) == 499500.0


def test_a_new_file_may_have_no_name(tmp_path):
    x = ndx.open(tmp_path / "new.npy", "w+", shape=3, unlink=True)
    x[...] = 1.0
    assert os.listdir(tmp_path) == []
    assert x.tolist() == [1.0] * 3


def test_a_file_that_can_t_be_opened_keeps_its_name(saved):
    with pytest.raises(ValueError, match="has shape"):
        ndx.open(saved, shape=3, unlink=True)
    assert os.path.exists(saved)


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/shm, /proc/self/fd")
def test_arrays_in_shared_memory_take_no_descriptors():
    before = len(os.listdir("/proc/self/fd"))
    arrays = []
    for i in range(20):
        path = f"/dev/shm/ndx-test-{os.getpid()}-{i}.npy"
        ndx.save(path, ndx.full(1000, float(i)))
        arrays.append(ndx.open(path, "r+", unlink=True))
    assert len(os.listdir("/proc/self/fd")) == before
    assert [float(x[-1]) for x in arrays] == list(range(20))


def test_process_info_counts_all_backends():
    # What other tests left would go meanwhile.
    gc.collect()
    ndx.memory.empty_cache()
    before = ndx.memory.process_info()
    x = ndx.backends.get("host", limit="64MiB")
    with ndx.use(x):
        made = ndx.ones(1_000_000)
        after = ndx.memory.process_info()
    assert after.reserved >= before.reserved + made.nbytes
    assert after.peak_reserved >= after.reserved
    if sys.platform == "linux":
        assert after.resident > made.nbytes


def test_limits_are_set_as_they_were():
    before = ndx.memory.limits()
    ndx.memory.set_limit("3GiB", process="6GiB")
    changed = ndx.memory.limits()
    ndx.memory.set_limits(before)
    assert ndx.memory.limits() == before
    ndx.memory.set_limits(changed)
    assert ndx.memory.limits() == changed
    ndx.memory.set_limits({})
    assert ndx.memory.limits() == {}
    ndx.memory.set_limits(before)


def test_a_recipe_travels_with_fallback_and_bounds():
    fallback = ndx.backends.get("mmap", limit="1GiB")
    backend = ndx.backends.get("host", limit="64MiB", fallback=fallback)
    bounded = ndx.memory.LimitingAdaptor(ndx.memory.TrackingAdaptor(backend), "32MiB")
    recipe = pickle.loads(pickle.dumps(ndx.memory.BackendRecipe.of(bounded)))
    made = recipe.make()
    assert made.allowed == 32 << 20
    assert made.upstream.limit == 64 << 20
    assert made.upstream.fallback.limit == 1 << 30
    assert made.upstream is not backend


class Own(ndx.backends.PythonBackend):
    """A backend of a user's, that is not registered."""


def test_a_recipe_of_an_unregistered_backend_is_for_forks():
    own = Own()
    with pytest.raises(TypeError, match=r"call ndx\.backends\.register|Call ndx"):
        ndx.memory.BackendRecipe.of(own)
    assert ndx.memory.BackendRecipe.of(own, forked=True).make() is own


def test_a_default_is_replaced_where_it_is_one():
    before = ndx.current_backend()
    made, other = (ndx.backends.get("host", limit=n) for n in ("1GiB", "2GiB"))
    ndx.memory.replace_default(other, made)
    assert ndx.current_backend() is before
    ndx.memory.replace_default(before, made)
    try:
        assert ndx.current_backend() is made
    finally:
        ndx.memory.replace_default(made, before)
    assert ndx.current_backend() is before


def test_an_error_of_numpy_gets_its_cause_without_a_scope():
    ndx.set_default("host", limit="1MiB", numpy=True)
    try:
        with pytest.raises(MemoryError) as caught:
            np.ones(10**6)
        assert caught.value.__cause__ is None
        ndx.memory.explain_error(caught.value)
        assert isinstance(caught.value.__cause__, ndx.OutOfMemoryError)
        other = MemoryError("of somebody else")
        ndx.memory.explain_error(other)
        assert other.__cause__ is None
    finally:
        ndx.set_default("host", numpy=False)


def test_a_trace_tells_before_it_records_whether_it_can_be_saved(tmp_path):
    trace = ndx.memory.record()
    trace.check_path(tmp_path / "trace.html")
    with pytest.raises(ValueError, match="the suffix says the format"):
        trace.check_path(tmp_path / "trace.txt")
    with pytest.raises(ValueError, match="no folder that can be written to"):
        trace.check_path(tmp_path / "missing" / "trace.html")
