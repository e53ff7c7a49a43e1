"""Engines by kind of device: one from outside of ndx computes, or says why not."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.toys import ToyBackend, ToyEngine, view

import ndx

pytestmark = pytest.mark.thread_unsafe(reason="kinds of devices are the process's")


class GameBackend(ToyBackend):
    device_kind = "game"


@pytest.fixture(autouse=True)
def toys():
    """Let there be two kinds of toys."""
    ndx.backends.register("toy", ToyBackend)
    ndx.backends.register("game", GameBackend)
    ndx.engines.register("toy", ToyEngine)
    ndx.engines.register("game", ToyEngine)
    yield
    for kind in ("toy", "game"):
        ndx.backends.unregister(kind)
        if kind in ndx.engines.available():
            ndx.engines.unregister(kind)


def on_toy(values, device="toy:0", **options):
    return ndx.asarray(values, device=device, **options)


def check(x, expected, device="toy:0"):
    """Compare an array, which has to be on a toy, with NumPy's."""
    assert x.device == device
    assert x.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(np.asarray(x.to_device("cpu")), expected)


# ---------------------------------------------------------------- what it computes


def test_new_arrays():
    check(ndx.zeros((2, 3), device="toy"), np.zeros((2, 3)))
    check(ndx.ones(3, device="toy:1"), np.ones(3), "toy:1")
    check(ndx.full((2,), 7, device="toy:0"), np.full((2,), 7))
    check(ndx.arange(5, device="toy:0"), np.arange(5))
    check(ndx.eye(3, device="toy:0"), np.eye(3))
    check(on_toy([[1, 2], [3, 4]]), np.asarray([[1, 2], [3, 4]]))
    check(ndx.ones_like(on_toy([1.0, 2.0])), np.ones(2))
    check(ndx.asarray(on_toy([1, 2]), dtype=ndx.float32), np.asarray([1, 2], "f4"))
    x = ndx.empty(3, device="toy:0")
    assert (x.device, x.backend.name, x.backend.device) == ("toy:0", "toy:0", "toy:0")


def test_a_backend_places_new_arrays():
    with ndx.use("toy:1") as backend:
        x = ndx.ones(1000)
        assert backend is ndx.backends.get("toy:1")
        assert backend.stats()["allocated_bytes"] >= 8000
    check(x, np.ones(1000), "toy:1")
    with ndx.use("toy", limit="1KiB"), pytest.raises(ndx.OutOfMemoryError):
        ndx.ones(1000)
    with ndx.use(ToyBackend(device=1)):
        check(ndx.ones(2) * 2, 2 * np.ones(2), "toy:1")
    with ndx.use(ndx.memory.TrackingAdaptor("toy")) as tracked:
        x = ndx.ones(2)
        assert tracked.stats()["allocated_count"] == 1
    check(x + 1, 2 * np.ones(2))


def test_elementwise():
    a = np.linspace(1, 2, 6).reshape(2, 3)
    x = on_toy(a)
    check(x + x, a + a)
    check(2 * x - 1, 2 * a - 1)
    check(x.T * on_toy([1.0, 2.0]), a.T * [1.0, 2.0])
    check(ndx.exp(x), np.exp(a))
    check(x > 1.5, a > 1.5)
    check(on_toy([1, 2]) + on_toy([0.5, 0.5]), np.asarray([1.5, 2.5]))
    check(np.add(x, x), a + a)
    out = ndx.empty_like(x)
    assert ndx.sqrt(x, out=out) is out
    check(out, np.sqrt(a))
    x += 1
    check(x, a + 1)
    x[0] *= 2
    check(x, np.concatenate([2 * (a + 1)[:1], (a + 1)[1:]]))


