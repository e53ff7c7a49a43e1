"""What the tests of parallel workers share: functions that pickle, and what is left."""

import contextlib
import gc
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import ndx
from helpers.commands import PACKAGE
from helpers.threads import wait_until

TESTS = str(Path(__file__).parents[1])
METHODS = [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()]
# Large enough for a file; arrays of 100 elements are pickled.
LARGE = 20_000


def items(count, size=LARGE):
    return [ndx.full(size, float(i)) for i in range(count)]


@contextlib.contextmanager
def nothing_left():
    """Fail if a block leaves threads, processes, workspaces or files.

    What ends by itself, such as a thread that was told to stop, may take its time.
    """
    threads = set(threading.enumerate())
    # Other libraries keep processes of theirs: joblib's pool ends after minutes.
    processes = set(multiprocessing.active_children())
    spaces = set(ndx.memory.workspaces(all_threads=True))
    before = ndx.get_num_threads()
    files = shared_files()
    yield
    wait_until(lambda: set(threading.enumerate()) <= threads)
    wait_until(lambda: set(multiprocessing.active_children()) <= processes)
    wait_until(lambda: not open_since(spaces))
    wait_until(lambda: ndx.get_num_threads() == before)
    wait_until(lambda: shared_files() <= files)


def open_since(spaces):
    """Return workspaces that are no earlier ones, and are open or hold memory."""
    left = set(ndx.memory.workspaces(all_threads=True)) - spaces
    return [each for each in left if each.size or each.is_open]


def shared_files(process=None):
    """Return the files and folders of a process, this one, in shared memory."""
    with contextlib.suppress(FileNotFoundError):
        mine = f"ndx-{process or os.getpid()}-"
        return {each for each in os.listdir("/dev/shm") if each.startswith(mine)}
    return set()


def host_bytes():
    """Return the bytes of live arrays on the host backend."""
    gc.collect()
    return ndx.memory.stats("host")["allocated_bytes"]


def named(start):
    """Return the threads whose names begin so."""
    return [each for each in threading.enumerate() if each.name.startswith(start)]


def script(source, *, until, sends=None):
    """Run a program; send it a signal when it printed a line; return how it ended.

    That is its status, what it printed after that line, and its errors.
    """
    # Where the tests run in the background, SIGINT is ignored, and children inherit it.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", heed + source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE, TESTS])},
    )
    try:
        for line in process.stdout:
            if until in line:
                break
        if sends is not None:
            process.send_signal(sends)
        out, err = process.communicate(timeout=60)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err


# ------------------------------------------------- functions for worker processes
# Here, since a new process imports their module by its name: that of a file of tests is
# known in the folder of the checkout alone.


def named_types(leaves):
    return [type(leaf).__name__ for leaf in leaves]


def doubled(x):
    return x * 2


def many_bytes(x):
    return bytes(10**6)


def pair(x, y):
    return {"sum": x + y, "parts": (x, [y])}


def where_it_lies(x):
    """Return the first element of an array, and whether it can be written."""
    return float(x[0]), x.flags.writeable, os.getpid()


def fails_at_three(x):
    if float(x[0]) == 3:
        raise KeyError("three")
    return x


class Odd(Exception):
    """An error that can't be loaded again."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def fails_oddly(x):
    raise Odd(1, 2)


class Silent(Exception):
    """An error that can't be sent, nor say what it is."""

    def __reduce__(self):
        raise TypeError("it does not pickle")

    def __str__(self):
        raise RuntimeError("it has no text")


def fails_silently(x):
    raise Silent


def dies(x):
    if float(x[0]) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def exits(x):
    os._exit(7)


def sleeps(x):
    time.sleep(60)


def ignores_the_end(path):
    """Sleep through SIGTERM; a file says that it has begun."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(path).touch()
    time.sleep(60)


def writes(x):
    x[0] = -1.0
    return float(x[0])


def serving(x):
    """Return what serves an array that is made here."""
    made = x * 2
    return made.workspace, repr(ndx.current_backend())


class Mine(ndx.backends.PythonBackend):
    """A backend of the user's, registered by nobody."""

    def acquire(self, nbytes):
        return bytearray(nbytes)


KEPT = []


def returns_the_one_before(x):
    """Return the item before, which the process has kept, and share it, too."""
    KEPT.append(ndx.parallel.share(x))
    KEPT.append(x)
    return KEPT[-3] if len(KEPT) > 2 else x, os.getpid()


def first_of_both(x, y):
    return float(x[0]), float(y[0])


def forks_and_sleeps(path):
    """Start a process that outlives this one for some seconds, and sleep."""
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
    Path(path).touch()
    time.sleep(60)


def dies_in_its_answer(x):
    """Send a part of an answer and die; a process that was forked here lives on."""
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
    (pipe,) = (x for x in gc.get_objects() if type(x) is Connection and not x.closed)
    os.write(pipe.fileno(), struct.pack("!i", 1000) + bytes(10))
    os.kill(os.getpid(), signal.SIGKILL)


def shares_and_sleeps(path):
    """Share an array; a file with the number of the process says that."""
    KEPT.append(ndx.parallel.share(ndx.ones(LARGE)))
    Path(path).with_suffix(".new").write_text(str(os.getpid()))
    Path(path).with_suffix(".new").rename(path)
    time.sleep(60)


def shares_and_stays_in_a_scope(x):
    KEPT.append(ndx.parallel.share(ndx.ones(LARGE)))
    ndx.workspace("left").__enter__()
    return os.getpid()


class Counter:
    """Counts items in an array, of which it returns a part."""

    def __init__(self, counts):
        self.counts = counts

    def __call__(self, item):
        self.counts[item] += 1
        return float(self.counts[item])


class Slow:
    """An item that takes some time to pickle."""

    def __init__(self):
        self.begun = threading.Event()

    def __reduce__(self):
        self.begun.set()
        time.sleep(0.2)
        return int, (3,)


def backend_and_limits(x):
    """Return the names and bounds of what serves here, and the limits."""
    chain, backend = [], ndx.current_backend()
    while isinstance(backend, ndx.memory.Adaptor):
        chain.append(backend.allowed)
        backend = backend.upstream
    fallback = backend.options.fallback
    chain += [backend.name, backend.limit, fallback and fallback.name]
    return chain, ndx.memory.limits()


def blocked_signals(x=None):
    """Return the numbers of the signals that the calling thread blocks."""
    return sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, [])))


def shares(x):
    """Return an array that this process shares, and a part of it."""
    made = ndx.parallel.share(x * 2)
    return made, made[1:]


def answer(connection):
    """Send back what comes, doubled, from an own backend; until None comes."""
    with ndx.use("host", limit="1MiB") as backend:
        while (x := connection.recv()) is not None:
            connection.send((x * 2, x.backend is backend))


def described(x):
    return x.shape, str(x.dtype), x.flags.c_contiguous, x.flags.f_contiguous


def described_and_back(xs):
    return [described(x) for x in xs], xs


class Keeps:
    """A function with arrays of its own."""

    def __init__(self, arrays):
        self.arrays = arrays

    def __call__(self, item):
        return [described(x) for x in self.arrays]


def adds_to_its_own(x):
    x += 1.0
    return float(x[0])


class AddsToItsOwn:
    def __init__(self, table):
        self.table = table

    def __call__(self, item):
        return adds_to_its_own(self.table)
