"""A short soak of every part, and that it would find a leak."""

import mmap
import os

import pytest
import soak
from helpers.sanitizers import SANITIZED
from helpers.threads import in_thread

import ndx

CYCLES = {
    "limits": 100,
    "small-arrays": 60,
    "threads": 60,
    "threads-that-stay": 30,
    "tasks": 100,
}


@pytest.fixture(autouse=True)
def _quarantine(monkeypatch):
    # Sanitizers keep freed memory for some time: the process may grow.
    if SANITIZED:
        monkeypatch.setattr(soak, "TOLERATED_BYTES", 2**40)


@pytest.mark.parametrize("name", soak.PARTS)
@in_thread
def test_nothing_grows(name):
    cycles = CYCLES.get(name, 1500)
    outcome = soak.run(name, cycles, 280.0)
    assert outcome.cycles == cycles
    assert outcome.failures == []


def leaking(what):
    def part():
        kept = []
        while True:
            kept.append(what())
            yield

    return part


def pages():
    """Return new memory: malloc's could be memory that was freed before."""
    memory = mmap.mmap(-1, 32768)
    memory[:] = bytes(32768)
    return memory


@pytest.mark.skipif(
    os.environ.get("PYTHONMALLOC") == "malloc", reason="Python counts no blocks then"
)
@pytest.mark.parametrize(
    ("what", "message"),
    [
        (pages, "resident memory grew"),
        (object, "Python's blocks grew"),
        (lambda: ndx.zeros(8), "the backend's ranges grew"),
    ],
    ids=["memory", "objects", "arrays"],
)
@in_thread
def test_a_leak_is_found(what, message, monkeypatch, capsys):
    monkeypatch.setitem(soak.PARTS, "leaking", leaking(what))
    assert soak.main(["leaking", "--cycles", "2000", "--minutes", "0.5"]) == 1
    out = capsys.readouterr().out
    assert message in out
    assert "2,000 cycles" in out
