"""SIGBUS: ours is an error, another's ends the process, whoever else handles it."""

import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.sanitizers import handles_signals

pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="what other systems send differs"
    ),
    handles_signals,
]

# A child does what it is told, and says how it ended and what it dumped.
START = """
import ctypes, faulthandler, mmap, os, resource, signal, sys, threading, ndx
faulthandler.disable()
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
folder = sys.argv[1]

def path(name):
    return os.path.join(folder, name)

def first(mode="r"):
    return ndx.open(path("first.npy"), mode)

def second():
    return ndx.open(path("second.npy"), "r")

def met(x):
    try:
        return float(ndx.sum(x))
    except ndx.MappedFileError:
        return "lost"

def foreign():
    with open(path("foreign"), "wb") as file:
        file.write(bytes(100_000))
    with open(path("foreign"), "r+b") as file:
        mapping = mmap.mmap(file.fileno(), 100_000)
    os.truncate(path("foreign"), 0)
    mapping[50_000]

def in_child(program):
    with open(path("dump"), "w+b") as dump:
        if not (pid := os.fork()):
            os.dup2(dump.fileno(), 2)
            signal.alarm(20)
            try:
                program()
            finally:
                os._exit(3)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        dump.seek(0)
        print(code, dump.read().count(b"Fatal Python error: Bus error"))
"""


@pytest.fixture
def run(tmp_path):
    """Run a program in a process that has two files to open."""

    def run(program, *arguments):
        for name in ("first.npy", "second.npy"):
            np.save(tmp_path / name, np.ones(100_000))
        return run_python(START + program, tmp_path, *arguments).split()

    return run


@pytest.mark.threads
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@pytest.mark.parametrize("thread", [False, True])
def test_faulthandler_that_is_enabled_later_does_not_end_the_process(run, mode, thread):
    """It dumps once, since it is called first, and hands on to ours."""
    words = run(
        """
mode, thread = sys.argv[2:]
def program():
    x, y = first(mode), second()
    faulthandler.enable()
    os.truncate(path("first.npy"), 5000)
    def look():
        if (met(x), met(x), met(y)) != ("lost", "lost", 100_000.0):
            os._exit(4)
    if thread == "True":
        other = threading.Thread(target=look)
        other.start()
        other.join()
    else:
        look()
    os._exit(5)
in_child(program)
""",
        mode,
        thread,
    )
    assert words == ["5", "1"]


def test_a_file_that_is_opened_later_puts_our_handler_before_faulthandlers(run):
    words = run("""
def program():
    x = first()
    faulthandler.enable()
    y = second()
    os.truncate(path("first.npy"), 5000)
    os.truncate(path("second.npy"), 5000)
    if (met(x), met(y)) == ("lost", "lost"):
        os._exit(5)
in_child(program)
""")
    assert words == ["5", "0"]


@pytest.mark.parametrize("enabled", ["before", "between", "after", "never", "disabled"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_fault_that_is_not_ours_is_dumped_once_and_ends_the_process(
    run, enabled, cut
):
    words = run(
        """
enabled, cut = sys.argv[2:]
def program():
    if enabled == "before":
        faulthandler.enable()
    x = first()
    if enabled in ("between", "disabled"):
        faulthandler.enable()
    y = second()
    if enabled == "after":
        faulthandler.enable()
    if enabled == "disabled":
        faulthandler.disable()
    if cut == "True":
        os.truncate(path("first.npy"), 5000)
    foreign()
in_child(program)
""",
        enabled,
        cut,
    )
    dumps = enabled in ("before", "between", "after")
    assert words == [str(-signal.SIGBUS), str(int(dumps))]


@pytest.mark.parametrize("sender", ["raise_signal", "kill"])
def test_a_signal_that_is_sent_ends_the_process(run, sender):
    words = run(
        """
def program():
    x = first()
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGBUS)
    else:
        signal.raise_signal(signal.SIGBUS)
in_child(program)
""",
        sender,
    )
    assert words == [str(-signal.SIGBUS), "0"]


def test_a_signal_that_is_ignored_is_ignored(run):
    words = run("""
def program():
    signal.signal(signal.SIGBUS, signal.SIG_IGN)
    x = first()
    os.kill(os.getpid(), signal.SIGBUS)
    os.truncate(path("first.npy"), 5000)
    if met(x) == "lost":
        os._exit(5)
in_child(program)
""")
    assert words == ["5", "0"]


CHAINED = r"""
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static struct sigaction before;
static void handle(int signum, siginfo_t *info, void *context) {
    (void)!write(2, "Fatal Python error: Bus error", 29);
    if (before.sa_flags & SA_SIGINFO) { before.sa_sigaction(signum, info, context); }
    else { signal(signum, SIG_DFL); }
}
void install(void) {
    struct sigaction action = {0};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGBUS, &action, &before);
}
"""


def test_handlers_that_call_one_another_do_it_once(run, tmp_path):
    """A handler that hands on to ours, before which ours was put again."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "chained.c").write_text(CHAINED)
    library = tmp_path / "chained.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, tmp_path / "chained.c"],
        check=True,
    )
    words = run(
        """
library = ctypes.CDLL(sys.argv[2])
def program(ours):
    x = first()
    library.install()
    y = second()
    if ours:
        os.truncate(path("first.npy"), 5000)
        os._exit(5 if met(x) == "lost" else 4)
    foreign()
in_child(lambda: program(False))
in_child(lambda: program(True))
""",
        library,
    )
    assert words == [str(-signal.SIGBUS), "1", "5", "0"]
