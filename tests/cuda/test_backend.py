"""The pool of a GPU's memory: limits, statistics, streams, errors, fork."""

import gc
import os
import threading

import pytest

import ndx
from ndx._context.context import defaults_from_environment

MIB = 1 << 20


def counters(backend):
    stats = backend.stats()
    return stats["allocated_bytes"], stats["allocated_count"]


def test_names(gpu):
    with ndx.use("cuda") as backend:
        assert backend is ndx.current_backend()
        x = ndx.ones(3)
    assert backend is ndx.backends.get("cuda:0")
    assert backend.name == "cuda:0"
    assert x.backend is backend
    assert x.device == ndx.Device("cuda:0")
    assert not backend.host_accessible
    assert "cuda" in ndx.backends.available()
    assert ndx.__array_namespace_info__().devices()[:2] == ("cpu", "cuda:0")


def test_options_make_a_backend_of_its_own(gpu):
    with ndx.use("cuda:0", limit="4MiB") as backend:
        x = ndx.zeros(1000)
    assert x.backend is backend
    assert backend is not ndx.backends.get("cuda")
    assert backend.limit == 4 * MIB
    with pytest.raises(TypeError, match="has no option"):
        ndx.use("cuda", colour="red")
    with pytest.raises(ValueError, match="is not memory of cuda:0"):
        ndx.use("cuda", fallback="simulated")
    with pytest.raises(TypeError, match="NumPy can't use"), ndx.use("cuda", numpy=True):
        pass


def test_every_byte_is_from_the_pool(gpu):
    backend = ndx.backends.get("cuda:0")
    with ndx.use(backend):
        x = ndx.ones(1000)
        assert counters(backend) == (8000, 1)
        y = ndx.sum(ndx.exp(x * 2 + 1) @ ndx.ones(1000))
        assert counters(backend) == (8008, 2)
    assert backend.stats()["peak_bytes"] >= 3 * 8000
    assert backend.stats()["system_allocations"] == 1
    del x, y
    assert counters(backend) == (0, 0)
    assert backend.trim() == backend.stats()["peak_reserved_bytes"]
    assert backend.stats()["reserved_bytes"] == 0


def test_what_is_freed_is_found_again(gpu):
    backend = ndx.backends.get("cuda:0")
    with ndx.use(backend):
        del_me = ndx.ones((512, 512))
        address = del_me.__cuda_array_interface__["data"][0]
        del del_me
        assert ndx.ones((512, 512)).__cuda_array_interface__["data"][0] == address
    assert backend.events()["hits"] >= 1


@pytest.mark.parametrize(("limit", "fits"), [("4MiB", 3 * MIB), ("50%", 64 * MIB)])
def test_limit(gpu, limit, fits):
    with ndx.use("cuda:0", limit=limit) as backend:
        x = ndx.empty(fits, dtype="int8")
        too_large = 1 + backend.limit
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is"):
            ndx.empty(too_large, dtype="int8")
        assert backend.stats()["reserved_bytes"] <= backend.limit
        assert counters(backend) == (fits, 1)
    del x


def test_the_gpu_is_full(gpu):
    free = ndx.memory.info("cuda:0").total
    before = ndx.memory.stats("cuda:0")
    with pytest.raises(ndx.OutOfMemoryError, match="cuda:0") as raised:
        ndx.empty(2 * free, dtype="int8", device="cuda:0")
    assert raised.value.device_total == free
    after = ndx.memory.stats("cuda:0")
    assert after["allocated_bytes"] == before["allocated_bytes"]


