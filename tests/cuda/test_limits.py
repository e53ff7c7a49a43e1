"""One limit over all backends of a GPU, and memory had in advance there."""

import threading

import pytest

import ndx
from ndx import memory

MIB = 2**20


@pytest.fixture
def limited(gpu):
    memory.set_limit("32MiB", device="cuda:0")
    yield gpu
    memory.set_limit(None, device="cuda:0")
    assert memory.limits() == {}


def test_all_backends_of_a_gpu_keep_to_it_together(limited):
    assert memory.limit(device="cuda:0") == 32 * MIB
    assert memory.limits() == {"cuda:0": 32 * MIB}
    assert "reserved by all backends, limit 32 MiB" in str(memory.summary())
    one, other = (ndx.backends.get("cuda:0", pool=kind) for kind in ("split", "naive"))
    with ndx.use(one):
        x = ndx.ones(2 * MIB)
    with ndx.use(other):
        with pytest.raises(ndx.OutOfMemoryError) as caught:
            ndx.ones(3 * MIB)
        assert caught.value.reason == "device"
        assert "the limit of 'cuda:0' is 32 MiB" in str(caught.value)
        assert "set_limit(..., device='cuda:0')" in str(caught.value)
        del x
        # What the other one keeps idle goes back.
        y = ndx.ones(3 * MIB)
    assert one.stats()["reserved_bytes"] + other.stats()["reserved_bytes"] <= 32 * MIB
    memory.set_limit(None, device="cuda:0")
    with ndx.use(one):
        z = ndx.ones(3 * MIB)
    del y, z


def test_a_backend_gives_back_its_own_idle_memory_first(limited):
    with ndx.use(ndx.backends.get("cuda:0", pool="naive")) as backend:
        x = ndx.ones(2 * MIB)
        del x
        ndx.synchronize("cuda:0")
        # 16 MiB are idle, of another size.
        y = ndx.ones(3 * MIB)
        assert backend.stats()["reserved_bytes"] <= 32 * MIB
        del y


@pytest.mark.threads
def test_threads_do_not_pass_the_limit_of_a_gpu_together(limited):
    failures, kept = [], []

    def take():
        backend = ndx.backends.get("cuda:0", pool="naive")
        with ndx.use(backend):
            try:
                for _ in range(20):
                    kept.append(ndx.ones(MIB // 2))
            except ndx.OutOfMemoryError as error:
                failures.append(error.reason)

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == ["device"] * 3
    assert sum(x.nbytes for x in kept) <= 32 * MIB
    kept.clear()


def test_memory_of_the_host_does_not_count(limited):
    with ndx.use("cudahost:0"):
        x = ndx.ones(8 * MIB)
    with ndx.use("cuda:0"):
        y = ndx.ones(2 * MIB)
    del x, y


def test_percentages_are_of_the_gpu(limited):
    total = memory.info("cuda:0").total
    memory.set_limit("50%", device="cuda:0")
    assert memory.limit("cuda:0") == total // 2
    with pytest.warns(RuntimeWarning, match="more than GPU 0 can have"):
        memory.set_limit(2 * total, device="cuda:0")
    with pytest.raises(TypeError, match="for the machine's memory"):
        memory.set_limit(process="1GiB", device="cuda:0")


def test_initial_and_reserved_memory(limited):
    backend = ndx.backends.get("cuda:0", initial="4MiB")
    held = backend.stats()["reserved_bytes"]
    assert held >= 4 * MIB
    with ndx.use(backend):
        x = ndx.ones(MIB // 2)
        assert backend.stats()["reserved_bytes"] == held
        del x
    backend.trim()
    assert memory.reserve("24MiB", backend) == 24 * MIB
    assert memory.reserve("24MiB", backend) == 0
    assert backend.stats()["reserved_bytes"] == 24 * MIB
    with pytest.raises(ndx.OutOfMemoryError):
        memory.reserve("64MiB", backend)


def test_waitall_trims_gpus_too(gpu):
    with ndx.use("cuda:0") as backend:
        x = ndx.ones(MIB)
        del x
        ndx.waitall(trim=True)
        assert backend.stats()["reserved_bytes"] == 0
