"""Reports of memory: for an error, for a signal, and on demand."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from helpers.threads import wait_until

import ndx
from ndx import memory
from ndx.backends import HostBackend
from ndx.memory import _report


@pytest.fixture(autouse=True)
def _reports_are_as_before(monkeypatch):
    monkeypatch.setattr(_report, "_APART", 0.0)
    yield
    memory.report_to(None)


def make(n):
    return ndx.ones((n, 1000))


def fail():
    with ndx.use(HostBackend(limit=0)), pytest.raises(ndx.OutOfMemoryError) as caught:
        ndx.ones(1000)
    return caught.value


def test_what_it_says():
    memory.track()
    try:
        x = make(123)
    finally:
        memory.track(False)
    with memory.profile("forward"), ndx.use(HostBackend()):
        text = memory.report()
    assert f"memory of process {os.getpid()}" in text
    assert "phase 'forward' is open in " in text
    assert "(123, 1000)" in text
    assert "in make" in text
    assert "by shape:" in text
    assert "forward" not in memory.report()
    memory.profile_report(clear=True)
    del x


def test_an_error_writes_one(tmp_path):
    memory.report_to(tmp_path / "report-{pid}.txt")
    x = make(77)
    error = fail()
    path = tmp_path / f"report-{os.getpid()}.txt"
    text = path.read_text()
    assert text.startswith(str(error).splitlines()[0])
    assert "(77, 1000)" in text
    path.unlink()
    memory.report_to(None)
    fail()
    assert not path.exists()
    memory.report_to(path, oom=False)
    fail()
    assert not path.exists()
    del x


def test_at_most_one_each_second(tmp_path, monkeypatch):
    path = tmp_path / "report.txt"
    memory.report_to(path)
    fail()
    monkeypatch.setattr(_report, "_APART", 1e9)
    path.unlink()
    fail()
    assert not path.exists()


def test_a_file_that_cant_be_written(tmp_path):
    memory.report_to(tmp_path / "none" / "report.txt")
    (note,) = fail().__notes__
    assert note.startswith("the report could not be written: FileNotFoundError")


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal here")
@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals are the main thread's",
)
def test_a_signal(tmp_path):
    path = tmp_path / "report.txt"
    before = signal.getsignal(signal.SIGUSR1)
    memory.report_to(path, oom=False, signal="SIGUSR1")
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert wait_until(path.exists)
        assert "the largest pieces" in path.read_text()
    finally:
        memory.report_to(None)
    assert signal.getsignal(signal.SIGUSR1) == before


@pytest.mark.parametrize("bad", ["SIGNOTHING", 12345])
def test_no_signal(bad, tmp_path):
    with pytest.raises(ValueError, match="is no signal"):
        memory.report_to(tmp_path / "x", signal=bad)
    fail()
    assert not (tmp_path / "x").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals are the main thread's",
)
@pytest.mark.parametrize("bad", ["SIGKILL", True])
def test_a_signal_that_can_not_be_handled(bad, tmp_path):
    before = signal.getsignal(signal.SIGUSR1)
    memory.report_to(tmp_path / "good", oom=False, signal="SIGUSR1")
    try:
        with pytest.raises(ValueError, match="signal="):
            memory.report_to(tmp_path / "bad", signal=bad)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert wait_until((tmp_path / "good").exists)
        assert not (tmp_path / "bad").exists()
    finally:
        memory.report_to(None)
    assert signal.getsignal(signal.SIGUSR1) == before


def test_a_path_is_that_of_then(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory.report_to("report.txt")
    try:
        monkeypatch.chdir("/")
        fail()
    finally:
        memory.report_to(None)
    assert (tmp_path / "report.txt").exists()


def test_the_environment(tmp_path):
    path = tmp_path / "report.txt"
    program = (
        "import ndx\n"
        "kept = ndx.ones((55, 5))\n"
        "with ndx.use('host', limit=0):\n"
        "    ndx.ones(1000)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NDX_OOM_REPORT": str(path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert "OutOfMemoryError" in found.stderr
    assert "(55, 5)" in path.read_text()