def test_reductions_and_others():
    a = np.arange(12.0).reshape(3, 4)
    x = on_toy(a)
    check(ndx.sum(x), a.sum())
    check(ndx.mean(x, axis=0), a.mean(axis=0))
    check(ndx.var(x, axis=1, keepdims=True), a.var(axis=1, keepdims=True))
    check(ndx.argmax(x, axis=1), a.argmax(axis=1))
    check(ndx.any(x > 10), np.True_)
    check(ndx.cumulative_sum(x, axis=1), np.cumulative_sum(a, axis=1))
    check(ndx.concat([x, x]), np.concat([a, a]))
    check(ndx.where(x > 5, x, 0.0), np.where(a > 5, a, 0.0))
    check(ndx.take(x, on_toy([2, 0]), axis=1), a[:, [2, 0]])
    check(ndx.roll(x, 1, axis=0), np.roll(a, 1, axis=0))
    check(ndx.reshape(x.T, (-1,)), a.T.reshape(-1))
    check(x @ x.T, a @ a.T)
    check(ndx.linalg.inv(on_toy([[2.0, 0.0], [0.0, 4.0]])), np.diag([0.5, 0.25]))
    values, counts = ndx.unique_counts(on_toy([3, 1, 3]))
    check(values, np.asarray([1, 3]))
    check(counts, np.asarray([1, 2]))
    out = ndx.empty((3, 3), device="toy:0")
    assert ndx.matmul(x, x.T, out=out) is out
    check(out, a @ a.T)
    with pytest.raises(ValueError, match=r"output has shape \(3, 3\)"):
        ndx.matmul(x.T, x, out=out)


def test_indexing():
    a = np.arange(12).reshape(3, 4)
    x = on_toy(a)
    check(x[1], a[1])
    check(x[:, ::-2], a[:, ::-2])
    check(x[2, 3], a[2, 3])
    check(x[x > 5], a[a > 5])
    check(x[on_toy([2, 0])], a[[2, 0]])
    x[0] = 7
    x[:, 1] = on_toy([70, 80, 90])
    x[x == 7] = -1
    x[on_toy([2]), on_toy([3])] = 100
    a[0] = 7
    a[:, 1] = 70, 80, 90
    a[a == 7] = -1
    a[2, 3] = 100
    check(x, a)


def test_copies_between_devices():
    a = np.arange(6).reshape(2, 3)
    x = ndx.asarray(a).to_device("toy:0")
    check(x, a)
    assert x.to_device("toy:0") is x
    check(x.T.to_device("toy:1"), a.T, "toy:1")
    check(x.to_device("game:0"), a, "game:0")
    check(x.detach(), a)
    with pytest.raises(ValueError, match="toys have no streams"):
        x.to_device("cpu", stream=1)
    with pytest.raises(TypeError, match=r"on 'toy:0', whose memory the CPU can't read"):
        np.asarray(x)


def test_what_reads_elements():
    x = on_toy([1.5, 2.5])
    assert repr(x) == "NDArray([1.5, 2.5], backend='toy:0')"
    assert str(x) == "[1.5 2.5]"
    assert float(x[0]) == 1.5
    assert x.tolist() == [1.5, 2.5]
    assert bool(ndx.all(x > 1))
    assert pickle.loads(pickle.dumps(x)).device == "cpu"
    with ndx.use("toy"):
        check(pickle.loads(pickle.dumps(x)), np.asarray([1.5, 2.5]))


def test_workspaces():
    with ndx.use("toy"):
        for _ in range(3):
            with ndx.workspace("toys") as workspace:
                x = ndx.ones(1000)
                y = x * 2
                kept = ndx.sum(y).detach()
        assert workspace.stats()["spilled_bytes"] == 0
        with pytest.raises(ndx.StaleArrayError):
            y + 1
        check(kept, np.asarray(2000.0))
        with ndx.workspace("escaping", escape="detach"):
            y = ndx.arange(3) + 1
        check(y, np.asarray([1, 2, 3]))
    ndx.memory.destroy_all()


def test_prefetching_to_a_device():
    batches = [np.full(100, float(i)) for i in range(5)]
    for i, batch in enumerate(ndx.prefetch(batches, device="toy:0")):
        check(batch, batches[i])


def test_the_memory_stays_while_it_is_exported():
    with ndx.use("toy"), ndx.workspace("toys"):
        x = ndx.ones(100)
        seen = view(x)
    with ndx.use("toy"), ndx.workspace("toys"):
        ndx.zeros(100)
    assert seen.sum() == 100
    with pytest.raises(ndx.StaleArrayError):
        ndx.engines.export(x)
    with pytest.raises(TypeError, match="takes an NDArray, not list"):
        ndx.engines.export([1])
    del seen
    ndx.memory.destroy_all()


