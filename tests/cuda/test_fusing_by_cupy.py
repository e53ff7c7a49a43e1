"""Kernels of fused functions, as CuPy's own tracer sees them. It needs no GPU."""

import importlib

import numpy as np
import pytest

import ndx
from ndx._cuda import fusing
from ndx._fusing import rules
from ndx._fusing.calls import UFUNCS
from ndx._fusing.recording import record
from ndx.backends import _cupy

cupy = pytest.importorskip("cupy", exc_type=ImportError)

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
          "uint64", "float32", "float64", "complex64", "complex128"]  # fmt: skip
ADDRESS = 1 << 40


@pytest.fixture(autouse=True)
def _by_cupy():
    # The attribute of the package may be that of the stand-in.
    namespace = importlib.import_module("array_api_compat.cupy")
    with _cupy.replaced(cupy, namespace, None, None):
        yield


def on_no_gpu(leaf):
    """Return CuPy's array for a leaf, at an address that nobody reads."""
    memory = cupy.cuda.UnownedMemory(ADDRESS, 1 << 20, None, 0)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    return cupy.ndarray(leaf.shape, rules.dtype_of(leaf.code), pointer, leaf.strides)


def traced(function, arrays, monkeypatch):
    """Return CuPy's kernels for the launches of a function; None: it is not fused."""
    from cupy._core import fusion

    found = []

    def fuse(kernel_name):
        return lambda steps: found.append(steps)

    monkeypatch.setattr(cupy, "fuse", fuse)
    recording = record(function, tuple(arrays), {}, on_device=True)
    if recording.program is None:
        return None
    try:
        fusing.FusedCall(recording.program)
    except NotImplementedError:
        return None
    kernels = []
    launches = [x for x in recording.program.launches if not hasattr(x, "axes")]
    for launch, steps in zip(launches, found, strict=True):
        values = [np.ones((), rules.dtype_of(code))[()] for _, code in launch.scalars]
        history = fusion._FusionHistory()
        fusion._thread_local.history = history
        fusion._thread_local.is_old_fusing = True
        try:
            args = [*map(on_no_gpu, launch.leaves), *values]
            kernels.append(history.get_fusion(steps, args, "ndx_fused")[0])
        finally:
            fusion._thread_local.history = None
            fusion._thread_local.is_old_fusing = False
    return kernels


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_operations_are_kernels(name, monkeypatch):
    count = 0
    for dtype in DTYPES:
        arrays = [ndx.ones((2, 3), dtype=dtype)] * rules.nin_of(name)
        kernels = traced(getattr(ndx, name), arrays, monkeypatch)
        if kernels is not None:
            count += 1
            (kernel,) = kernels
            assert not kernel.out_params
            assert sum(not x.is_const for x in kernel.in_params) == 1
    assert count


def test_what_is_in_place_is_written(monkeypatch):
    def step(u, v):
        inner = u[1:-1] + v[1:-1] * 2.0
        u[1:-1] = ndx.where(inner > 1, inner, 0)
        v += ndx.astype(u, ndx.float32)
        return ndx.max(v, axis=0)

    arrays = ndx.ones((9, 4)), ndx.ones((9, 4), dtype="float32")
    kernels = traced(step, arrays, monkeypatch)
    assert [sum(not x.is_const for x in k.in_params) for k in kernels] == [1, 1]
    assert all(not kernel.out_params for kernel in kernels)