def test_temporaries_that_do_not_fit_change_nothing(gpu):
    with ndx.use("cuda:0", limit="16MiB") as backend:
        x = ndx.ones(5 * MIB // 8)
        y = ndx.ones(5 * MIB // 8)
        before = counters(backend)
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.concat([x, y])
        gc.collect()
        assert counters(backend) == before
        assert float(ndx.sum(x)) == x.size


def test_monitoring(gpu):
    info = ndx.memory.info("cuda:0")
    assert info.total >= info.free > 0
    with ndx.use("cuda:0"), ndx.memory.record() as trace:
        x = ndx.ones(1000)
        y = x + x
        del x
    births = [event for event in trace.events if event.nbytes == 8000]
    assert {event.backend for event in births} == {"cuda:0"}
    assert len(births) >= 2
    assert "cuda:0" in ndx.memory.summary()
    with ndx.memory.statistics("cuda:0") as statistics:
        z = y + 1
    assert statistics.peak_bytes >= 8000
    del z


def test_zero_means_zero(gpu):
    with ndx.use("cuda:0"):
        dirty = ndx.full(10000, 7.0)
        del dirty
        assert not ndx.any(ndx.zeros(10000) != 0)
        assert ndx.zeros((0, 3)).shape == (0, 3)


def test_set_default(gpu):
    ndx.set_default("cuda:0")
    try:
        assert ndx.zeros(3).device == "cuda:0"
        assert ndx.zeros(3, device="cpu").device == "cpu"
        assert (ndx.asarray([1.0], device="cpu") + 1).backend.name == "host"
    finally:
        ndx.set_default("host")


def test_results_stay_on_the_device_of_their_operands(gpu):
    x = ndx.ones(3)
    g = ndx.ones(3, device="cuda:0")
    with ndx.use("cuda:0"):
        assert (x + x).device == "cpu"
        assert ndx.sum(x).device == "cpu"
        assert ndx.zeros_like(x).device == "cpu"
        with ndx.use("host", limit="1MiB") as host:
            assert ndx.ones(3).backend is host
            assert (g + g).device == "cuda:0"
    with ndx.use("host", limit="1MiB") as host, ndx.use("cuda:0"):
        assert (x + x).backend is host
        assert ndx.ones(3).device == "cuda:0"


def test_two_gpus(machine):
    x = ndx.asarray([1.0, 2.0], device="cuda:0")
    y = x.to_device("cuda:1")
    assert y.device == "cuda:1"
    assert y.backend is ndx.backends.get("cuda:1")
    assert (y + y).tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="cuda:0, cuda:1"):
        x + y
    with ndx.use("cuda:1"):
        assert (x + x).device == "cuda:0"
        assert ndx.ones(2).device == "cuda:1"
    assert machine.default_mallocs == 0


def test_a_copy_between_gpus_is_in_the_order_of_the_streams(machine, stand_in):
    side = stand_in[0].cuda.Stream(non_blocking=True)
    with side:
        x = ndx.full(1000, 3.0, device="cuda:0")
    machine.calls.clear()
    with side:
        y = x.to_device("cuda:1")
    names = [call[:2] for call in machine.calls if call[0] != "malloc"]
    assert names == [("streamSynchronize", side.ptr), ("memcpyPeerAsync", 0),
                     ("streamSynchronize", 0)]  # fmt: skip
    del x
    with side:
        ndx.full(1000, 4.0, device="cuda:0")
    assert y.tolist() == [3.0] * 1000
    ndx.backends.get("cuda:0").close_stream(side.ptr)


def test_streams(machine, stand_in):
    stream = stand_in[0].cuda.Stream
    a, b = stream(), stream()
    with ndx.use("cuda:0") as backend:
        with a:
            x = ndx.ones(100_000)
            address = x.__cuda_array_interface__["data"][0]
            y = x + 1
            assert y.__cuda_array_interface__["stream"] == a.ptr
            del x, y
            # The same stream has it again at once, with no event.
            machine.calls.clear()
            x = ndx.empty(100_000)
            assert x.__cuda_array_interface__["data"][0] == address
            assert machine.calls == []
            del x
        with b:
            # Another waits for it, on the GPU.
            x = ndx.empty(100_000)
            if x.__cuda_array_interface__["data"][0] == address:
                assert ("streamWaitEvent", b.ptr, a.ptr) in machine.calls
            assert not any("Synchronize" in call[0] for call in machine.calls)
        with a:
            # Used by both: who has it next waits for the other, too.
            y = x + 1
            del y
        machine.calls.clear()
        del x
        assert ("eventRecord", a.ptr) in machine.calls
        backend.synchronize()
        backend.close_stream(a.ptr)
        backend.close_stream(b.ptr)


def test_per_thread_streams_are_refused(machine, stand_in):
    with (
        stand_in[0].cuda.Stream(ptds=True),
        pytest.raises(RuntimeError, match="per-thread default streams"),
    ):
        ndx.zeros(3, device="cuda:0")


def test_synchronize(gpu):
    x = ndx.ones(3, device="cuda:0")
    ndx.synchronize()
    ndx.synchronize("cuda:0")
    ndx.synchronize("cpu")
    if gpu is not None:
        assert gpu.calls.count(("deviceSynchronize",)) >= 2
    del x


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_refuses(gpu):
    x = ndx.ones(3, device="cuda:0")
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        outcomes = []
        for call in (
            lambda: x + 1,
            lambda: ndx.zeros(3, device="cuda:0"),
            lambda: x.tolist(),
            lambda: ndx.use("cuda:0", limit="1MiB"),
        ):
            try:
                call()
                outcomes.append("computed")
            except (ndx.DeviceError, RuntimeError) as error:
                outcomes.append("refused" if "fork" in str(error) else repr(error))
        # The CPU's go on.
        outcomes.append(str(float(ndx.sum(ndx.ones(3)))))
        del x
        os.write(writing, " ".join(outcomes).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "refused refused refused refused 3.0"
    assert os.waitpid(child, 0)[1] == 0
    assert x.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("chosen", ["cuda", "cuda:0", "host"])
def test_the_environment(gpu, chosen, monkeypatch):
    monkeypatch.setattr(ndx.backends._registry, "_options", {})
    monkeypatch.setattr(ndx.backends._registry, "_shared", {})
    defaults_from_environment({"NDX_BACKEND": chosen, "NDX_CUDA_LIMIT": "50%"})
    try:
        assert ndx.ones(3).device == ("cpu" if chosen == "host" else "cuda:0")
        for number in range(1 if gpu is None else 2):
            total = ndx.memory.info(f"cuda:{number}").total
            assert ndx.backends.get(f"cuda:{number}").limit == total // 2
    finally:
        ndx.set_default("host")


def test_the_environment_says_where_to_spill(machine, monkeypatch):
    monkeypatch.setattr(machine, "pageable", True)
    monkeypatch.setattr(ndx.backends._registry, "_options", {})
    monkeypatch.setattr(ndx.backends._registry, "_shared", {})
    defaults_from_environment({
        "NDX_CUDA_LIMIT": "2MiB", "NDX_CUDA_FALLBACK": "host",
        "NDX_CUDAHOST_LIMIT": "2MiB", "NDX_CUDAHOST_FALLBACK": "mmap",
    })  # fmt: skip
    arrays = [ndx.ones(1 << 17, device="cuda:1") for _ in range(6)]
    found = {x.backend.name for x in arrays}
    assert found == {"cuda:1", "cudahost:1", "cudammap:1"}


@pytest.mark.threads
def test_threads_have_their_own_allocator(gpu):
    found = {}

    def work(name):
        with ndx.use("cuda:0", limit=f"{8 + 2 * name}MiB") as backend:
            x = ndx.ones(1000)
            for _ in range(50):
                x = x * 1.5 - x / 2
                assert x.backend is backend
            found[name] = float(ndx.sum(x))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), 1000.0)