def test_devices_are_listed_and_waited_for():
    x = ndx.ones(3, device="toy:1")
    ndx.synchronize()
    ndx.synchronize(x.device)
    devices = ndx.__array_namespace_info__().devices()
    assert {"cpu", "toy:0", "toy:1", "game:0"} <= set(devices)
    assert repr(devices[-1]) == "Device('game:1')"


# ---------------------------------------------------------------- what it refuses

OTHERS = {
    "the CPU": lambda: ndx.ones(3),
    "another toy": lambda: ndx.ones(3, device="toy:1"),
    "another kind": lambda: ndx.ones(3, device="game:0"),
}
MIXED = {
    "add": lambda x, y: x + y,
    "reflected": lambda x, y: y + x,
    "ufunc": lambda x, y: np.add(x, y),
    "numpy": lambda x, y: np.nanmax(x, initial=1.0, where=y > 0),
    "out": lambda x, y: ndx.add(x, x, out=y),
    "inplace": lambda x, y: x.__iadd__(y),
    "matmul": lambda x, y: x @ y,
    "vecdot": lambda x, y: ndx.vecdot(x, y),
    "concat": lambda x, y: ndx.concat([x, y]),
    "where": lambda x, y: ndx.where(x > 0, x, y),
    "take": lambda x, y: ndx.take(x, ndx.astype(y, ndx.int64)),
    "get": lambda x, y: x[y > 0],
    "set": lambda x, y: x.__setitem__(slice(None), y),
    "key": lambda x, y: x.__setitem__(y > 0, 1.0),
}


@pytest.mark.parametrize("function", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_operands_on_two_devices(other, function):
    x, y = ndx.ones(3, device="toy:0"), other()
    before = y.to_device("cpu").tolist()
    with pytest.raises(ValueError, match="different devices") as error:
        function(x, y)
    assert "toy:0" in str(error.value)
    assert str(y.device) in str(error.value)
    assert y.to_device("cpu").tolist() == before
    check(x, np.ones(3))


def test_what_an_engine_does_not_compute():
    x = on_toy([2.0, 1.0])
    with pytest.raises(NotImplementedError, match="toys don't compute sort; compute"):
        ndx.sort(x, descending=True)
    with pytest.raises(TypeError, match=r"ToyEngine has no numpy\.nanmedian; compute"):
        np.nanmedian(x)
    with pytest.raises(AttributeError):
        x.__cuda_array_interface__  # noqa: B018

    @ndx.fuse
    def double(x):
        return x + x

    for _ in range(3):
        check(double(x), np.asarray([4.0, 2.0]))
    with pytest.raises(ValueError, match="first 64 GPUs"):
        ndx.memory.set_limit("1GiB", device="toy:0")
    assert ndx.memory.limit("toy:0") is None
    with ndx.use("toy"):
        with pytest.raises(ValueError, match="unknown backend 'toyhost:0'"):
            ndx.workspace("spilling", spill="host").__enter__()
        with pytest.raises(ndx.WorkspaceError, match="page-locked .* for 'toy:0'"):
            ndx.workspace("mirrored", mirror="host").__enter__()


class Foreign:
    """Another library's array on a toy."""

    def __init__(self, x):
        self.x = x

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)


def test_dlpack_of_a_kind_with_a_type():
    x = on_toy([1, 2, 3])
    for function in (x.__dlpack_device__, x.__dlpack__):
        with pytest.raises(BufferError, match="kind 'toy' have no type in DLPack"):
            function()
    ndx.engines.unregister("toy")
    ndx.engines.register("toy", ToyEngine, dlpack=12)
    assert x.__dlpack_device__() == (12, 0)
    for y in (ndx.from_dlpack(Foreign(x)), ndx.asarray(Foreign(x))):
        check(y, np.asarray([1, 2, 3]))
    y[0] = 10
    check(x, np.asarray([10, 2, 3]))
    with pytest.raises(BufferError, match="has no streams; got stream=7"):
        x.__dlpack__(stream=7)
    ndx.engines.unregister("game")
    for number, kind in ((12, "toy"), (1, "cpu"), (2, "cuda"), (13, "cuda")):
        with pytest.raises(ValueError, match=f"={number} is the type of '{kind}' alr"):
            ndx.engines.register("game", ToyEngine, dlpack=number)
    capsule = x.__dlpack__()
    ndx.engines.unregister("toy")
    with pytest.raises(BufferError, match=r"CPU, \(1, 0\), and cuda, \(2, n\), can"):
        ndx.from_dlpack(Fixed(capsule, (12, 0)))
    del capsule


