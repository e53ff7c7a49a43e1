"""A thread gives idle memory back when it is time, though nobody requests any."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from helpers.commands import run_python
from helpers.pools import MIB, check, device, files, host, take
from helpers.threads import wait_until
from helpers.together import run_together

import ndx

HAS_THREAD = os.name == "posix" and os.environ.get("NDX_IDLE_THREAD", "1") == "1"
pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(not HAS_THREAD, reason="requests look at the pools here"),
]
only_where_threads_are_listed = pytest.mark.skipif(
    sys.platform != "linux", reason="reads /proc"
)

# What programs of tests share: `back`, which waits for memory without a request.
START = """
import os, sys, threading, time
import ndx
from ndx.backends import HostBackend
MIB = 2**20
def make_idle(backend, nbytes=16 * MIB):
    with ndx.use(backend):
        ndx.empty(nbytes, dtype="uint8")
def held(backend):
    return backend.stats()["reserved_bytes"]
def back(backend, most=MIB, seconds=30):
    end = time.monotonic() + seconds
    while held(backend) > most and time.monotonic() < end:
        time.sleep(0.002)
    return held(backend) <= most
def threads():
    names = {}
    for each in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{each}/comm") as file:
            names[int(each)] = file.read().strip()
    return [each for each in names if names[each] == "ndx-idle"]
def switches(thread):
    with open(f"/proc/self/task/{thread}/status") as file:
        return int(file.read().split("\\nvoluntary_ctxt_switches:")[1].split()[0])
"""


def run(code, **environment):
    return run_python(START + code, environment=environment)


def is_back(backend, most=MIB):
    return lambda: backend.stats()["reserved_bytes"] <= most


# ----------------------------------------------------------------------- what goes back


@pytest.mark.parametrize("make", [host, files])
@pytest.mark.parametrize("kind", ["split", "round", "naive"])
def test_idle_memory_goes_back_without_a_request(make, kind):
    backend = make(idle_release=0.05, pool=kind)
    live = take(backend, 100_000)
    take(backend, 64 * MIB).release()
    wait_until(is_back(backend))
    check(backend, [live])


def test_memory_beside_what_lives_goes_back():
    backend = host(idle_release=0.05)
    ranges = [take(backend, MIB) for _ in range(32)]
    for each in ranges[::2]:
        each.release()
    wait_until(is_back(backend, 17 * MIB))
    assert backend.stats()["reserved_bytes"] >= 16 * MIB
    check(backend, ranges[1::2])


def test_what_is_set_aside_stays_until_it_is_not():
    backend = host(idle_release=0.02, initial="8MiB")
    take(backend, 32 * MIB).release()
    wait_until(is_back(backend, 8 * MIB))
    assert backend.stats()["reserved_bytes"] == 8 * MIB
    backend.kept_nbytes = 0
    wait_until(is_back(backend))


def test_pools_without_a_time_keep_theirs():
    kept, other = host(idle_release=None), host(idle_release=0.02)
    for backend in (kept, other):
        take(backend, 16 * MIB).release()
    wait_until(is_back(other))
    assert kept.idle_nbytes >= 16 * MIB


def test_devices_are_left_to_requests():
    """Their sources may run Python, or need a context."""
    backend, other = (
        device(capacity="64MiB", idle_release=0.02),
        host(idle_release=0.02),
    )
    for each in (backend, other):
        take(each, 16 * MIB).release()
    wait_until(is_back(other))
    assert backend.idle_nbytes >= 16 * MIB

    def goes_back_at_a_request():
        take(other, 100).release()
        return backend.idle_nbytes <= MIB

    wait_until(goes_back_at_a_request)


def test_a_peak_comes_again_within_the_time():
    backend = host(idle_release=600)
    for _ in range(20):
        take(backend, 16 * MIB).release()
    assert backend.idle_nbytes >= 16 * MIB
    assert backend.events()["purges"] == 0


# -------------------------------------------------------------------------- the thread


@only_where_threads_are_listed
def test_there_is_no_thread_before_something_is_idle():
    code = """
