"""What holds for every test: the context is as it was after it, nothing leaks."""

import gc
import os
import subprocess
import time

import numpy.ma  # noqa: F401 - np.unique imports it, and its constants stay allocated
import pytest
from helpers.examples import USUAL
from helpers.products import left_to_the_night
from helpers.sanitizers import SANITIZED, await_other_threads
from helpers.together import CLASSES_STAY
from hypothesis import HealthCheck, settings
from ndx._lib.numpy_private import wanted

import ndx

# SciPy reads it once, when it is imported first: tests/interop needs it.
os.environ["SCIPY_ARRAY_API"] = "1"

if SANITIZED:
    os.register_at_fork(before=await_other_threads)

# `--hypothesis-profile=thorough` looks longer (`make thorough`).
COMMON = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("ndx", COMMON, max_examples=USUAL)
settings.register_profile(
    "thorough", COMMON, max_examples=int(os.environ.get("NDX_EXAMPLES", "3000"))
)
# The same draws each time: a change is to be judged by what it changes.
settings.register_profile("ci", COMMON, max_examples=USUAL, derandomize=True)
settings.load_profile("ci" if os.environ.get("NDX_CI") else "ndx")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave the bulk of large products of parameters to `make nightly`."""
    for item in left_to_the_night(items):
        item.add_marker("nightly")


def pytest_collection_finish():
    """Take all that is there out of the collector's sight: tests run it often."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Hide what a file of tests leaves from the collector: reports, caches, modules.

    After thousands of tests a collection would take a quarter of a second.
    """
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture(autouse=True)
def _unchanged_reports():
    """Restore what `ndx.numpy.seterr` sets: an example in a docstring calls it."""
    token = wanted.set(wanted.get())
    yield
    wanted.reset(token)


@pytest.fixture(autouse=True)
def _unchanged_context():
    """Restore the default backend, close workspaces; fail if a scope was left open."""
    before = ndx.current_backend()
    yield
    ndx.set_default(before)
    # A name belongs to the thread, in which other tests run, too.
    ndx.memory.destroy_all(trim=False)
    assert ndx.current_backend() is before, "a scope was left open"


def live_ranges():
    stats = ndx.memory.stats("host")
    return stats["allocated_count"], stats["allocated_bytes"]


@pytest.fixture(autouse=True)
def _no_leak(request):
    """Fail if the host backend has more live ranges than before."""
    before = live_ranges()
    yield
    # A failed test's traceback keeps its arrays; so may a class that stays for ever.
    if CLASSES_STAY or not request.node.stash.get(PASSED, False):
        return
    # Threads that were told to end may still hold arrays, on a busy machine for long.
    end = time.monotonic() + 20
    while live_ranges() > before and time.monotonic() < end:
        gc.collect()
        time.sleep(0.001)
    assert live_ranges() <= before, "(count, bytes) of live host memory"


@pytest.fixture
def small_disk(tmp_path):
    """Return a function that makes a file system of so many bytes."""
    mounted = []

    def mount(nbytes, *options):
        path = tmp_path / f"disk{len(mounted)}"
        path.mkdir()
        words = ",".join((f"size={nbytes}", *options))
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", words, "tmpfs", path],
            capture_output=True,
            text=True,
        )
        if made.returncode:
            pytest.skip(f"no file system can be mounted: {made.stderr.strip()}")
        mounted.append(path)
        return path

    if os.name != "posix":
        pytest.skip("there is no mount")
    yield mount
    for path in mounted:
        subprocess.run(["umount", "-l", path], check=True)
