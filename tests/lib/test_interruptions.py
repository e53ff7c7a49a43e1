"""Interruptions that arrive where no exception can be raised come later, and once.

Each case runs a user's Python code inside of such a place, and the code is interrupted.
"""

import contextlib
import gc
import logging
import signal
import sys

import pytest
from helpers.commands import run_python

import ndx
from ndx.backends import HostBackend, PooledBackend, PythonBackend, PythonSource
from ndx.memory import Adaptor


class TimeIsUp(Exception):
    """What the handler of a signal raises."""


class Outside(BaseException):
    """What no `except Exception` catches."""


def by_ctrl_c():
    signal.raise_signal(signal.SIGINT)
    # The interpreter calls the handler between two instructions.
    return [None for _ in range(10)]


def by_an_alarm():
    signal.raise_signal(signal.SIGALRM)
    return [None for _ in range(10)]


def by_an_exception():
    raise Outside


def raise_time_is_up(number, frame):
    raise TimeIsUp


WAYS = {by_ctrl_c: KeyboardInterrupt, by_an_exception: Outside}
if hasattr(signal, "SIGALRM"):
    WAYS[by_an_alarm] = TimeIsUp


class Interrupted:
    """Calls `interrupt` once."""

    def __init__(self, interrupt):
        self.interrupt = interrupt

    def __call__(self, *args):
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            interrupt()
        return True


def while_an_event_is_logged(interrupt):
    logger = logging.getLogger("ndx")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addFilter(interrupt)
    try:
        with ndx.use("host", limit="1KiB"), contextlib.suppress(ndx.OutOfMemoryError):
            ndx.ones(10_000)
    finally:
        logger.removeFilter(interrupt)
        logger.setLevel(level)


def while_a_hook_is_told_of_a_release(interrupt):
    backend = HostBackend()
    with ndx.use(backend):
        x = ndx.ones(3)
    backend.add_hook(interrupt)
    del x


def while_a_backend_takes_memory_back(interrupt):
    methods = {
        "acquire": lambda self, nbytes: bytearray(nbytes),
        "discard": lambda self, buffer: interrupt(),
    }
    with ndx.use(type("Users", (PythonBackend,), methods)()):
        x = ndx.ones(3)
    del x


def while_a_source_takes_memory_back(interrupt):
    methods = {
        "acquire": lambda self, nbytes: bytearray(nbytes),
        "discard": lambda self, buffer: interrupt(),
    }
    source = type("Users", (PythonSource,), methods)()
    # It lives on: in its weak references' callbacks Python ignores all exceptions.
    backend = PooledBackend(source, pool="unpooled")
    with ndx.use(backend):
        x = ndx.ones(3)
    del x


def while_an_adaptor_is_told_of_a_release(interrupt):
    methods = {"released": lambda self, nbytes, address: interrupt()}
    with ndx.use(type("Users", (Adaptor,), methods)(HostBackend())):
        x = ndx.ones(3)
    del x


PLACES = [value for name, value in sorted(globals().items()) if name[:6] == "while_"]


def go_on(*args):
    """Let the interpreter look for what is pending."""
    return [len(args) for _ in range(10)]


@pytest.fixture
def reported(monkeypatch):
    """What Python is told of as ignored."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda given: found.append(given))
    before = [(n, signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGALRM)]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, raise_time_is_up)
    # An exception that is pending must not be raised in a callback of the collector's.
    gc.disable()
    yield found
    gc.enable()
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGALRM")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_an_interruption_arrives(place, way, reported):
    interrupt = Interrupted(way)
    with pytest.raises(WAYS[way]):
        go_on(place(interrupt))
    assert interrupt.interrupt is None
    assert reported == []
    # Once.
    go_on()


@pytest.mark.parametrize("place", PLACES)
def test_an_ordinary_error_is_reported(place, reported):
    place(Interrupted(lambda: 1 / 0))
    assert [given.exc_type for given in reported] == [ZeroDivisionError]


def test_an_interruption_while_another_error_is_kept():
    """Ctrl-C that is pending when ndx asks which thread is the main one."""
    said = run_python("""
        import logging, os, signal
        import numpy
        import ndx

        class Handler(logging.Handler):
            records = 0

            def emit(self, record):
                self.records += 1
                if self.records == 2:
                    signal.raise_signal(signal.SIGINT)

        # Shells let what they start in the background ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        logger = logging.getLogger("ndx")
        logger.setLevel(logging.INFO)
        logger.addHandler(Handler())
        try:
            with ndx.use("host", limit="1MiB", numpy=True):
                numpy.ones(10**7)
        except KeyboardInterrupt:
            print("interrupted")
        """)
    assert said.strip() == "interrupted"
