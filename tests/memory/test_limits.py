"""Limits over all backends together: of what ndx holds, and of what the process has."""

import gc
import mmap
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers.pools import check
from helpers.sanitizers import counts_pages

import ndx
from ndx import memory
from ndx.backends import HostBackend, PythonBackend

MIB = 2**20


@pytest.fixture(autouse=True)
def _no_limits():
    yield
    memory.set_limit(None, process=None)
    assert memory.limits() == {}


def allow(more):
    """Let the process have so many bytes more than it has; no idle memory helps."""
    gc.collect()
    memory.empty_cache()
    limit = ndx.backends._budget.resident_nbytes() + more
    memory.set_limit(process=limit)
    return limit


@counts_pages
def test_a_limit_on_what_the_process_has():
    """NumPy's memory counts, and ndx refuses what would exceed the limit with it."""
    backend = HostBackend()
    with ndx.use(backend):
        others = np.ones(8 * MIB)  # 64 MiB, touched
        assert allow(64 * MIB) > others.nbytes + 64 * MIB
        x = ndx.ones(4 * MIB)  # 32 MiB
        with pytest.raises(
            ndx.OutOfMemoryError, match="the process may have"
        ) as caught:
            ndx.ones(8 * MIB)
        assert caught.value.reason == "process"
        assert "set_limit(process=...)" in str(caught.value)
        del others
        y = ndx.ones(8 * MIB)
        memory.set_limit(process=None)
        del x, y
    backend.trim()


def test_idle_memory_goes_back_before_the_process_is_at_its_limit():
    gc.collect()
    memory.empty_cache()
    one, other = HostBackend(), HostBackend()
    with ndx.use(one):
        x = ndx.ones(8 * MIB)
        del x
    assert one.stats()["reserved_bytes"] >= 64 * MIB
    memory.set_limit(process=ndx.backends._budget.resident_nbytes() + 32 * MIB)
    with ndx.use(other):
        y = ndx.ones(8 * MIB)
        assert float(y[-1]) == 1
    assert one.stats()["reserved_bytes"] < 64 * MIB
    del y


def test_what_ndx_takes_counts_before_it_is_written():
    """Many arrays of which none is written may not pass the limit together, later."""
    limit = allow(256 * MIB)
    with ndx.use(HostBackend()):
        arrays = []
        with pytest.raises(ndx.OutOfMemoryError):
            arrays.extend(ndx.empty(2 * MIB) for _ in range(1000))
        assert sum(x.nbytes for x in arrays) > 128 * MIB
        for x in arrays:
            x[...] = 1.0
        assert ndx.backends._budget.resident_nbytes() <= limit + 8 * MIB
        del arrays, x


@pytest.mark.parametrize("kind", ["split", "round", "naive", "unpooled", "arena"])
def test_every_type_of_pool_keeps_to_the_limit_of_the_process(kind):
    limit = allow(64 * MIB)
    backend = HostBackend(pool=kind, limit="256MiB")
    with ndx.use(backend):
        arrays = []
        with pytest.raises(ndx.OutOfMemoryError) as caught:
            arrays.extend(ndx.full(MIB, 1.0) for _ in range(32))
        assert caught.value.reason == "process"
        assert ndx.backends._budget.resident_nbytes() <= limit + 8 * MIB
        arrays.clear()
        memory.set_limit(process=None)
        assert float(ndx.full(MIB, 1.0)[-1]) == 1
    check(backend)


def test_fresh_memory_is_zero_under_a_limit_of_the_process():
    allow(256 * MIB)
    with ndx.use(HostBackend()) as backend:
        x = ndx.full(4 * MIB, 7.0)
        del x
        backend.trim()
        assert not ndx.any(ndx.zeros(4 * MIB))


def test_a_backend_in_python_keeps_to_the_limit_of_the_process():
    class Bytes(PythonBackend):
        def acquire(self, nbytes):
            return bytearray(nbytes)

    allow(32 * MIB)
    with ndx.use(Bytes()):
        x = ndx.ones(MIB)
        with pytest.raises(ndx.OutOfMemoryError, match="the process may have"):
            ndx.ones(32 * MIB)
        del x


def test_a_fallback_serves_beyond_the_limit_of_the_process():
    backend = ndx.backends.get("host", fallback="mmap")
    allow(16 * MIB)
    with ndx.use(backend):
        x = ndx.full(16 * MIB, 3.0)
        assert float(x[-1]) == 3
        assert backend.fallback.stats()["allocated_bytes"] >= x.nbytes
        del x


FORK = """
import os, ndx
from ndx import memory
x = ndx.ones(1000)
memory.set_limit("1GiB", process=ndx.backends._budget.resident_nbytes() + 2**26)
child = os.fork()
if child == 0:
    try:
        assert set(memory.limits()) == {"ndx", "process"}
        y = ndx.ones(2**20)
        try:
            ndx.ones(2**24)
        except ndx.OutOfMemoryError as error:
            os._exit(0 if error.reason == "process" else 2)
    finally:
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
y = ndx.ones(2**20)
"""


def test_a_forked_child_has_the_limits_for_itself():
    result = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


