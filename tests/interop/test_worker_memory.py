"""Workers of distributed have a backend of their own, which never exceeds its limit."""

import asyncio
import os
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.commands import run_python

import ndx
from ndx._lib.system import machine_memory, memory_for_pages
from ndx.backends import _budget
from ndx.testing import assert_equal

pytest.importorskip("distributed")

from distributed import Client
from distributed.spill import SpillBuffer

from ndx._clusters import worker_memory
from ndx.distributed import MemoryReport, WorkerMemory, WorkerReport, memory_report

MIB = 2**20


class Callback:
    """A `PeriodicCallback` that is called by hand."""

    def __init__(self, call, milliseconds):
        self.call = call
        self.running = None

    def start(self):
        self.running = True

    def stop(self):
        self.running = False


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """What a plugin sees of a worker, with the place of its results."""
    monkeypatch.setattr(worker_memory, "PeriodicCallback", Callback)
    return SimpleNamespace(
        address="tcp://worker:1",
        name="one",
        local_directory=str(tmp_path),
        memory_manager=SimpleNamespace(memory_limit=32 * MIB),
        data=SpillBuffer(str(tmp_path / "storage"), target=1000 * MIB),
        monitor=SimpleNamespace(get_process_memory=lambda: 0),
        periodic_callbacks={},
    )


@pytest.fixture
def set_up(worker):
    """Return a function that sets a plugin up in this process."""
    made = []

    def set_up(**options):
        plugin = pickle.loads(pickle.dumps(WorkerMemory(**options)))
        plugin.setup(worker)
        made.append(plugin)
        return plugin

    yield set_up
    for plugin in made:
        plugin.teardown(worker)
    for key in list(worker.data):
        del worker.data[key]


