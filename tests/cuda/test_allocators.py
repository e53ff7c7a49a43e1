"""CuPy's own arrays in the memory of ndx."""

import sys

import pytest

import ndx
from ndx.backends import _cupy


def test_cupys_memory_is_ours(gpu):
    backend = ndx.backends.get("cuda:0", limit="4MiB")
    with ndx.use(backend):
        pointer = ndx.cuda.cupy_allocator(1000)
        assert backend.stats()["allocated_bytes"] == 1000
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.cuda.cupy_allocator(8 << 20)
    del pointer
    assert backend.stats()["allocated_bytes"] == 0


def test_as_cupys_allocator(gpu):
    cupy = _cupy.load()
    backend = ndx.backends.get("cuda:0", limit="4MiB")
    with ndx.use(backend), cupy.cuda.using_allocator(ndx.cuda.cupy_allocator):
        x = cupy.empty((100,), "float64")
        assert backend.stats()["allocated_bytes"] == 800
        with ndx.workspace("cupys", size="64KiB"):
            cupy.empty((10,), "float64")
            assert backend.stats()["allocated_bytes"] == 800 + 65536
    assert x.shape == (100,)
    ndx.workspace("cupys").destroy()
    del x
    assert backend.stats()["allocated_bytes"] == 0


def test_without_cupy(monkeypatch):
    monkeypatch.setattr(_cupy, "_cupy", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ndx.DeviceError):
        ndx.cuda.cupy_allocator(1000)