backend = HostBackend(idle_release=0.02)
with ndx.use(backend):
    x = ndx.ones(4_000_000)
    y = [ndx.ones(10) for _ in range(100)]
    del y
print(threads())
del x
while not threads():
    pass
print(back(backend))
print(len(threads()))
"""
    assert run(code).split("\n")[:-1] == ["[]", "True", "1"]


@only_where_threads_are_listed
def test_it_sleeps_for_good_when_nothing_can_become_due():
    """Neither what is set aside, nor what is too little, nor what can't go wakes it."""
    code = """
backends = [HostBackend(idle_release=0.02, initial=n) for n in (0, 32 * MIB)]
files = ndx.backends.MmapBackend(idle_release=0.02)
with ndx.use(files):
    frozen = ndx.ones(4 * MIB)
    del frozen
files.freeze()
small = HostBackend(idle_release=0.02)
for backend in backends:
    make_idle(backend, 16 * MIB)
make_idle(small, 500_000)
assert back(backends[0]) and held(backends[1]) == 32 * MIB
thread, = threads()
end = time.monotonic() + 60
quiet = 0
while quiet < 10 and time.monotonic() < end:
    before = switches(thread)
    time.sleep(0.1)
    quiet = quiet + 1 if switches(thread) == before else 0
print(quiet)
make_idle(backends[0])
print(back(backends[0]))
"""
    assert run(code) == "10\nTrue\n"


@only_where_threads_are_listed
def test_the_environment_turns_it_off():
    code = """
backend = HostBackend(idle_release=0.01)
make_idle(backend)
time.sleep(0.2)
print(threads(), held(backend) > 15 * MIB)
while held(backend) > 4 * MIB:
    make_idle(backend, 100_000)
"""
    assert run(code, NDX_IDLE_THREAD="0") == "[] True\n"


def test_a_variable_that_says_neither_is_refused():
    from ndx.backends._pool.trim import allow_idle_thread

    with pytest.raises(ValueError, match="NDX_IDLE_THREAD='perhaps' is neither 1"):
        allow_idle_thread("perhaps")


@only_where_threads_are_listed
def test_it_takes_no_signals():
    backend = host(idle_release=0.02)
    take(backend, 16 * MIB).release()

    def blocked():
        for task in Path("/proc/self/task").iterdir():
            if (task / "comm").read_text().strip() == "ndx-idle":
                mask = (task / "status").read_text().split("SigBlk:")[1].split()[0]
                return int(mask, 16)
        return 0

    wait_until(blocked)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1):
        assert blocked() >> (each - 1) & 1
    assert not blocked() >> (signal.SIGBUS - 1) & 1


# -------------------------------------------------------------------------------- forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_has_its_own():
    code = """
backend = HostBackend(idle_release=0.02)
make_idle(backend)
child = os.fork()
make_idle(backend)
ended = back(backend)
if child == 0:
    grandchild = os.fork()
    if grandchild == 0:
        make_idle(backend)
        os._exit(0 if back(backend) else 1)
    _, status = os.waitpid(grandchild, 0)
    os._exit(0 if ended and status == 0 else 1)
_, status = os.waitpid(child, 0)
print(ended, status)
"""
    assert run(code) == "True 0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forks_while_it_works():
    """Whatever it was about to give back, no child lacks it, and none waits for ever.

    A child keeps what its parent's other threads had at that moment, and those alone.
    """
    code = """
backends = [HostBackend(idle_release=0.001) for _ in range(4)]
over = threading.Event()
files = ndx.backends.MmapBackend(idle_release=0.001)
def work():
    while not over.is_set():
        for backend in (*backends, files):
            make_idle(backend, 4 * MIB)
workers = [threading.Thread(target=work) for _ in range(2)]
for each in workers:
    each.start()
failed = 0
for _ in range(60):
    child = os.fork()
    if child == 0:
        for backend in backends:
            make_idle(backend, 32 * MIB)
        os._exit(not all(back(each, 10 * MIB) for each in backends))
    _, status = os.waitpid(child, 0)
    failed += status != 0
over.set()
for each in workers:
    each.join()
print(failed, all(back(each) for each in backends))
"""
    assert run(code, PYTHONWARNINGS="ignore") == "0 True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="older ones don't look")