NO_FILES = """
import os, resource, ndx
from ndx import memory
x = ndx.ones(1000)
memory.set_limit(process=ndx.backends._budget.resident_nbytes() + 2**26)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
assert ndx.backends._budget.resident_nbytes() == 0, "no file can be opened"
y = ndx.ones(2**20)
kept = []
try:
    for _ in range(16):
        kept.append(ndx.ones(2**20))
except ndx.OutOfMemoryError as error:
    assert error.reason == "process"
assert len(kept) < 8, f"{len(kept) + 1} x 8 MiB, of 64"
"""


def test_without_file_descriptors_the_last_answer_of_the_system_stands():
    result = subprocess.run(
        [sys.executable, "-c", NO_FILES], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_a_limit_of_the_environment_that_protects_from_nothing_warns():
    result = subprocess.run(
        [sys.executable, "-c", "import ndx"],
        env={**os.environ, "NDX_LIMIT": "1024TiB"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0
    assert "the limit of 1024 TiB is more than the process can have" in result.stderr


def test_two_limits_are_set_together_or_not_at_all():
    with pytest.raises(ValueError, match="lots"):
        memory.set_limit("1GiB", process="lots")
    with pytest.raises(ValueError, match="lots"):
        memory.set_limit("lots", process="100%")
    assert memory.limits() == {}


def test_pages_of_files_do_not_count(tmp_path):
    path = tmp_path / "pages"
    path.write_bytes(bytes(64 * MIB))
    before = ndx.backends._budget.resident_nbytes()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) == 0
        assert ndx.backends._budget.resident_nbytes() < before + 32 * MIB


@pytest.mark.threads
@counts_pages
def test_threads_do_not_pass_the_limit_of_the_process_together():
    limit = allow(96 * MIB)
    backend = HostBackend()
    kept, failures = [], []

    def take():
        try:
            with ndx.use(backend):
                for _ in range(100):
                    kept.append(ndx.full(MIB // 2, 1.0))
        except ndx.OutOfMemoryError as error:
            failures.append(error.reason)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == ["process"] * 4
    # The kernel counts for each thread, and adds that up now and then.
    assert ndx.backends._budget.resident_nbytes() <= limit + 8 * MIB
    assert sum(x.nbytes for x in kept) > 32 * MIB
    kept.clear()


def test_errors_tell_the_limit_of_ndx_from_that_of_the_process(caplog):
    """`limits()` calls them so, too."""
    caplog.set_level("INFO", logger="ndx")
    gc.collect()
    memory.empty_cache()
    limit = ndx.backends._budget.process_reserved() + MIB
    for process in (None, "100%"):
        memory.set_limit(limit, process=process)
        with pytest.raises(ndx.OutOfMemoryError) as caught:
            ndx.ones(8 * MIB)
        assert caught.value.reason == "ndx"
        assert "the limit of ndx is " in str(caught.value)
        assert "is short of memory (ndx)" in caplog.text
    caplog.clear()
    memory.set_limit("100%", process=ndx.backends._budget.resident_nbytes() + MIB)
    with pytest.raises(ndx.OutOfMemoryError) as caught:
        ndx.ones(128 * MIB)
    assert caught.value.reason == "process"
    assert "the process may have " in str(caught.value)
    assert "is short of memory (process)" in caplog.text


def test_the_summary_shows_the_limits():
    assert "in memory, limit" not in memory.summary()
    memory.set_limit("1GiB", process="50%")
    *_, ours, process = memory.summary().splitlines()
    assert ours.startswith("ndx: ")
    assert ours.endswith(", limit 1 GiB")
    assert process.startswith("the process, with Python and other libraries: ")


def test_limits_that_protect_from_nothing_warn():
    with pytest.warns(RuntimeWarning, match="more than the process can have") as told:
        memory.set_limit("1024TiB")
    assert told[0].filename == __file__
    with pytest.warns(RuntimeWarning, match="more than the process can have"):
        memory.set_limit(process="1024TiB")
    assert memory.limits() == {"ndx": 2**50, "process": 2**50}
    memory.set_limit("50%", process="60%")
    assert memory.limit() == memory.limits()["ndx"] < memory.limits()["process"]


def test_bad_limits():
    with pytest.raises(TypeError, match="sets nothing"):
        memory.set_limit()
    for wrong in ("lots", "200%", -1):
        with pytest.raises(ValueError, match="size|%|bytes"):
            memory.set_limit(process=wrong)
    with pytest.raises(ValueError, match="device"):
        memory.set_limit("1GiB", device="gpu")
    assert memory.limits() == {}


def test_the_cpu_is_the_process():
    memory.set_limit("1GiB", device="cpu")
    assert memory.limit(device="cpu") == memory.limit() == 2**30


@pytest.mark.parametrize("limits", [{"value": "1MiB"}, {"process": "1MiB"}])
def test_what_ends_above_a_lowered_limit_goes_back(limits):
    backend = HostBackend()
    with ndx.use(backend):
        x = ndx.ones(2 << 20)
    memory.set_limit(**limits)
    assert backend.stats()["reserved_bytes"] >= 16 * 2**20
    del x
    assert backend.stats()["reserved_bytes"] <= 2**20
