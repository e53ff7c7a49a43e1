"""Without CuPy, a driver or a GPU: clear errors, and nothing else is affected."""

import subprocess
import sys
import types

import pytest

import ndx
from ndx.backends import _cupy

CALLS = [
    lambda: ndx.use("cuda"),
    lambda: ndx.use("cuda:1", limit="1GiB"),
    lambda: ndx.use("pinned", limit="1GiB"),
    lambda: ndx.zeros(3, device="cuda:0"),
    lambda: ndx.asarray([1, 2], device="cuda"),
    lambda: ndx.ones(3).to_device("cuda:0"),
    lambda: ndx.zeros_like(ndx.ones(3), device="cuda:0"),
    lambda: ndx.workspace("step", backend="cuda"),
    lambda: ndx.synchronize("cuda:0"),
]


@pytest.fixture
def without(monkeypatch):
    """Return a function that lets CuPy be missing, or see what it is told to."""
    monkeypatch.setattr(_cupy, "_cupy", None)
    # Shared ones are there already, where an earlier test used a GPU.
    monkeypatch.setattr(ndx.backends._registry, "_shared", {})

    def set_up(module):
        monkeypatch.setitem(sys.modules, "cupy", module)

    return set_up


class DynamicLibNotFoundError(RuntimeError):
    """As of ``cuda.pathfinder``, by which CuPy looks for CUDA's libraries."""


def cupy_that(getDeviceCount, libraries=True):
    class Failure(RuntimeError):
        def __init__(self, status):
            super().__init__(f"status {status}")
            self.status = status

    def count():
        found = getDeviceCount
        if found < 0:
            raise Failure(-found)
        return found

    def version():
        if not libraries:
            name = "libnvrtc.so.13"
            message = f'Failure finding "{name}": No such file: {name}\n'
            raise DynamicLibNotFoundError(message)
        return 13, 0

    runtime = types.SimpleNamespace(CUDARuntimeError=Failure, getDeviceCount=count)
    nvrtc = types.SimpleNamespace(getVersion=version)
    return types.SimpleNamespace(
        cuda=types.SimpleNamespace(runtime=runtime, nvrtc=nvrtc)
    )


@pytest.mark.parametrize("call", CALLS)
def test_cupy_is_missing(without, call):
    without(None)
    with pytest.raises(
        ndx.DeviceError, match=r"CuPy .*pip install 'ndxarray\[cuda13\]'"
    ):
        call()


@pytest.mark.parametrize("call", CALLS)
def test_the_driver_is_missing(without, call):
    without(cupy_that(-35))
    with pytest.raises(ndx.DeviceError, match="no NVIDIA driver"):
        call()


@pytest.mark.parametrize("call", CALLS)
def test_the_libraries_are_missing(without, call):
    without(cupy_that(1, libraries=False))
    expected = (
        r"CUDA's libraries, .*\(Failure finding \"libnvrtc.so.13\": No such file: "
        r"libnvrtc.so.13\)\. .*pip install 'ndxarray\[cuda13\]'"
    )
    with pytest.raises(ndx.DeviceError, match=expected) as raised:
        call()
    assert isinstance(raised.value.__cause__, DynamicLibNotFoundError)
    assert ndx.__array_namespace_info__().devices() == ("cpu",)


def test_the_libraries_are_looked_for_once(without):
    module = cupy_that(1)
    without(module)
    assert _cupy.load() is module
    module.cuda.nvrtc = None
    assert _cupy.load() is _cupy.check_device(0) is module


def test_array_api_compat_is_missing(without, monkeypatch):
    without(cupy_that(1))
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    expected = r"array-api-compat .*pip install 'ndxarray\[cuda13\]'"
    with pytest.raises(ndx.DeviceError, match=expected):
        ndx.use("cuda")


@pytest.mark.parametrize("count", [-100, 0])
def test_the_gpu_is_missing(without, count):
    without(cupy_that(count))
    with pytest.raises(ndx.DeviceError, match="no GPU"):
        ndx.use("cuda")
    assert ndx.__array_namespace_info__().devices() == ("cpu",)


def test_there_are_fewer_gpus(gpu):
    with pytest.raises(ndx.DeviceError, match=r"no GPU 'cuda:9'; available: 'cuda:0'"):
        ndx.use("cuda:9")


@pytest.mark.parametrize("name", ["cuda:", "cuda:x", "cuda:-1", "gpu", "cuda:0:1", 3])
def test_no_such_device(name):
    with pytest.raises(ValueError, match="no device"):
        ndx.zeros(3, device=name)


def test_import_leaves_cupy_alone():
    code = (
        "import sys; sys.modules['cupy'] = None; import ndx; "
        "x = ndx.ones(3) + ndx.zeros(3, device='cpu'); ndx.synchronize(); "
        "assert float(ndx.sum(x)) == 3; assert sys.modules['cupy'] is None"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_cupy_itself():
    """Where CuPy is installed, it has all that ndx uses, and all that stands in."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    from .stand_in import arrays, names, standin

    made = arrays.module()
    for name in names.FUNCTIONS.split() + names.AS_NUMPY.split():
        assert hasattr(cupy, name), name
    for part in ("linalg", "fft"):
        for name in getattr(made, part).__all__:
            assert hasattr(getattr(cupy, part), name), f"{part}.{name}"
    for name in vars(standin.cuda):
        assert name.startswith("_") or hasattr(cupy.cuda, name), name
    for name in vars(standin.Runtime):
        assert name.startswith("_") or hasattr(cupy.cuda.runtime, name), name