class Fixed:
    def __init__(self, capsule, device):
        self.__dlpack_device__ = lambda: device
        self.__dlpack__ = lambda **options: capsule


# ---------------------------------------------------------------- the registry


def test_an_engine_is_made_once_at_its_first_use():
    made = []

    def factory():
        made.append(ToyEngine())
        return made[-1]

    ndx.engines.unregister("toy")
    ndx.engines.register("toy", factory)
    x = ndx.empty(3, device="toy:0")
    assert not made
    x + x
    x - x
    assert [ndx.engines.engine_of("toy:1")] == made
    assert ndx.engines.engine_of("game") is not made[0]
    assert ndx.engines.available() == ["cuda", "game", "toy"]


def test_an_engine_itself():
    engine = ToyEngine()
    ndx.engines.unregister("toy")
    ndx.engines.register("toy", engine)
    assert ndx.engines.engine_of("toy") is engine


def test_the_engine_of_gpus_is_registered():
    assert type(ndx.engines.engine_of("cuda")).__name__ == "CudaEngine"
    with pytest.raises(ValueError, match="'cuda' have an engine already, ndx's own"):
        ndx.engines.register("cuda", ToyEngine)
    with pytest.raises(ValueError, match="no engine was registered .* kind 'cuda'"):
        ndx.engines.unregister("cuda")


def test_a_kind_without_an_engine():
    x = on_toy([1.0, 2.0])
    ndx.engines.unregister("toy")
    ndx.empty(3, device="toy:0")
    for use in (lambda: x + x, lambda: repr(x), lambda: ndx.zeros(2).to_device("toy")):
        with pytest.raises(ndx.DeviceError, match=r"ndx\.engines\.register\('toy'"):
            use()
    ndx.synchronize()
    with pytest.raises(ValueError, match="no engine was registered .* kind 'toy'"):
        ndx.engines.unregister("toy")
    ndx.engines.register("toy", ToyEngine)
    check(x + x, np.asarray([2.0, 4.0]))


class Half(ndx.engines.Engine):
    def compute(self, name, /, *args, **kwargs):
        return None


@pytest.mark.parametrize(
    ("kind", "engine", "error", "text"),
    [
        ("toy", ToyEngine, ValueError, r"already: .* ndx.engines.unregister\('toy'\)"),
        ("doll", Half, TypeError, "'doll', Half, lacks elementwise, get_item, set"),
        ("doll", Half(), TypeError, "Half, lacks elementwise"),
        ("doll", int, TypeError, "derive from ndx.engines.Engine, which int does not"),
        ("doll", 3, TypeError, "a callable that returns one, not int"),
        ("a doll", ToyEngine, ValueError, "'a doll' can't be a kind of devices"),
        ("cpu", ToyEngine, ValueError, "'cpu' can't be a kind of devices"),
        (3, ToyEngine, TypeError, "named by a str, not int"),
    ],
)
def test_what_can_t_be_registered(kind, engine, error, text):
    with pytest.raises(error, match=text):
        ndx.engines.register(kind, engine)
    with pytest.raises(ValueError, match="there is no device 'doll:0'"):
        ndx.ones(3, device="doll:0")


