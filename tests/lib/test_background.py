"""Threads that ndx starts take no signals; the processes that they start do."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import PACKAGE
from helpers.parallel import blocked_signals
from helpers.threads import run_in_thread

import ndx
from ndx._lib import background
from ndx._lib.background import BackgroundThread, signals_of_program

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(
        not hasattr(signal, "pthread_sigmask"),
        reason="the system has no masks of signals",
    ),
]
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="there is no /proc"
)
# Those that a thread gets for what it does itself; the system's two are libc's own.
FAULTS = {signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP}
UNBLOCKABLE = {signal.SIGKILL, signal.SIGSTOP}
ALL = signal.valid_signals() - FAULTS - UNBLOCKABLE


def blocked_here():
    return signal.pthread_sigmask(signal.SIG_BLOCK, [])


def tasks(feature):
    """Return the threads of this process that are no other library's, by number.

    Those of OpenBLAS begin and end when it likes: after a fork, for instance.
    """
    if feature == "arrays computed by threads":
        return {int(each) for each in os.listdir("/proc/self/task")}
    return {each.native_id for each in threading.enumerate()}


def blocked_by(task):
    """Return the signals that a thread blocks, as the system says."""
    for line in Path(f"/proc/self/task/{task}/status").read_text().splitlines():
        if line.startswith("SigBlk:"):
            bits = int(line.split()[1], 16)
            return {n for n in range(1, 65) if bits >> (n - 1) & 1}
    raise AssertionError(task)


def source():
    yield from (np.full(8, i) for i in range(30))


def prefetched(while_it_runs):
    with ndx.prefetch(source()) as batches:
        next(iter(batches))
        while_it_runs()


def mapped(while_it_runs, **options):
    with ndx.parallel.map(abs, range(8), **options) as results:
        next(results)
        while_it_runs()


def unchanged(params, batch):
    return params, 0.0


def trained(while_it_runs):
    def on_score(batches, score):
        while_it_runs()

    batches = iter([ndx.ones(3)] * 4)
    ndx.parallel.train(unchanged, ndx.ones(3), batches, workers=2, on_score=on_score)


def predicted(while_it_runs, mode):
    with ndx.parallel.Predictor(ndx.abs, mode=mode, workers=2) as predict:
        predict(ndx.ones((2, 2)))
        while_it_runs()


def computed(while_it_runs):
    x, before = ndx.ones(2_000_000), ndx.get_num_threads()
    # Threads are never ended: more than any test has started.
    ndx.set_num_threads(len(os.listdir("/proc/self/task")) + 2)
    try:
        x + x
        while_it_runs()
    finally:
        ndx.set_num_threads(before)


FEATURES = {
    "prefetch": prefetched,
    "map by threads": lambda look: mapped(look, workers=3),
    "map by processes": lambda look: mapped(look, processes=2),
    "train": trained,
    "Predictor, batched": lambda look: predicted(look, "batched"),
    "Predictor, sequential": lambda look: predicted(look, "sequential"),
    "Predictor, inplace": lambda look: predicted(look, "inplace"),
    "arrays computed by threads": computed,
}


@needs_proc
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("feature", FEATURES)
def test_each_thread_that_ndx_starts_blocks_all_signals(feature):
    before, found = tasks(feature), {}

    def look():
        for task in tasks(feature) - before:
            found[task] = ALL - blocked_by(task)

    mine = blocked_here()
    FEATURES[feature](look)
    assert not any(found.values()), found
    assert blocked_here() == mine
    assert found or "inplace" in feature


@needs_proc
def test_a_server_that_waits_for_a_signal_is_not_ended_by_it():
    program = """
import os, signal, ndx
batches = ndx.prefetch((ndx.ones(3) for i in range(10**9)), depth=2)
next(iter(batches))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
for i in range(100):
    os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.sigtimedwait([signal.SIGUSR1], 30).si_signo == signal.SIGUSR1
print("served")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        # The threads of OpenBLAS, which NumPy starts, block nothing.
        env={**os.environ, "PYTHONPATH": PACKAGE, "OPENBLAS_NUM_THREADS": "1"},
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "served\n"), done.stderr


def test_faults_are_for_the_thread_that_faults():
    found = []
    thread = BackgroundThread(target=lambda: found.append(blocked_here()))
    thread.start()
    thread.join()
    assert not found[0] & FAULTS


def in_background(function):
    """Return what a function returns in a thread of ndx."""
    found = []
    thread = BackgroundThread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def exit_status(child):
    """Return how a forked process ends that calls a function, which says yes or no."""
    process = os.fork()
    if process == 0:
        status = 2
        try:
            status = 0 if child() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_process_that_such_a_thread_forks_blocks_what_the_program_does():
    def test():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
        mine = blocked_here()
        assert in_background(lambda: exit_status(lambda: blocked_here() == mine)) == 0
        # Also from a thread that was started by such a one.
        assert (
            in_background(
                lambda: in_background(
                    lambda: exit_status(lambda: blocked_here() == mine)
                )
            )
            == 0
        )

    run_in_thread(test)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_a_map_in_a_worker_block_what_the_program_does(method):
    def nested(item):
        with ndx.parallel.map(
            blocked_signals, [item], processes=1, start_method=method
        ) as results:
            return list(results)

    (found,) = ndx.parallel.map(nested, [0], workers=1)
    assert found == [blocked_signals()]


def test_a_process_that_is_started_in_the_scope_blocks_what_the_program_does():
    def status():
        with signals_of_program():
            inside = blocked_here()
        return inside, blocked_here()

    inside, after = in_background(status)
    assert inside == blocked_here()
    assert after >= ALL
    with signals_of_program():
        assert blocked_here() == inside


def test_a_thread_that_can_not_start_changes_nothing(monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("can't start new thread")

    before = blocked_here()
    monkeypatch.setattr(threading, "_start_new_thread", refuse, raising=False)
    monkeypatch.setattr(threading, "_start_joinable_thread", refuse, raising=False)
    with pytest.raises(RuntimeError, match="can't start"):
        BackgroundThread(target=print).start()
    assert blocked_here() == before


def test_ctrl_c_while_a_thread_starts_leaves_the_signals_as_they_were(monkeypatch):
    """The signal comes while all are blocked, and is handled when they are not."""
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are handled in the main thread")
    before = blocked_here()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    thread = BackgroundThread(target=lambda: None)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.start()
    finally:
        signal.signal(signal.SIGINT, handler)
    thread.join()
    assert blocked_here() == before


def test_without_masks_of_signals_threads_start_as_they_do(monkeypatch):
    """On Windows there are none."""
    monkeypatch.setattr(background, "_HAS_MASKS", False)
    before = blocked_here()
    assert in_background(blocked_here) == before
