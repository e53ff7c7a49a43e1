"""`ndx.parallel.map` in processes, and arrays in shared memory."""

import concurrent.futures.process
import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from helpers.parallel import (
    LARGE,
    METHODS,
    dies,
    doubled,
    exits,
    fails_at_three,
    fails_oddly,
    items,
    named,
    script,
    serving,
    shared_files,
    sleeps,
    wait_until,
    where_it_lies,
    writes,
)

import ndx
from ndx._pipelines import mapping
from ndx._pipelines.sharing import remove_folders_of
from ndx.testing import assert_equal

pytestmark = [
    pytest.mark.threads,
    pytest.mark.usefixtures("nothing_left_behind"),
    pytest.mark.skipif(os.name != "posix", reason="there are no files in memory"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@pytest.mark.parametrize("size", [3, LARGE])
@pytest.mark.parametrize("method", METHODS)
def test_results_have_the_order_of_the_items(method, size):
    found = list(
        ndx.parallel.map(doubled, items(5, size), processes=2, start_method=method)
    )
    for i, each in enumerate(found):
        assert each.workspace is None
        assert_equal(each, np.full(size, 2.0 * i))
        each += 1


def test_as_many_processes_as_cores():
    found = ndx.parallel.map(where_it_lies, items(4), workers="processes")
    processes = {each[2] for each in found}
    assert os.getpid() not in processes
    assert len(processes) <= ndx.get_num_threads()
    (found,) = ndx.parallel.map(
        where_it_lies, items(1), workers="processes", processes=3
    )
    assert found[2] != os.getpid()


@pytest.mark.parametrize("method", METHODS)
def test_shared_arrays_are_not_copied(method):
    """What is written after an array was shared is seen by all: there is one copy."""
    shared = ndx.parallel.share(ndx.zeros((4, LARGE)))
    before = shared_files()
    with ndx.parallel.map(
        where_it_lies, list(shared), processes=1, buffersize=1, start_method=method
    ) as results:
        found = [next(results)]
        shared[...] = 5.0
        found += [next(results) for _ in range(3)]
    assert [each[0] for each in found] == [0.0, 5.0, 5.0, 5.0]
    # They can't be written there.
    assert {each[1] for each in found} == {False}
    assert shared_files() == before
    del shared
    assert not shared_files()


def test_shared_arrays_can_be_written_if_asked_for():
    out = ndx.parallel.share(ndx.zeros((3, 10)), writable=True)
    found = list(ndx.parallel.map(writes, list(out), processes=2))
    assert found == [-1.0] * 3
    assert_equal(out[:, 0], np.full(3, -1.0))
    # The results of views come back as views.
    back = list(ndx.parallel.map(where_it_lies, [out[1:, ::2][0]], processes=1))
    assert back[0][:2] == (-1.0, True)


def test_shared_arrays_can_not_be_written_otherwise():
    shared = ndx.parallel.share(ndx.zeros(10))
    with pytest.raises(ValueError, match="read-only|can't be written|writ"):
        list(ndx.parallel.map(writes, [shared], processes=1))
    assert float(shared[0]) == 0.0


def test_shared_arrays_return_as_themselves():
    shared = ndx.parallel.share(ndx.arange(10.0))
    (found,) = ndx.parallel.map(_same, [shared], processes=1)
    assert found is shared


def _same(x):
    return x


def test_what_is_shared_ends_with_the_array():
    shared = ndx.parallel.share([1.0, 2.0])
    assert_equal(shared, np.asarray([1.0, 2.0]))
    assert len(shared_files()) == 1
    shared.close()
    # Another array may be at its address now: it is sent by itself.
    assert_equal(
        next(ndx.parallel.map(doubled, [ndx.ones(2)], processes=1)), np.full(2, 2.0)
    )
    del shared
    assert not shared_files()


def test_forked_children_take_any_function():
    if "fork" not in METHODS:
        pytest.skip("there is no fork")
    x = ndx.ones(3)
    found = ndx.parallel.map(lambda y: x + y, [1, 2], processes=2, start_method="fork")
    assert_equal(list(found)[1], np.full(3, 3.0))


def test_functions_that_do_not_pickle_are_refused():
    with pytest.raises(TypeError, match="defined in a module"):
        ndx.parallel.map(lambda x: x, [1], processes=2, start_method="spawn")


@pytest.mark.parametrize("method", METHODS)
def test_processes_have_workspaces_and_backends(method):
    """A workspace for each worker process, on the backend of the caller, by name."""
    config = ndx.WorkspaceConfig(size="1MiB", spill="fail")
    with ndx.use("host", limit="8MiB"), ndx.workspace("outer", size="1MiB") as outer:
        found = list(
            ndx.parallel.map(
                serving, items(2), processes=1, workspace="mine", config=config,
                start_method=method,
            )
        )  # fmt: skip
    outer.destroy()
    assert {name for name, _ in found} == {"mine"}
    assert all(str(8 * 2**20) in backend for _, backend in found)
    found = ndx.parallel.map(serving, items(1), processes=1, backend="mmap")
    assert "mmap" in next(found)[1]


def test_items_of_a_workspace():
    with ndx.workspace("outer", size="1MiB") as outer:
        found = list(ndx.parallel.map(doubled, items(2), processes=2))
    outer.destroy()
    assert_equal(found[1], np.full(LARGE, 2.0))


@pytest.mark.parametrize("method", METHODS)
def test_errors_say_which_item_and_where(method):
    results = ndx.parallel.map(
        fails_at_three, items(9), processes=2, start_method=method
    )
    assert len([next(results) for _ in range(3)]) == 3
    with pytest.raises(KeyError, match="three") as caught:
        next(results)
    assert caught.value.index_of_item == 3
    assert any("fails_at_three" in note for note in caught.value.__notes__)


def test_errors_that_do_not_pickle():
    """In a new process: a forked one may have what makes others pickle them."""
    with pytest.raises(RuntimeError, match="Odd: 1 and 2"):
        list(ndx.parallel.map(fails_oddly, [1], processes=1, start_method="spawn"))


def test_items_that_do_not_pickle():
    results = ndx.parallel.map(doubled, [1, threading.Lock()], processes=1)
    assert next(results) == 2
    with pytest.raises(TypeError, match="pickle"):
        next(results)


@pytest.mark.parametrize("method", METHODS)
def test_a_child_that_is_killed_is_an_error(method):
    """kill -9: the error names the signal and the item; nothing hangs or is left."""
    results = ndx.parallel.map(dies, items(9), processes=2, start_method=method)
    assert len([next(results) for _ in range(2)]) == 2
    with pytest.raises(
        concurrent.futures.process.BrokenProcessPool, match="SIGKILL.*no more memory"
    ) as caught:
        list(results)
    assert caught.value.index_of_item == 2


def test_a_child_that_exits_is_an_error():
    with pytest.raises(
        concurrent.futures.process.BrokenProcessPool, match="exit code 7\nraised"
    ):
        list(ndx.parallel.map(exits, items(2), processes=2))


def test_an_early_end_kills_what_computes():
    start = time.monotonic()
    before = set(multiprocessing.active_children())
    with ndx.parallel.map(sleeps, [1, 2], processes=2):
        wait_until(lambda: len(set(multiprocessing.active_children()) - before) == 2)
        time.sleep(0.1)
    assert time.monotonic() - start < 30
    assert not named("ndx-map")


def test_ctrl_c_ends_the_processes():
    status, out, err = script(
        """
import multiprocessing, os, sys, threading, ndx
from helpers.parallel import shared_files, sleeps
try:
    with ndx.parallel.map(sleeps, [1, 2], processes=2) as results:
        # Python misses a signal that comes just before it waits for a lock.
        threading.Timer(0.5, print, ["running"], {"flush": True}).start()
        list(results)
except KeyboardInterrupt:
    pass
print(threading.active_count(), multiprocessing.active_children(), shared_files())
""",
        until="running",
        sends=signal.SIGINT,
    )
    assert (status, out, err) == (0, "1 [] set()\n", "")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("moment", ["before a process", "after it", "before threads"])
def test_an_interrupt_at_the_start_ends_the_processes(method, moment, monkeypatch):
    """Ctrl-C may come between any two lines."""
    started = []
    start = multiprocessing.process.BaseProcess.start

    def interrupted(process):
        if started and moment == "before a process":
            raise KeyboardInterrupt
        start(process)
        started.append(process)
        if len(started) == 2 and moment == "after it":
            raise KeyboardInterrupt

    def no_threads(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", interrupted)
    if moment == "before threads":
        monkeypatch.setattr(mapping, "Crew", no_threads)
    before = set(multiprocessing.active_children()), shared_files()
    with pytest.raises(KeyboardInterrupt):
        ndx.parallel.map(doubled, items(3), processes=3, start_method=method)
    assert len(started) == {"before a process": 1, "after it": 2}.get(moment, 3)
    assert (set(multiprocessing.active_children()), shared_files()) == before


def test_an_abandoned_start_ends_with_the_interpreter():
    """The traceback of an error that ends the program keeps what it has made."""
    status, out, err = script(
        """
import multiprocessing, ndx
from ndx._pipelines import mapping
from helpers.parallel import doubled

kept = []

class Kept(mapping.Processes):
    def close(self):
        if kept:
            super().close()
        kept.append(self)

mapping.Processes = Kept
mapping.Crew = None
try:
    ndx.parallel.map(doubled, [1, 2], processes=2)
except TypeError:
    print("made", len(multiprocessing.active_children()), flush=True)
""",
        until="made 2",
    )
    assert (status, out, err) == (0, "", "")


@pytest.mark.parametrize("result", ["doubled", "many_bytes"])
def test_the_end_of_the_parent_ends_the_processes(tmp_path, result):
    """kill -9 of the parent: its processes end, and remove the files.

    Also those that send more bytes than fit into a pipe.
    """
    status, *_ = script(
        """
import multiprocessing, ndx, os
from helpers.parallel import RESULT, shared_files
results = ndx.parallel.map(RESULT, (ndx.ones(20_000) for _ in range(99)), processes=2)
next(results)
assert shared_files()
children = [each.pid for each in multiprocessing.active_children()]
with open("PATH", "w") as file:
    print(os.getpid(), *children, file=file)
os.kill(os.getpid(), 9)
""".replace("PATH", str(tmp_path / "pids")).replace("RESULT", result),
        until="-",
    )
    assert status == -signal.SIGKILL
    parent, *children = map(int, (tmp_path / "pids").read_text().split())
    assert len(children) == 2
    wait_until(lambda: not shared_files(parent))
    wait_until(lambda: not any(map(is_running, children)))


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat") as file:
        # Nobody may be there to wait for it.
        return ") Z " not in file.read()


def test_pickles_of_shared_arrays_are_those_of_others():
    shared = ndx.parallel.share(ndx.arange(3.0))
    assert_equal(pickle.loads(pickle.dumps(shared)), np.arange(3.0))
    again = pickle.loads(pickle.dumps(shared))
    del shared
    gc.collect()
    assert_equal(again, np.arange(3.0))


def test_no_room_in_memory_is_no_error(monkeypatch, small_disk, tmp_path):
    """Where there is little shared memory, the folder of temporary files is used."""
    import tempfile

    from ndx._pipelines import sharing

    small = small_disk("1M")
    monkeypatch.setattr(sharing, "MEMORY", str(small))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shared = ndx.parallel.share(ndx.ones(10**6))
    assert float(ndx.sum(shared)) == 1e6
    del shared
    assert not os.listdir(small)
    monkeypatch.setattr(tempfile, "tempdir", str(small))
    with pytest.raises(OSError, match="space"):
        ndx.parallel.share(ndx.ones(10**6))
    assert not os.listdir(small)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no such shared memory")
def test_what_a_killed_process_shared_is_removed_by_the_next_one(tmp_path):
    """Nobody may remove what a living process, or a child of a dead one, still has."""
    status, *_ = script(
        """
import ndx, os
shared = ndx.parallel.share(ndx.ones(20_000))
with open("PATH", "w") as file:
    print(os.getpid(), file=file)
os.kill(os.getpid(), 9)
""".replace("PATH", str(tmp_path / "pid")),
        until="-",
    )
    assert status == -signal.SIGKILL
    pid = int((tmp_path / "pid").read_text())
    (left,) = shared_files(pid)
    mine = ndx.parallel.share(ndx.ones(20_000))
    old = time.time() - 3600
    for name in (left, *shared_files()):
        os.utime(f"/dev/shm/{name}", (old, old))
    stranger = f"/dev/shm/ndx-{pid}-mine"
    os.mkdir(stranger)
    os.utime(stranger, (old, old))
    try:
        status, out, err = script(
            'import ndx; shared = ndx.parallel.share(ndx.ones(3)); print("shared")',
            until="shared",
        )
        assert (status, out, err) == (0, "", "")
        assert not os.path.exists(f"/dev/shm/{left}")
        assert os.path.exists(stranger)
        assert shared_files()
    finally:
        os.rmdir(stranger)
        # The other one, of the disk, is left to the system.
        remove_folders_of(pid)
    del mine
    assert not shared_files()