@pytest.mark.parametrize(
    ("made", "text"),
    [(3, "which int does not"), (Half(), "Half, lacks elementwise, get_item")],
)
def test_what_a_factory_can_t_return(made, text):
    ndx.engines.unregister("toy")
    ndx.engines.register("toy", lambda: made)
    with pytest.raises(TypeError, match=text):
        ndx.ones(3, device="toy:0")


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("compute", ndx.mean),
        ("compute", ndx.std),
        ("compute", lambda x: x @ x),
        ("compute", lambda x: ndx.vecdot(x, x)),
        ("elementwise", lambda x: ndx.mean(x + 1)),
        ("get_item", lambda x: x[ndx.asarray([0], device="toy:0")]),
        ("to_device", repr),
        ("to_device", lambda x: float(x[0])),
        ("to_device", lambda x: x.to_device("cpu")),
        ("upload", lambda x: ndx.asarray([1.0], device="toy:0")),
        ("upload", lambda x: ndx.eye(2, device="toy:0")),
    ],
)
@pytest.mark.parametrize("answer", [None, 3.0, np.ones(3)])
def test_what_a_method_can_t_return(method, call, answer):
    x = on_toy([1.0, 2.0, 3.0])

    class Forgetful(ToyEngine):
        pass

    setattr(Forgetful, method, lambda *args, **options: answer)
    ndx.engines.unregister("toy")
    ndx.engines.register("toy", Forgetful)
    with pytest.raises(TypeError, match=r"not an array|Cannot convert"):
        call(x)


def test_a_copy_for_the_cpu_is_on_the_cpu():
    class Lazy(ToyEngine):
        def to_device(self, x, device, *, stream=None):
            return x

    x = on_toy([1.0, 2.0, 3.0])
    ndx.engines.unregister("toy")
    ndx.engines.register("toy", Lazy)
    with pytest.raises(TypeError, match="Lazy returned an array that is not on the"):
        x.tolist()


def test_names_of_devices():
    with pytest.raises(ValueError, match="'cpu' has no engine"):
        ndx.engines.engine_of("cpu")
    with pytest.raises(ValueError, match="'toy:0', .*and so on"):
        ndx.ones(3, device="toy:x")
    for number in (-1, 1000, "0", True):
        with pytest.raises(ValueError, match="numbers 0 to 999"):
            ToyBackend(device=number)


def test_a_kind_is_known_by_its_backend():
    class Doll(ToyBackend):
        device_kind = "puppet"

    with pytest.raises(ValueError, match="no device 'puppet:3'"):
        ndx.empty(3, device="puppet:3")
    ndx.backends.register("puppet", Doll)
    assert ndx.empty(3, device="puppet:3").device == "puppet:3"
    ndx.backends.unregister("puppet")
    with pytest.raises(ValueError, match="unknown backend 'puppet:4'"):
        ndx.empty(3, device="puppet:4")
    Doll.device_kind = "a puppet"
    with pytest.raises(ValueError, match="'a puppet' can't be a kind of devices"):
        ndx.backends.register("puppet", Doll)
    assert "puppet" not in ndx.backends.available()


def test_a_backend_that_is_of_another_kind():
    def factory(device=0):
        return GameBackend(device=device)

    factory.device_kind = "toy"
    ndx.backends.unregister("toy")
    ndx.backends.register("toy", factory)
    with pytest.raises(TypeError, match="returned memory of 'game:0', not of a device"):
        ndx.empty(3, device="toy:0")


# Those of GPUs, and tables of modules by name.
NAMING = ("_cuda/", "cuda.py", "backends/cuda", "backends/pinned.", "backends/_cupy.",
          "backends/_gpus.py", "__init__.py", "backends/__init__.py")  # fmt: skip
DOCUMENTATION = re.compile(r'(?s)""".*?"""|#[^\n]*')
NAME = re.compile(r'"cuda[^"\n]*"|DL_CUDA')


def test_only_the_files_of_gpus_name_their_kind():
    """The others ask the table of kinds, so that one more needs no change in them."""
    root = Path(ndx.__file__).parent
    found = set()
    for path in root.rglob("*.p[yx]*"):
        if path.suffix in (".py", ".pyx", ".pxd"):
            code = DOCUMENTATION.sub("", path.read_text(encoding="utf-8"))
            if NAME.search(code):
                found.add(path.relative_to(root).as_posix())
    assert "backends/_gpus.py" in found
    assert not {name for name in found if not name.startswith(NAMING)}