def test_an_error_leaves_all_as_it_was(gpu):
    x = ndx.ones((2, 3), device="cuda:0")
    before = counters(x.backend)
    for call in (lambda: ndx.linalg.inv(x), lambda: ndx.concat([x, x[0]])):
        with pytest.raises(Exception, match=r"square|dimensions|ndim|axes"):
            call()
    gc.collect()
    assert counters(x.backend) == before
    if gpu is not None:
        # CuPy's own allocator is back.
        theirs = ndx.backends._cupy.load().ndarray((3,), "f8")
        assert gpu.default_mallocs == 1
        del theirs


def test_the_limit_of_the_process_is_on_the_machines_memory(gpu):
    before = ndx.memory.limit()
    ndx.memory.set_limit("1MiB")
    try:
        with ndx.use("cuda:0", limit="64MiB"):
            assert ndx.ones(2**20).size == 2**20
            with pytest.raises(ndx.OutOfMemoryError, match="its limit is 64 MiB"):
                ndx.ones(2**24)
        for name in ("pinned", "cudahost:0"):
            with (
                ndx.use(name, limit="64MiB"),
                pytest.raises(ndx.OutOfMemoryError, match="can't allocate"),
            ):
                ndx.ones(2**18)
    finally:
        ndx.memory.set_limit(before)


def test_an_option_in_code_leaves_the_others_to_the_environment(gpu, monkeypatch):
    monkeypatch.setattr(ndx.backends._registry, "_options", {})
    monkeypatch.setattr(ndx.backends._registry, "_variables", {})
    monkeypatch.setattr(ndx.backends._registry, "_shared", {})
    defaults_from_environment({"NDX_CUDA_LIMIT": "8MiB"})
    for name in ("cuda", "cuda:0"):
        assert ndx.backends.get(name, idle_release=5).limit == 8 * MIB
        assert ndx.backends.get(name, limit="4MiB").limit == 4 * MIB
        with ndx.use(name, pool="naive") as backend:
            assert (backend.limit, backend.kind) == (8 * MIB, "naive")


def test_a_full_gpu_says_how_full_it_is(machine):
    with ndx.use("cuda:0"):
        total = ndx.memory.info("cuda:0").total
        with pytest.raises(ndx.OutOfMemoryError, match="its device has .* in all"):
            ndx.empty(2 * total, dtype="int8")
        x = ndx.empty(total // 2, dtype="int8")
        with pytest.raises(ndx.OutOfMemoryError, match="its device has .* free of"):
            ndx.empty(total // 4 * 3, dtype="int8")
        del x