def test_a_fork_does_not_meet_a_second_thread():
    code = """
import warnings
backend = HostBackend(idle_release=60)
make_idle(backend)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
print([str(each.message) for each in caught])
"""
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    assert run(code, **one) == "[]\n"


# --------------------------------------------------------------------------------- exit

ENDINGS = {
    "the end of the program": "",
    "sys.exit": "sys.exit(0)",
    "os._exit": "sys.stdout.flush(); os._exit(0)",
    "a release at exit": """
import atexit
atexit.register(lambda: make_idle(kept[0]))
""",
    "daemon threads": """
def work():
    while True:
        make_idle(kept[0], 4 * MIB)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
""",
    "a cycle of pools": "kept.append(kept)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_exit_while_it_works(ending):
    code = """
kept = [HostBackend(idle_release=0.0) for _ in range(8)]
for _ in range(5):
    for each in kept:
        make_idle(each)
print("done", flush=True)
"""
    for _ in range(3):
        assert run(code + ENDINGS[ending]) == "done\n"


@pytest.mark.skipif(not hasattr(signal, "SIGTERM"), reason="signals")
def test_a_signal_ends_the_program():
    code = """
import signal
backend = HostBackend(idle_release=0.0)
make_idle(backend)
def end(*_):
    print("ended")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(30)
"""
    assert run(code) == "ended\n"


# ------------------------------------------------------------------ many pools, threads


def test_pools_come_and_go_while_it_looks():
    end = threading.Event()
    failures = []

    def work():
        while not end.is_set():
            made = [host(idle_release=0.0) for _ in range(6)]
            for each in made:
                take(each, 4 * MIB).release()
            if any(each.stats()["allocated_bytes"] for each in made):
                failures.append(made)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    watched = host(idle_release=0.0)
    for _ in range(100):
        take(watched, 4 * MIB).release()
        wait_until(is_back(watched))
    end.set()
    for each in threads:
        each.join()
    assert not failures


def test_threads_share_pools_with_it():
    """A soak: contents stay, limits are exact, and books are right at its end."""
    run_together("""
    import random, time
    import numpy as np
    limit = 24 * 2**20
    backend = ndx.backends.HostBackend(idle_release=0.01, limit=limit)
    files = ndx.backends.MmapBackend(idle_release=0.01)
    end = time.monotonic() + 3
    def work():
        rng, kept = random.Random(threading.get_ident()), []
        while time.monotonic() < end:
            which = backend if rng.random() < 0.8 else files
            n = int(2 ** rng.uniform(3, 22))
            try:
                with ndx.use(which):
                    kept.append((n % 251, ndx.full(n, n % 251, dtype="uint8")))
            except ndx.OutOfMemoryError:
                kept.clear()
            assert backend.stats()["reserved_bytes"] <= limit
            if len(kept) > 8 or rng.random() < 0.3 and kept:
                value, x = kept.pop(rng.randrange(len(kept)))
                assert (np.asarray(x) == value).all()
            if rng.random() < 0.05:
                time.sleep(0.02)
        for value, x in kept:
            assert (np.asarray(x) == value).all()
    run(work, work, work, work)
    for each in (backend, files):
        stats = each.stats()
        assert stats["allocated_bytes"] == stats["allocated_count"] == 0
        assert stats["peak_reserved_bytes"] <= limit or each is files
        late = time.monotonic() + 30
        while each.idle_nbytes > 2**20:
            assert time.monotonic() < late
            time.sleep(0.01)
    """)


def test_limits_stay_exact_while_it_gives_back():
    backend = host(idle_release=0.0, limit=8 * MIB)
    for _ in range(200):
        live = [take(backend, MIB) for _ in range(8)]
        with pytest.raises(ndx.OutOfMemoryError):
            take(backend, MIB)
        assert backend.stats()["reserved_bytes"] == 8 * MIB
        for each in live:
            each.release()
    assert backend.stats()["peak_reserved_bytes"] == 8 * MIB
    wait_until(is_back(backend))  # the books are read in two steps
    check(backend)
