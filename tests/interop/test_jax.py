"""JAX and ndx exchange arrays by DLPack, on the CPU."""

import numpy as np
import pytest
from helpers.consumers import MATRIX

import ndx
from ndx.testing import assert_allclose, assert_equal

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


@pytest.fixture(autouse=True)
def _on_the_cpu_in_64_bits():
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "complex64"])
def test_jax_takes_ndarrays(dtype):
    x = ndx.asarray((MATRIX * 4).astype(dtype))
    found = jnp.from_dlpack(x)
    assert found.dtype == x.dtype
    assert np.array_equal(np.asarray(found), np.asarray(x))
    assert np.array_equal(np.asarray(jnp.asarray(x)), np.asarray(x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "complex64"])
def test_ndx_takes_arrays_of_jax(dtype):
    x = jnp.asarray(MATRIX * 4).astype(dtype)
    found = ndx.from_dlpack(x)
    assert isinstance(found, ndx.NDArray)
    assert_equal(found, np.asarray(x))
    assert np.shares_memory(np.asarray(found), np.asarray(x))


def test_the_memory_is_shared_where_it_is_aligned():
    x = ndx.ones((64, 64))
    found = jnp.from_dlpack(x, copy=False)
    assert found.unsafe_buffer_pointer() == np.asarray(x).ctypes.data


def test_a_compiled_function_in_a_loop():
    step = jax.jit(lambda x: jnp.tanh(x) * 2 + 1)
    x, expected = ndx.asarray(MATRIX), MATRIX
    for _ in range(3):
        x = ndx.from_dlpack(step(jnp.from_dlpack(x))) / 2
        expected = (np.tanh(expected) * 2 + 1) / 2
    assert_allclose(x, expected, rtol=1e-12)


def test_memory_of_a_workspace_is_not_recycled_while_jax_has_it():
    with ndx.workspace("step", size="4KiB"):
        found = jnp.from_dlpack(ndx.full(100, 7.0))
    for _ in range(3):
        with ndx.workspace("step"):
            ndx.zeros(300)
    assert float(found.sum()) == 700.0
    del found


def test_stale_arrays_are_refused():
    with ndx.workspace():
        x = ndx.ones(3)
    with pytest.raises(ndx.StaleArrayError):
        jnp.from_dlpack(x)