def block(value):
    return ndx.full(MIB // 8, float(value))


def test_the_limit_is_a_part_of_the_workers_memory(set_up, worker):
    plugin = set_up(limit="25%")
    assert plugin.pool.limit == 8 * MIB
    x = ndx.zeros(10)
    assert x.backend is ndx.current_backend()
    assert x.backend.upstream is plugin.pool


@pytest.mark.parametrize(
    ("limit", "memory_limit", "expected"),
    [
        (None, 32 * MIB, 16 * MIB),
        ("4MiB", 32 * MIB, 4 * MIB),
        (4 * MIB, None, 4 * MIB),
        (None, None, None),
        (None, 0, None),
    ],
)
def test_limits(set_up, worker, limit, memory_limit, expected):
    worker.memory_manager.memory_limit = memory_limit
    assert set_up(limit=limit).pool.limit == expected


def test_the_oldest_results_make_room(set_up, worker):
    plugin = set_up(limit="8MiB")
    for i in range(12):
        worker.data[f"block-{i}"] = block(i)
    assert list(worker.data.disk) == [
        f"block-{i}" for i in range(len(worker.data.disk))
    ]
    assert len(worker.data.disk) >= 4
    assert plugin.evicted_count == len(worker.data.disk)
    assert plugin.evicted_bytes == plugin.evicted_count * MIB
    assert plugin.pool.stats()["peak_reserved_bytes"] <= 8 * MIB
    assert plugin.pool.fallback.stats()["total_allocations"] == 0
    for i in range(12):  # in turn: each that is read makes another one go
        assert_equal(worker.data[f"block-{i}"], np.full(MIB // 8, float(i)))
        assert worker.data[f"block-{i}"].backend is ndx.current_backend()
    assert plugin.pool.stats()["peak_reserved_bytes"] <= 8 * MIB


def test_what_a_task_needs_beyond_the_limit_is_in_files(set_up, worker):
    plugin = set_up(limit="4MiB")
    worker.data["old"] = block(1)
    arrays = [block(i) for i in range(6)]
    assert list(worker.data.disk) == ["old"]
    assert plugin.pool.stats()["allocated_count"] == 4
    assert plugin.pool.fallback.stats()["allocated_count"] == 2
    assert plugin.pool.fallback.directory == worker.local_directory
    assert float(ndx.sum(arrays[5])) == 5.0 * MIB / 8


def test_without_a_fallback_the_task_fails(set_up, worker):
    set_up(limit="4MiB", fallback=None)
    worker.data["old"] = block(1)
    with pytest.raises(ndx.OutOfMemoryError, match="limit"):
        _ = [block(i) for i in range(6)]
    assert list(worker.data.disk) == ["old"]
    assert_equal(block(1), np.ones(MIB // 8))


def test_results_that_are_in_use_free_no_memory(set_up, worker):
    set_up(limit="4MiB", fallback=None)
    x = worker.data["used"] = block(1)
    worker.data["unused"] = block(2)
    arrays = [block(i) for i in range(3)]
    assert sorted(worker.data.disk) == ["unused", "used"]
    assert float(x[0]) == 1.0
    with pytest.raises(ndx.OutOfMemoryError):
        block(0)
    del arrays


def test_results_that_can_not_be_pickled_stay(set_up, worker, caplog):
    set_up(limit="4MiB", fallback=None)
    worker.data["odd"] = (x for x in ())
    worker.data["old"] = block(1)
    with pytest.raises(ndx.OutOfMemoryError):
        _ = [block(i) for i in range(6)]
    assert "odd" in worker.data.memory
    assert "Failed to pickle 'odd'" in caplog.text


def test_workers_that_keep_all_results_in_memory(set_up, worker):
    worker.data = {}
    plugin = set_up(limit="2MiB")
    worker.data.update({i: block(i) for i in range(4)})
    assert plugin.pool.fallback.stats()["allocated_count"] == 2


def test_the_arrays_of_numpy(set_up, worker):
    plugin = set_up(limit="4MiB", numpy=True)
    x = np.ones(MIB // 8)
    assert plugin.pool.stats()["allocated_bytes"] >= x.nbytes
    del x
    plugin.teardown(worker)
    before = plugin.pool.stats()["total_allocations"]
    np.ones(MIB // 8)
    assert plugin.pool.stats()["total_allocations"] == before


def test_the_policies_of_workspaces(set_up, worker):
    before = ndx.memory.default_workspace_config()
    plugin = set_up(workspaces=ndx.WorkspaceConfig(learn="liveness"))
    assert ndx.workspace("task").config.learn == "liveness"
    with ndx.workspace("task") as ws:
        ndx.zeros(100)
    assert ws.stats()["size"] <= plugin.pool.stats()["reserved_bytes"]
    plugin.teardown(worker)
    assert ndx.memory.default_workspace_config() == before


def test_a_set_up_that_fails_changes_nothing(worker, monkeypatch):
    def fail(config=None):
        if config is not None:
            raise ValueError("not these policies")

    before = ndx.current_backend()
    monkeypatch.setattr(worker_memory, "default_workspace_config", fail)
    plugin = WorkerMemory(limit="1MiB", workspaces=ndx.WorkspaceConfig())
    with pytest.raises(ValueError, match="not these policies"):
        plugin.setup(worker)
    assert ndx.current_backend() is before
    assert not worker.periodic_callbacks
    assert worker_memory.active() is None


def test_teardown_restores_the_default(set_up, worker):
    before = ndx.current_backend(), memory_for_pages() > 2 * MIB
    plugin = set_up()
    assert memory_for_pages() == 2 * MIB
    plugin.teardown(worker)
    assert (ndx.current_backend(), memory_for_pages() > 2 * MIB) == before
    plugin.teardown(worker)  # again: it does nothing
    set_up().teardown(worker)


def test_idle_memory_goes_back_when_the_process_has_much(set_up, worker):
    plugin = set_up(limit="16MiB")
    callback = worker.periodic_callbacks["ndx"]
    assert callback.running
    kept = block(1)
    _ = [block(i) for i in range(8)]
    del _
    held = plugin.pool.stats()["reserved_bytes"]
    assert held >= 9 * MIB
    callback.call()
    assert plugin.pool.stats()["reserved_bytes"] == held
    # 60 % of 32 MiB, and 3 MiB more.
    worker.monitor.get_process_memory = lambda: int(0.6 * 32 * MIB) + 3 * MIB
    callback.call()
    assert held - 5 * MIB < plugin.pool.stats()["reserved_bytes"] <= held - 3 * MIB
    worker.monitor.get_process_memory = lambda: 1000 * MIB
    callback.call()
    assert plugin.pool.stats()["reserved_bytes"] < 2 * MIB
    assert_equal(kept, np.ones(MIB // 8))
    plugin.teardown(worker)
    assert not callback.running
    assert worker.periodic_callbacks == {}


needs_resident = pytest.mark.skipif(
    not _budget.resident_nbytes(), reason="the system does not tell resident memory"
)


@needs_resident
def test_what_others_have_makes_results_go_to_disk(set_up, worker):
    """distributed ends a process for all of its memory, not for ndx's alone."""
    worker.memory_manager.memory_limit = 256 * MIB
    plugin = set_up(limit="128MiB")
    worker.monitor.get_process_memory = lambda: 1024 * MIB
    worker.periodic_callbacks["ndx"].call()
    for i in range(48):
        worker.data[f"block-{i}"] = block(i)
    # A sixteenth of 256 MiB remains for arrays, and some MiB are for other memory that
    # the process takes or frees meanwhile.
    assert plugin.evicted_count >= 16
    assert plugin.pool.stats()["peak_reserved_bytes"] < 32 * MIB
    assert plugin.pool.fallback.stats()["total_allocations"] == 0
    assert_equal(worker.data["block-0"], np.zeros(MIB // 8))
    assert_equal(worker.data["block-47"], np.full(MIB // 8, 47.0))


@needs_resident
def test_pages_of_files_leave_less_for_arrays(set_up, worker):
    """distributed counts them, and ndx's limit on the process does not."""
    # The process of the tests may have grown: arrays never have less than a part.
    worker.memory_manager.memory_limit = 4 * _budget.resident_nbytes() + 1024 * MIB
    worker.monitor.get_process_memory = lambda: _budget.resident_nbytes() + 128 * MIB
    set_up(limit="64MiB")
    with_files = ndx.memory.limits()["process"]
    worker.monitor.get_process_memory = _budget.resident_nbytes
    worker.periodic_callbacks["ndx"].call()
    # Memory that is taken between the two looks at it makes them differ.
    more = ndx.memory.limits()["process"] - with_files
    assert abs(more - 128 * MIB) < 16 * MIB


@needs_resident
def test_a_lower_limit_on_the_process_stays(set_up, worker):
    worker.memory_manager.memory_limit = 256 * MIB
    before = ndx.memory.limits().get("process")
    try:
        plugin = set_up()
        look = worker.periodic_callbacks["ndx"].call
        assert ndx.memory.limits()["process"] > MIB
        ndx.memory.set_limit(process="1MiB")
        look()
        look()
        assert ndx.memory.limits()["process"] == MIB
        ndx.memory.set_limit(process=machine_memory())
        look()
        assert ndx.memory.limits()["process"] < machine_memory()
        plugin.teardown(worker)
        assert ndx.memory.limits()["process"] == machine_memory()
    finally:
        ndx.memory.set_limit(process=before)


def test_a_process_has_one_worker(set_up, worker):
    set_up()
    with pytest.raises(RuntimeError, match="already has a worker.*tcp://worker:1"):
        set_up()


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="needs a tmpfs")
def test_folders_in_memory_take_no_fallback(set_up, worker, monkeypatch):
    with pytest.raises(ValueError, match="'/dev/shm' is in memory itself"):
        set_up(directory="/dev/shm")
    monkeypatch.setenv("NDX_MMAP_DIRECTORY", "/dev/shm")
    with pytest.raises(ValueError, match="in memory itself"):
        set_up()
    monkeypatch.delenv("NDX_MMAP_DIRECTORY")
    worker.local_directory = "/dev/shm"
    assert set_up().pool.fallback.directory == ndx.backends.get("mmap").directory


@pytest.mark.parametrize("limit", ["plenty", "200%", -1])
def test_a_wrong_limit_is_an_error_at_once(limit):
    with pytest.raises(ValueError, match="limit="):
        WorkerMemory(limit=limit)


def test_wrong_options_are_errors(set_up):
    with pytest.raises(ValueError, match="nowhere"):
        set_up(backend="nowhere")
    with pytest.raises((TypeError, ValueError), match="no_such_option"):
        set_up(no_such_option=1)


def test_workspaces_are_policies():
    with pytest.raises(TypeError, match="an ndx.WorkspaceConfig, not int"):
        WorkerMemory(workspaces=3)


def test_what_is_no_client_has_no_report():
    with pytest.raises(TypeError, match=r"a distributed.Client, not int"):
        memory_report(3)


def test_the_report_of_an_asynchronous_client():
    async def ask():
        async with Client(
            n_workers=1, processes=False, dashboard_address=":0", asynchronous=True
        ) as client:
            return await memory_report(client)

    [report] = asyncio.run(ask())
    assert report.limit is None


def test_reports_are_tables():
    row = WorkerReport("one", "tcp://a", 1, MIB, 0, 1, 0, 0, 0, 0, None, 2 * MIB)
    report = MemoryReport([row, row._replace(name="<two>", limit=None)])
    first, second = str(report).splitlines()[2:]
    assert " ".join(first.split()) == "one 1 MiB 1 B 0 B 0 B 0 B - 2 MiB"
    assert second.split()[:2] == ["<two>", "-"]
    assert "&lt;two&gt;" in report._repr_html_()


# A cluster of processes. What they print to stderr fails the test.
CLUSTER = """
import logging, os, sys
import dask, dask.array as da, ndx
from distributed import Client, LocalCluster, wait
from ndx.distributed import WorkerMemory, memory_report

MIB = 2**20
if __name__ == "__main__":
    with LocalCluster(
        n_workers=2, threads_per_worker=2, memory_limit="1GiB",
        dashboard_address=":0", local_directory=sys.argv[1],
        silence_logs=logging.CRITICAL,
    ) as cluster, Client(cluster) as client:
"""


def run_cluster(body, tmp_path):
    lines = [" " * 8 + line for line in body.strip().splitlines()]
    return run_python(CLUSTER + "\n".join(lines) + "\n", tmp_path).splitlines()


@pytest.mark.nightly
def test_a_cluster_with_little_memory(tmp_path):
    body = """
client.register_plugin(WorkerMemory(limit="24MiB"))
with dask.config.set({"array.backend": "ndx"}):
    x = da.random.default_rng(1).random((192, MIB // 8), chunks=(1, MIB // 8))
x = x.persist()
wait(x)
for _ in range(2):
    y = (x - x.mean(axis=0)).sum(axis=1).compute()
    print(type(y).__name__, float(abs(y - y).max()))
report = memory_report(client)
print([each.name for each in report], {each.limit // MIB for each in report})
for each in report:
    print(each.peak_bytes <= each.limit, each.evicted_bytes > 24 * MIB,
          each.spilled_bytes > 0, each.pid != os.getpid(),
          each.peak_bytes < each.peak_resident_bytes < each.memory_limit)
"""
    found = run_cluster(body, tmp_path)
    assert found[:2] == ["NDArray 0.0"] * 2
    assert found[2] == "['0', '1'] {24}"
    assert found[3:] == ["True True True True True"] * 2
    assert not any(tmp_path.glob("**/storage/*"))


def test_arrays_move_between_workers_into_their_backends(tmp_path):
    body = """
client.register_plugin(WorkerMemory(limit="64MiB"))
one, two = sorted(client.scheduler_info()["workers"])
x = client.submit(ndx.full, MIB, 7.0, workers=one)
def look(x):
    return x.backend is ndx.current_backend(), float(ndx.sum(x)), x.backend.name
print(client.submit(look, x, workers=two).result())
print(float(x.result()[5]), x.result().backend.name)
print([each.peak_bytes >= 8 * MIB for each in memory_report(client)])
print([each.pid for each in memory_report(client, [one])]
      == [client.run(os.getpid)[one]])
"""
    found = run_cluster(body, tmp_path)
    assert found[0] == f"(True, {7.0 * MIB}, 'host')"
    assert found[1:] == ["7.0 host", "[True, True]", "True"]


@pytest.mark.nightly
def test_a_task_may_need_more_than_its_process_has(tmp_path):
    """Its arrays are in files, and used pages are dropped: the nanny kills no one."""
    body = """
def task(n):
    x = ndx.zeros(n)
    x += 1.0
    y = x * 2
    return float(ndx.sum(y)), float(ndx.max(x))
client.register_plugin(WorkerMemory(limit="64MiB"))
print(client.submit(task, 80 * MIB, allow_other_workers=False, retries=0).result())
for each in memory_report(client):
    print(each.fallback_peak_bytes // MIB, each.peak_resident_bytes < each.memory_limit)
"""
    found = run_cluster(body, tmp_path)
    assert found[0] == f"({160.0 * MIB}, 1.0)"
    assert sorted(found[1:]) == ["0 True", "1280 True"]


@pytest.mark.nightly
def test_idle_memory_does_not_pause_a_worker_for_ever(tmp_path):
    """Above 80 % of its limit a worker begins no task: none would free anything."""
    body = """
import psutil
client.register_plugin(WorkerMemory(limit="90%"))
def fill():
    free = int(0.88 * 1024 * MIB) - psutil.Process().memory_info().rss
    return float(ndx.ones(free // 8)[0])
one = min(client.scheduler_info()["workers"])
for i in range(3):
    print(client.submit(fill, workers=one, pure=False).result(timeout=60))
"""
    assert run_cluster(body, tmp_path) == ["1.0"] * 3


@pytest.mark.nightly
def test_errors_of_tasks_and_of_the_plugin_reach_the_client(tmp_path):
    body = """
try:
    client.register_plugin(WorkerMemory(backend="nowhere"))
except Exception as error:
    print(type(error).__name__, "nowhere" in str(error))
client.register_plugin(WorkerMemory(limit="4MiB", fallback=None))
try:
    client.submit(ndx.zeros, MIB).result()
except ndx.OutOfMemoryError as error:
    print(error.reason)
client.unregister_worker_plugin("ndx")
print({each.limit for each in memory_report(client)})
print(client.submit(ndx.ones, MIB).result().shape)
"""
    found = run_cluster(body, tmp_path)
    assert found == ["ValueError True", "size", "{None}", f"({MIB},)"]


@pytest.mark.nightly
def test_workers_that_join_later_have_theirs(tmp_path):
    body = """
client.register_plugin(WorkerMemory(limit="4MiB"))
cluster.scale(3)
client.wait_for_workers(3)
print([each.limit // MIB for each in memory_report(client)])
"""
    assert run_cluster(body, tmp_path) == ["[4, 4, 4]"]
